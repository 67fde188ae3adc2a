"""Near texts of a pool: joined to the first, by all earlier texts or by those of some lists."""

from __future__ import annotations

import numpy as np
import pytest

from quietcorpus.mechanisms.sentences.deep_candidate import UNIT, on_grid
from quietcorpus.pipelines.prepare import near_texts as job
from quietcorpus.pipelines.prepare.near_texts import NEAR, apart

Array = np.ndarray


def at(angles: Array) -> Array:
    return on_grid(np.stack([np.cos(angles), np.sin(angles)], axis=1))


@pytest.mark.parametrize("chunk", [2, 1024])
def test_near_texts_are_joined_to_the_first(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    # Kills: a comparison with those that were left out, by which a chain of near texts would
    # vanish; one within a chunk alone, or with earlier chunks alone.
    monkeypatch.setattr(job, "_CHUNK", chunk)
    step = 0.9 * np.arccos(NEAR)
    angles = np.array([0, step, 2 * step, 0.5 * step, 3, 3 + step, 3 + 2 * step])
    assert apart(at(angles), np.zeros((7, 1), np.int64)).tolist() == [0, 2, 4, 6]


def defined(vectors: Array, searched: Array) -> list[int]:
    """The definition: near no earlier one returned whose list is among those that are searched."""
    kept: list[int] = []
    for number, vector in enumerate(vectors):
        near = vectors[kept] @ vector >= NEAR * UNIT**2
        if not (near & np.isin(searched[kept, 0], searched[number])).any():
            kept.append(number)
    return kept


@pytest.mark.parametrize(("chunk", "block"), [(7, 3), (64, 4096)])
def test_they_are_looked_for_in_lists(
    monkeypatch: pytest.MonkeyPatch, chunk: int, block: int
) -> None:
    # Kills: all earlier texts in place of a list's, a text's first list alone, a text that is put
    # in another list's place, blocks that leave out a text; and within a chunk, near texts that
    # are joined whatever their lists, by which chunks would decide.
    monkeypatch.setattr(job, "_CHUNK", chunk)
    monkeypatch.setattr(job, "_BLOCK", block)
    generator = np.random.default_rng()
    vectors = at(generator.uniform(0, 2 * np.pi, 400))
    searched = np.array([generator.permutation(6)[:3] for _ in range(400)])
    told: list[int] = []
    found = apart(vectors, searched, told.append).tolist()
    assert found == defined(vectors, searched)
    assert told[-1] == 400
    every = apart(vectors, np.zeros((400, 1), np.int64)).tolist()
    assert every == defined(vectors, np.zeros((400, 1), np.int64))
    assert len(every) < len(found) < 400
