"""Fitting the factors to all documents, pass by pass, and going on where a run was stopped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from mechanisms.factors import (
    Directions,
    Factors,
    Prior,
    directions,
    first_factors,
    first_shapes,
    step,
    updated,
)
from pipelines.reconstruction.progress import Told

PASSES = 60
_BATCH, _GUESSED_FROM = 1024, 8192
_T = TypeVar("_T")


class Fitted(NamedTuple):
    """What is known after the fit.

    Attributes:
        prior: with as many factors as there are.
        factors: their laws.
        shapes: of the documents' weights, (n, T).
    """

    prior: Prior
    factors: Factors
    shapes: npt.NDArray[np.float32]


@dataclass(frozen=True)
class Work:
    """A folder for what a fit has come to.

    Attributes:
        folder: a local one, of this fit alone.
        documents, bins: n, K.
    """

    folder: Path
    documents: int
    bins: int

    @property
    def noisy(self) -> np.memmap:
        """The noisy counts, (n, K), on disk."""
        return self._array("noisy", np.int32, self.bins)

    def shapes(self, passes: int, factors: int) -> np.memmap:
        """The Gamma shapes of the documents' weights after so many passes, (n, T), on disk.

        Those of the pass before are kept as well, so that one that was cut short is done again.
        """
        return self._array(f"shapes-{passes % 2}", np.float32, factors)

    def _array(self, name: str, kind: type[np.number], width: int) -> np.memmap:
        path, shape = self.folder / name, (self.documents, width)
        if path.exists():
            return np.memmap(path, kind, "r+", shape=shape)
        return np.memmap(path, kind, "w+", shape=shape)

    def done(self) -> tuple[int, Factors] | None:
        """The passes that are done, and the factors after them."""
        path = self.folder / "factors.npz"
        if not path.exists():
            return None
        with np.load(path) as found:
            return int(found["passes"]), Factors(found["parameters"])

    def keep(self, passes: int, factors: Factors) -> None:
        """Go on from here."""
        path = self.folder / "next.npz"
        np.savez(path, passes=passes, parameters=factors.parameters)
        os.replace(path, self.folder / "factors.npz")

    def clear(self) -> None:
        """Nothing is left."""
        shutil.rmtree(self.folder, ignore_errors=True)


def fit(work: Work, prior: Prior, decay: float, seed: int, told: Told) -> Fitted:
    """Fit the model to the documents whose noisy counts `work` holds, from where that left off.

    Args:
        work: where everything lies.
        prior: the prior, with the most factors that there may be.
        decay: of the noise.
        seed: of the first guess.
        told: is told of each step that is done for some documents.
    """
    noisy = work.noisy
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:

        def over(act: Callable[[slice], _T]) -> Iterator[_T]:
            batches = [slice(start, start + _BATCH) for start in range(0, len(noisy), _BATCH)]
            for batch, found in zip(batches, pool.map(act, batches), strict=True):
                yield found
                told(len(noisy[batch]))

        found = work.done()
        if found is None:
            signal = _directions(over, noisy, decay, prior)
            prior = replace(prior, factors=min(prior.factors, signal.supported))
            factors = _first(noisy, signal, prior, seed)
            shapes = work.shapes(0, prior.factors)

            def begin(batch: slice) -> None:
                shapes[batch] = first_shapes(signal.denoised(noisy[batch]), factors, prior)

            for _ in over(begin):
                pass
            found = 0, factors
            work.keep(*found)
        begun, factors = found
        prior = replace(prior, factors=len(factors.parameters))
        for passes in range(begun, PASSES):
            old, new = (work.shapes(number, prior.factors) for number in (passes, passes + 1))
            climb = partial(_climb, noisy, old, new, factors.geometric_mean, prior, decay)
            factors = updated(prior, sum(over(climb), np.zeros((prior.factors, work.bins))))
            work.keep(passes + 1, factors)
    return Fitted(prior, factors, work.shapes(PASSES, prior.factors))


def _climb(
    noisy: npt.NDArray[np.int32],
    old: npt.NDArray[np.float32],
    new: npt.NDArray[np.float32],
    topics: npt.NDArray[np.float32],
    prior: Prior,
    decay: float,
    batch: slice,
) -> npt.NDArray[np.float32]:
    new[batch], tokens = step(noisy[batch], old[batch], topics, prior, decay)
    return tokens


def _directions(
    over: Callable[[Callable[[slice], np.ndarray]], Iterator[np.ndarray]],
    noisy: npt.NDArray[np.int32],
    decay: float,
    prior: Prior,
) -> Directions:
    def gram(batch: slice) -> np.ndarray:
        rows = noisy[batch].astype(np.float32)
        return rows.T @ rows

    total = np.zeros((noisy.shape[1], noisy.shape[1]))
    for own in over(gram):
        total += own
    variance = 2 * decay / (1 - decay) ** 2
    return directions(total, len(noisy), variance, prior.histogram * prior.length)


def _first(noisy: npt.NDArray[np.int32], signal: Directions, prior: Prior, seed: int) -> Factors:
    generator = np.random.default_rng(seed)
    size = min(_GUESSED_FROM, len(noisy))
    chosen = np.sort(generator.choice(len(noisy), size, replace=False))
    return first_factors(signal.denoised(noisy[chosen]), prior, generator)
