"""Random votes of documents, their sizes, and the law of the noise on their sums."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from quietcorpus.mechanisms.users.clipped_sum import STEPS
from quietcorpus.mechanisms.votes.votes import Votes


def squares(change: np.ndarray) -> int:
    return sum(int(one) ** 2 for one in change.ravel())


def size(change: np.ndarray) -> int:
    return sum(abs(int(one)) for one in change.ravel())


def drawn(
    generator: np.random.Generator, documents: int, nearest: int, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Items and strata of so many documents, of whom a third are on one text."""
    items = [
        np.arange(nearest) if generator.random() < 1 / 3 else generator.permutation(shape[1])
        for _ in range(documents)
    ]
    strata = generator.integers(0, shape[0], documents)
    return np.array([own[:nearest] for own in items], np.int64).reshape(-1, nearest), strata


def gaussian_masses(votes: Votes) -> npt.NDArray[np.float64]:
    """The chance of each number that the noise of sums is, as the sampler has it."""
    law, reach = votes.noise.law, int(8 * votes.noise.deviation) + STEPS
    tails = [law.tail(k, 128)[0] / 2**128 for k in range(reach + 2)]
    upper = np.array(tails[:-1]) - np.array(tails[1:])
    masses = np.concatenate([upper[:0:-1], upper])
    assert masses.sum() == pytest.approx(1, abs=1e-12)
    return masses
