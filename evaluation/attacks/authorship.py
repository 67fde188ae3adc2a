"""Authorship attribution of a released document, from the authors' other documents."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .membership import half

_RIDGE = 10.0  # of rows of unit length
_LEAST_DENSE = 0.1  # noise on counts leaves few zeros, and solvers for sparse rows are slow there
_MOST_PRODUCTS = 1 << 37


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
    known: Callable[[npt.NDArray[np.int64]], Sequence[Any]],
    released: npt.NDArray[np.floating] | sp.csr_array,
    authors: npt.NDArray[Any],
    generator: np.random.Generator,
    beside: tuple[sp.csr_array, sp.csr_array] | None = None,
) -> npt.NDArray[np.bool_]:
    """Guess the author of each released document; return whether the guesses are right.

    The mean is the accuracy. The attacker knows the originals of a random half of every author's
    documents, and sees the releases of the others. It guesses by a linear classifier, one author
    against the rest, on features scaled to unit length (the usual attribution: Stamatatos 2009): a
    support vector machine that learns from the originals, or, where the attacker can draw releases
    itself, ridge regression on several of each, which finds as much among noise in less time. A
    release that tells nothing gives at most the share of the most prolific author.

    Args:
        known: a function of the numbers of documents that the attacker knows, int64 (m,); returns
            their features as they are learnt from, dense or sparse, (m, d), once or several times.
        released: the same features of all documents' releases, (n, d).
        authors: numbers or strings (n,), the author of each document.
        generator: the generator of the halves, and of the support vector machine.
        beside: features (n, c) that releases copy, of the originals and of the released rows; they
            stand beside the others, and are not scaled.

    Returns:
        bool, about (n / 2,): for the released documents that the attacker sees, in their order.

    Raises:
        ValueError: fewer than two authors, one with a single document, or unequal shapes.
    """
    _check(released.shape, authors)
    from sklearn.linear_model import RidgeClassifier
    from sklearn.preprocessing import normalize
    from sklearn.svm import LinearSVC

    mine = half(authors, generator)
    numbers = np.flatnonzero(mine)
    versions = known(numbers)
    for version in versions:
        if version.shape != (len(numbers), released.shape[1]):
            raise ValueError(f"known documents have shape {version.shape}; give one row for each")
    features = normalize((sp.vstack if sp.issparse(released) else np.concatenate)(versions))
    asked = normalize(released[~mine])
    if beside is not None:
        own, copied = beside
        features = sp.hstack(
            [sp.csr_array(features), sp.vstack([own[numbers]] * len(versions))]
        ).tocsr()
        asked = sp.hstack([sp.csr_array(asked), copied[~mine]]).tocsr()
    seed = int(generator.integers(2**32))
    classifier = LinearSVC(max_iter=10_000, random_state=seed)
    if len(versions) > 1:
        classifier = RidgeClassifier(_RIDGE)
    few, many = sorted(features.shape)
    full = sp.issparse(features) and features.nnz > _LEAST_DENSE * few * many
    if full and few * few * many < _MOST_PRODUCTS:
        features, asked = (each.toarray().astype(np.float32) for each in (features, asked))
    classifier.fit(features, np.tile(authors[mine], len(versions)))
    right: npt.NDArray[np.bool_] = classifier.predict(asked) == authors[~mine]
    return right


def one_hot(values: npt.NDArray[np.int64]) -> sp.csr_array:
    """Return a feature for each value of each column of `values`, (n, columns), from 0 on."""
    sizes = values.max(axis=0, initial=0) + 1
    places = values + np.cumsum(sizes) - sizes
    offsets = np.arange(len(values) + 1) * values.shape[1]
    return sp.csr_array((np.ones(places.size), places.ravel(), offsets), (len(values), sizes.sum()))


def weighted(counts: sp.csr_array, rows: sp.csr_array) -> sp.csr_array:
    """Weigh words, (n, V), by log(1 + count) times their inverse document frequencies in `rows`."""
    frequencies = np.bincount(rows.indices[rows.data > 0], minlength=rows.shape[1])
    rarity = np.log((1 + rows.shape[0]) / (1 + frequencies)) + 1
    logs = counts.astype(np.float64)
    logs.data = np.log1p(logs.data) * rarity[logs.indices]
    return logs


def noisy(counts: sp.csr_array, rate: float, generator: np.random.Generator) -> sp.csr_array:
    """Release counts, (n, K), anew: with two-sided geometric noise, cut off at zero."""
    one, other = generator.geometric(-math.expm1(-rate), (2, *counts.shape))
    return sp.csr_array(np.maximum(counts.toarray() + one - other, 0))


def _check(released: tuple[int, ...], authors: npt.NDArray[Any]) -> None:
    if released[0] != len(authors):
        raise ValueError(
            f"released documents have shape {released}, and {len(authors)} have an author; give "
            "both in one order, a document a row"
        )
    names, sizes = np.unique(authors, return_counts=True)
    if len(names) < 2:
        raise ValueError(f"there are {len(names)} authors; two are needed to be told apart")
    if sizes.min() < 2:
        raise ValueError(
            f"{(sizes < 2).sum()} authors have a single document; leave out those of fewer than two"
        )
