"""The agreement of released embeddings with the documents' own on which documents are alike."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import pearsonr

from quietcorpus.evaluation.embeddings import agreement


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


@pytest.mark.parametrize("documents", [3, 9, 101])
def test_it_is_the_correlation_over_all_pairs(documents: int) -> None:
    """By definition. Kills: products for cosines, pairs that are left out."""
    generator = np.random.default_rng()
    own = generator.normal(size=(documents, 4)) + 1
    released = own + generator.normal(size=own.shape)
    pairs = list(itertools.combinations(range(documents), 2))
    expected = pearsonr(
        [cosine(own[i], own[j]) for i, j in pairs],
        [cosine(released[i], released[j]) for i, j in pairs],
    ).statistic
    assert agreement(own, released) == pytest.approx(expected, abs=1e-9)


def test_of_many_documents_it_is_over_some_pairs() -> None:
    """Beside as much noise it is .51, of deviation .07. Kills: pairs of neighbours alone."""
    generator = np.random.default_rng()
    own = np.repeat(generator.normal(size=(20, 4)), 40, axis=0)
    noise = generator.normal(size=own.shape)
    whole, half, none = (agreement(own, own + by * noise) for by in (0.0, 1.0, 1e6))
    assert whole == pytest.approx(1)
    assert 0.1 < half < 0.9
    assert abs(none) < 0.1


@pytest.mark.parametrize("documents", [1, 2])
def test_too_few_documents(documents: int) -> None:
    """Kills: a NaN, which would be the best of all or none."""
    rows = np.random.default_rng().normal(size=(documents, 4))
    assert agreement(rows, rows) == 0


def test_rows_that_are_all_alike() -> None:
    """Kills: the correlation of roundings."""
    rows = np.random.default_rng().normal(size=(9, 4))
    assert agreement(rows, np.ones((9, 4))) == 0
    assert agreement(rows, np.arange(1, 10)[:, None] * rows[0]) == 0
    assert agreement(rows, np.zeros((9, 4))) == 0
