"""Distillation of an encoder into a table."""

from __future__ import annotations

import numpy as np
import pytest

from quietcorpus.indexes.documents import distillation
from quietcorpus.indexes.documents.distillation import distilled

TOKENS, SIZE = 60, 5


def alone_in_documents(count: int) -> np.ndarray:
    """Documents of one sentence each: a target is the sentence's own embedding."""
    return np.arange(count)


def test_a_table_is_found_again() -> None:
    # An encoder that is a table: the start is not it, since tokens alone are told apart by noise.
    # Kills: a start that stays, a share that counts a token once, held-out sentences learnt from,
    # a length that counts.
    generator = np.random.default_rng(2)
    table = generator.normal(size=(TOKENS, SIZE))
    tokens = [generator.integers(TOKENS, size=generator.integers(1, 9)) for _ in range(3000)]
    embeddings = np.array([table[one].mean(axis=0) for one in tokens])
    alone = table + generator.normal(size=table.shape)
    found = distilled(alone, tokens, embeddings, alone_in_documents(3000), 1)
    assert found.strength == min(distillation.STRENGTHS)
    assert found.start < 0.9
    assert 0.995 < found.closeness < 1
    assert found.documents == pytest.approx(found.closeness)


def test_sentences_learn_what_they_tell_of_their_documents() -> None:
    # Each document has a subject, and its sentences a word for it beside others. Kills: targets of
    # sentences alone, means of other documents, held-out documents whose sentences are learnt from.
    generator = np.random.default_rng(5)
    table = generator.normal(size=(TOKENS, SIZE))
    subjects = generator.integers(10, size=400)
    numbers = generator.permutation(np.repeat(np.arange(400), 6))
    tokens = [[subjects[i], *generator.integers(10, TOKENS, size=4)] for i in numbers]
    embeddings = np.array([table[one].mean(axis=0) for one in tokens])
    together = distilled(table, tokens, embeddings, numbers, 1)
    apart = distilled(table, tokens, embeddings, np.arange(2400), 1)

    def spread(vectors: np.ndarray) -> float:
        of_subjects, others = vectors[:10], vectors[10:]
        return float(of_subjects.var(axis=0).sum() / others.var(axis=0).sum())

    assert spread(together.vectors) > 2 * spread(apart.vectors)
    assert together.closeness < apart.closeness


def test_tokens_that_no_sentence_has_keep_their_difference() -> None:
    # Kills: a regression towards zero.
    generator = np.random.default_rng(3)
    alone = generator.normal(size=(TOKENS, SIZE))
    tokens = [generator.integers(TOKENS - 2, size=4) for _ in range(400)]
    units = alone / np.linalg.norm(alone, axis=1, keepdims=True)
    embeddings = np.array([units[one].mean(axis=0) for one in tokens])
    found = distilled(alone, tokens, embeddings, alone_in_documents(400), 1).vectors
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


def test_too_few_documents() -> None:
    with pytest.raises(ValueError, match="19 documents"):
        distilled(np.eye(3), [[0]] * 38, np.zeros((38, 3)), np.arange(38) % 19, 1)
