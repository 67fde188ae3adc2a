"""Distillation of an encoder into a table."""

from __future__ import annotations

import numpy as np
import pytest

from quietcorpus.indexes.documents import distillation
from quietcorpus.indexes.documents.distillation import distilled

TOKENS, SIZE = 60, 5


def test_a_table_is_found_again() -> None:
    # An encoder that is a table: the start is not it, since tokens alone are told apart by noise.
    # Kills: a start that stays, a share that counts a token once, held-out sentences learnt from.
    generator = np.random.default_rng(2)
    table = generator.normal(size=(TOKENS, SIZE))
    tokens = [generator.integers(TOKENS, size=generator.integers(1, 9)) for _ in range(3000)]
    embeddings = np.array([table[one].mean(axis=0) for one in tokens])
    alone = table + generator.normal(size=table.shape)
    found = distilled(alone, tokens, embeddings, 1)
    assert found.strength == min(distillation.STRENGTHS)
    assert found.start < 0.9 < found.closeness < 1


def test_tokens_that_no_sentence_has_keep_their_difference() -> None:
    # Kills: a regression towards zero.
    generator = np.random.default_rng(3)
    alone = generator.normal(size=(TOKENS, SIZE))
    tokens = [generator.integers(TOKENS - 2, size=4) for _ in range(400)]
    units = alone / np.linalg.norm(alone, axis=1, keepdims=True)
    embeddings = np.array([units[one].mean(axis=0) for one in tokens])
    found = distilled(alone, tokens, embeddings, 1).vectors
    kept, given = found[-1] - found[-2], units[-1] - units[-2]
    cosine = kept @ given / np.linalg.norm(kept) / np.linalg.norm(given)
    assert cosine == pytest.approx(1)


def test_the_regression_is_ridge_regression() -> None:
    # By the normal equations. Kills: another penalty, too few iterations.
    generator = np.random.default_rng(4)
    shares = distillation._shares([generator.integers(TOKENS, size=6) for _ in range(200)], TOKENS)
    missing = generator.normal(size=(200, SIZE))
    dense = shares.toarray()
    for strength in distillation.STRENGTHS:
        expected = np.linalg.solve(dense.T @ dense + strength * np.eye(TOKENS), dense.T @ missing)
        np.testing.assert_allclose(
            distillation._change(shares, missing, strength), expected, atol=1e-4
        )


def test_too_few_sentences() -> None:
    with pytest.raises(ValueError, match="19 sentences"):
        distilled(np.eye(3), [[0]] * 19, np.zeros((19, 3)), 1)
