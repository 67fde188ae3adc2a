"""The fit over all documents: batches, passes, and going on after any interruption."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mechanisms.factors import Prior
from pipelines.reconstruction import fit as module
from pipelines.reconstruction.fit import PASSES, Fitted, Work, fit

DOCUMENTS, BINS, DECAY = 200, 12, 0.4


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several batches, and a first guess from some documents alone."""
    monkeypatch.setattr(module, "_BATCH", 64)
    monkeypatch.setattr(module, "_GUESSED_FROM", 100)


@pytest.fixture(scope="module")
def counts() -> np.ndarray:
    generator = np.random.default_rng()
    of = generator.integers(0, 3, DOCUMENTS)
    law = np.kron(np.eye(3), np.full((1, BINS // 3), 20.0)) + 0.5
    share = 1 - DECAY
    noise = [generator.geometric(share, (DOCUMENTS, BINS)) for _ in range(2)]
    found: np.ndarray = generator.poisson(law[of]) + noise[0] - noise[1]
    return found.astype(np.int32)


def begun(folder: Path, counts: np.ndarray) -> tuple[Work, Prior]:
    folder.mkdir()
    work = Work(folder, *counts.shape)
    work.noisy[:] = counts
    totals = np.maximum(counts.sum(axis=0), 1.0)
    return work, Prior(totals / totals.sum(), totals.sum() / DOCUMENTS, 8)


def same(one: Fitted, other: Fitted) -> bool:
    return np.array_equal(one.factors.parameters, other.factors.parameters) and np.array_equal(
        one.shapes, other.shapes
    )


def test_every_document_is_told_of_at_every_step(tmp_path: Path, counts: np.ndarray) -> None:
    work, prior = begun(tmp_path / "whole", counts)
    told: list[int] = []
    found = fit(work, prior, DECAY, 7, told.append)
    assert sum(told) == DOCUMENTS * (PASSES + 2)
    assert found.prior.factors == len(found.factors.parameters) == found.shapes.shape[1] == 7
    # A seed of its own gives another start, and so other numbers.
    other, prior = begun(tmp_path / "other", counts)
    assert not same(found, fit(other, prior, DECAY, 8, told.append))


def test_it_goes_on_after_any_interruption(tmp_path: Path, counts: np.ndarray) -> None:
    # Kills: shapes that are written over within a pass, which a repetition would then start from.
    whole = fit(*begun(tmp_path / "whole", counts), DECAY, 7, lambda _: None)
    batches = -(-DOCUMENTS // 64)
    moments = np.random.default_rng().integers(1, batches * (PASSES + 2), 6)
    for moment in moments.tolist():
        work, prior = begun(tmp_path / f"cut-{moment}", counts)
        left = moment

        def stop(_: int) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fit(work, prior, DECAY, 7, stop)
        told: list[int] = []
        again = fit(Work(work.folder, *counts.shape), prior, DECAY, 7, told.append)
        assert same(again, whole), moment
        if moment > 3 * batches:
            assert sum(told) < DOCUMENTS * (PASSES + 2)
        work.clear()
        assert not work.folder.exists()
