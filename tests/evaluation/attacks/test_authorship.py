"""Authorship: certain where authors are apart, chance where the release tells nothing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from scipy import stats

from quietcorpus.evaluation.attacks.authorship import attributed, prolific

ALPHA = 1e-6
AUTHORS, DOCUMENTS = 10, 100


def written() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Documents whose features are their author's, and a tenth of noise; in random order."""
    generator = np.random.default_rng()
    authors = generator.permutation(np.repeat(np.arange(AUTHORS), DOCUMENTS))
    noise = generator.uniform(-0.1, 0.1, size=(len(authors), AUTHORS))
    return np.eye(AUTHORS)[authors] + noise, authors


@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_authors_that_are_apart_are_all_told(kind: type) -> None:
    # Kills: rows and authors out of step, long documents that outweigh short ones, names taken for
    # numbers.
    features, authors = written()
    names = np.array([f"author {author}" for author in authors])
    lengths = 10 ** np.random.default_rng().uniform(-4, 4, size=(2, len(authors), 1))
    raw, released = (kind(features * length) for length in lengths)
    assert attributed(raw, released, names, np.random.default_rng()).all()


def test_a_release_that_tells_nothing_gives_chance() -> None:
    # Kills: an accuracy on known documents, or on raw ones. Each of 500 guesses is independent of
    # its author, right with 1 / 10 on average, so that the tails are at most the binomial's
    # (Hoeffding 1956), 1e-6 together.
    features, authors = written()
    unrelated = np.random.default_rng().normal(size=features.shape)
    low, high = stats.binom.ppf([ALPHA / 2, 1 - ALPHA / 2], 500, 1 / AUTHORS) / 500
    assert low <= attributed(features, unrelated, authors, np.random.default_rng()).mean() <= high
    # Control: with a fifth of the signal left beside that noise, it is above chance.
    faint = features + unrelated / 2
    assert attributed(features, faint, authors, np.random.default_rng()).mean() > high


def test_what_is_known_is_raw_and_what_is_met_is_released() -> None:
    # Kills: the two swapped, or the classifier learnt from releases: here they speak for the next
    # author.
    features, authors = written()
    misleading = np.roll(features, 1, axis=1)
    assert not attributed(features, misleading, authors, np.random.default_rng()).any()


def test_no_document_is_both_known_and_met() -> None:
    # Kills: halves that overlap. Every document has one feature, which no other has: whoever met a
    # document that is known would be sure of its author, and others know nothing.
    authors = np.random.default_rng().permutation(np.repeat(np.arange(2), 40))
    alone = sp.csr_array(np.eye(80))
    assert attributed(alone, alone, authors, np.random.default_rng()).mean() <= 0.5


def test_the_most_prolific_are_taken() -> None:
    # Kills: an author with one document too few, `most` by name, one of the equals at random.
    authors = np.array(list("aabbbcccccdd"))
    assert "".join(authors[prolific(authors, 2, 9)]) == "aabbbcccccdd"
    assert "".join(authors[prolific(authors, 3, 9)]) == "bbbccccc"
    assert "".join(authors[prolific(authors, 2, 3)]) == "aabbbccccc"
    assert "".join(authors[prolific(authors, 2, 2)]) == "bbbccccc"
    with pytest.raises(ValueError, match="1 of 4 authors are taken, those with 4 or more docum"):
        prolific(authors, 4, 9)
    with pytest.raises(ValueError, match="and 1 at most; two are needed to be told apart"):
        prolific(authors, 1, 1)


@pytest.mark.parametrize(
    ("authors", "released", "message"),
    [
        ([1, 1, 1, 1], 4, "there are 1 authors; two are needed"),
        ([1, 1, 1, 2], 4, "1 authors have a single document; leave out"),
        ([1, 1, 2, 2], 3, r"\(4, 2\), released ones \(3, 2\), and 4 have an author"),
        ([1, 1, 2], 4, r"\(4, 2\), released ones \(4, 2\), and 3 have an author"),
    ],
)
def test_what_cannot_be_attributed_is_refused(
    authors: list[int], released: int, message: str
) -> None:
    # Kills: a failure within scikit-learn, or rows that mean other documents.
    with pytest.raises(ValueError, match=message):
        attributed(
            np.ones((4, 2)), np.ones((released, 2)), np.array(authors), np.random.default_rng()
        )
