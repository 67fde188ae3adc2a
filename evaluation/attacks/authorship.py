"""Authorship attribution of a released document, from the authors' original documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from quietcorpus.evaluation.attacks.halves import half


def prolific(authors: npt.NDArray[Any], least: int, most: int) -> npt.NDArray[np.bool_]:
    """Select the documents of the `most` most prolific authors, with `least` or more each.

    Args:
        authors: numbers or strings (n,), the author of each document; of equally prolific authors,
            those that sort first are taken.
        least: the fewest documents of an author.
        most: the largest number of authors.

    Returns:
        bool (n,).

    Raises:
        ValueError: fewer than two authors are left.
    """
    names, sizes = np.unique(authors, return_counts=True)
    order = np.argsort(-sizes, kind="stable")[:most]
    taken = names[order[sizes[order] >= least]]
    if len(taken) < 2:
        raise ValueError(
            f"{len(taken)} of {len(names)} authors are taken, those with {least} or more documents "
            f"and {most} at most; two are needed to be told apart"
        )
    return np.isin(authors, taken)


def attributed(
    known: npt.NDArray[np.floating] | sp.csr_array,
    released: npt.NDArray[np.floating] | sp.csr_array,
    authors: npt.NDArray[Any],
    generator: np.random.Generator,
) -> npt.NDArray[np.bool_]:
    """Guess the author of each released document; return whether the guesses are right.

    The mean is the accuracy. The attacker knows the originals of a random half of every author's
    documents, and sees the releases of the others. It guesses by a linear support vector machine,
    one against the rest, on features scaled to unit length (the usual attribution by a classifier:
    Stamatatos 2009). An attacker that learns from simulated releases of the documents it knows may
    do better. A release that tells nothing gives at most the share of the most prolific author.

    Args:
        known: features of the original documents, dense or sparse, (n, d).
        released: the same features of their releases, (n, d), in the same order.
        authors: numbers or strings (n,), the author of each document.
        generator: the generator of the halves, and of the classifier.

    Returns:
        bool, about (n / 2,): for the released documents that the attacker sees, in their order.

    Raises:
        ValueError: fewer than two authors, one with a single document, or unequal shapes.
    """
    _check(known.shape, released.shape, authors)
    from sklearn.preprocessing import normalize
    from sklearn.svm import LinearSVC

    mine = half(authors, generator)
    classifier = LinearSVC(max_iter=10_000, random_state=int(generator.integers(2**32)))
    classifier.fit(normalize(known[mine]), authors[mine])
    right: npt.NDArray[np.bool_] = classifier.predict(normalize(released[~mine])) == authors[~mine]
    return right


def _check(known: tuple[int, ...], released: tuple[int, ...], authors: npt.NDArray[Any]) -> None:
    if known != released or known[0] != len(authors):
        raise ValueError(
            f"known documents have shape {known}, released ones {released}, and {len(authors)} "
            "have an author; give all three in one order, a document a row"
        )
    names, sizes = np.unique(authors, return_counts=True)
    if len(names) < 2:
        raise ValueError(f"there are {len(names)} authors; two are needed to be told apart")
    if sizes.min() < 2:
        raise ValueError(
            f"{(sizes < 2).sum()} authors have a single document; leave out those of fewer than two"
        )
