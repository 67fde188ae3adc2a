"""The fit of the factors to all documents, by workers that hold whole files.

The fit of the factors to all documents, pass by pass, with resumption of a stopped run.

Coordinate ascent converges to one of many points, and each follows the noise in its own way.
Several fits therefore run side by side, from as many starts, and documents are drawn from their
average.
"""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from quietcorpus.evaluation.calibration import limited
from quietcorpus.mechanisms.accounting.factors import (
    Directions,
    Factors,
    Prior,
    directions,
    first_factors,
    first_shapes,
    step,
    updated,
)

from ....runners.parallel import Backend, processors, ray_session, require_ray, threads
from ....storage.files import write_whole
from ....terminal.progress import Steps
from ..card import PASSES, STARTS
from .noisy_release import FilePart, Source

_LOGGER = logging.getLogger("quietcorpus.reconstruct")

Sums = npt.NDArray[np.float64]
Advance = Callable[[int], object]
"""A callback that gets the number of documents for which one more step is done."""
_T = TypeVar("_T")


class Task(Protocol):
    """A computation that is done once for every document. It is sent to other processes."""

    def __call__(self, part: FilePart, rows: slice) -> np.ndarray:
        """Process some documents of a part, and return an array to be summed over all."""

    def done(self, part: FilePart) -> None:
        """Finish a part, after all of its documents."""


class Workers(Protocol):
    """The holders of the documents. Sums are the same, bit for bit, for all kinds of workers.

    Attributes:
        rows: the number of documents of each part.
    """

    @property
    def rows(self) -> Sequence[int]: ...

    def total(self, task: Task) -> Sums:
        """Do a task, and return its sums over all documents, added up in the documents' order."""

    def each(self, act: Callable[[FilePart], _T]) -> Iterator[_T]:
        """Apply a function once to every part, and yield the results in the parts' order."""


@contextlib.contextmanager
def workers(
    backend: Backend, source: Source, folder: Callable[[], Path], advance: Advance
) -> Iterator[Workers]:
    """Yield workers that have read the noisy counts; raises InputError if Ray is missing.

    Meanwhile BLAS has one thread, also in this process.

    Args:
        backend: `local` for one thread per processor, or `ray` for the cluster that RAY_ADDRESS
            names, else for one that is started on this machine and ends with the context. The nodes
            of a cluster need this version of quietcorpus, and must find the release at the same
            place.
        source: the source of the noisy counts.
        folder: finds a folder on a worker's machine, for its arrays.
        advance: is called with the number of documents that a task is done for.
    """
    if backend == "local":
        with limited(), threads(processors()) as pool:
            yield _Threads(pool, source, folder(), advance)
        return
    require_ray()
    remedy = (
        "the same command goes on from the last pass, as far as workers' folders are still there"
    )
    with (
        limited(),
        ray_session(processors(), work="reconstruction", remedy=remedy) as ray,
    ):
        yield _Actors(ray, source, folder, advance)


class _Threads:
    def __init__(
        self, pool: ThreadPoolExecutor, source: Source, folder: Path, advance: Advance
    ) -> None:
        self._pool, self._advance = pool, advance
        self.rows = [file.rows for file in source.files]
        self._parts = list(
            pool.map(lambda number: FilePart(source, number, folder), range(len(source.files)))
        )

    def total(self, task: Task) -> Sums:
        jobs = ((part, rows) for part in self._parts for rows in part.batches)
        # Results come in the order of the jobs: every part takes as many as it has batches.
        found = self._pool.map(lambda job: task(*job), jobs)
        return _sum(self._of_part(task, part, found) for part in self._parts)

    def _of_part(self, task: Task, part: FilePart, found: Iterator[np.ndarray]) -> Sums:
        def batches() -> Iterator[np.ndarray]:
            for rows, own in zip(part.batches, islice(found, len(part.batches)), strict=True):
                yield own
                self._advance(rows.stop - rows.start)

        total = _sum(batches())
        task.done(part)
        return total

    def each(self, act: Callable[[FilePart], _T]) -> Iterator[_T]:
        return self._pool.map(act, self._parts)


class _Actors:
    def __init__(
        self, ray: Any, source: Source, folder: Callable[[], Path], advance: Advance
    ) -> None:
        self._ray, self._advance = ray, advance
        self.rows = [file.rows for file in source.files]
        count = min(len(self.rows), max(1, int(ray.cluster_resources().get("CPU", 1))))
        actor, shared = ray.remote(num_cpus=1)(_Actor), ray.put(source)
        actors = [
            actor.remote(shared, range(first, len(self.rows), count), folder)
            for first in range(count)
        ]
        self._of = [actors[number % count] for number in range(len(self.rows))]
        ray.get([actor.read.remote() for actor in actors])

    def total(self, task: Task) -> Sums:
        shared = self._ray.put(task)
        return _sum(self._each("total", shared))

    def each(self, act: Callable[[FilePart], _T]) -> Iterator[_T]:
        return self._each("act", self._ray.put(act))

    def _each(self, method: str, shared: Any) -> Iterator[Any]:
        found = [
            getattr(actor, method).remote(number, shared) for number, actor in enumerate(self._of)
        ]
        for rows, one in zip(self.rows, found, strict=True):
            yield self._ray.get(one)
            if method == "total":
                self._advance(rows)


class _Actor:
    """A Ray actor that holds some of the parts."""

    def __init__(self, source: Source, numbers: Iterable[int], folder: Callable[[], Path]) -> None:
        FileSystems.set_options(PipelineOptions([]))
        self._limits = limited()
        self._source, self._numbers, self._folder = source, numbers, folder
        self._parts: dict[int, FilePart] = {}

    def read(self) -> None:
        """Read the parts; unlike a constructor's, its exceptions reach the driver as they are."""
        place = self._folder()
        self._parts = {number: FilePart(self._source, number, place) for number in self._numbers}

    def total(self, number: int, task: Task) -> Sums:
        part = self._parts[number]
        total = _sum(task(part, rows) for rows in part.batches)
        task.done(part)
        return total

    def act(self, number: int, act: Callable[[FilePart], _T]) -> _T:
        return act(self._parts[number])


def _sum(arrays: Iterable[np.ndarray]) -> Sums:
    # One order of additions, in float64, for all kinds of workers: hence equal bits.
    total: Any = 0.0
    for array in arrays:
        total = total + array.astype(np.float64)
    return np.asarray(total)


STEPS_TO_FIT = 2
_SAMPLE = 8192
Counts = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]


class Fitted(NamedTuple):
    """The model after some passes; the workers hold the documents' weights.

    Attributes:
        passes: the number of passes.
        prior: the prior, with the number of factors that are fitted.
        fits: the factors' laws, for each start.
    """

    passes: int
    prior: Prior
    fits: tuple[Factors, ...]


@dataclass(frozen=True)
class SavedFactors:
    """The file that keeps the factors after every pass.

    Attributes:
        path: the path of the file, on this machine.
    """

    path: Path

    def load(self, prior: Prior) -> Fitted | None:
        """Load what an earlier run saved; None if there is nothing."""
        try:
            with np.load(self.path) as found:
                passes, parameters = int(found["passes"]), found["parameters"]
        except (OSError, ValueError, KeyError, BadZipFile):  # missing or incomplete
            return None
        prior = replace(prior, factors=parameters.shape[1])
        return Fitted(passes, prior, tuple(map(Factors, parameters)))

    def save(self, fitted: Fitted) -> None:
        """Save the model, from which a later run can go on."""
        content = io.BytesIO()
        parameters = [factors.parameters for factors in fitted.fits]
        np.savez(content, passes=fitted.passes, parameters=parameters)
        write_whole(str(self.path), content.getvalue())


def fit(
    workers: Workers,
    prior: Prior,
    decay: float,
    seed: int,
    kept: SavedFactors,
    steps: Steps | None = None,
    note: Callable[[int], str] | None = None,
) -> Fitted:
    """Fit the model to the documents of all workers, from where an earlier run left off.

    Args:
        workers: the workers that hold the documents.
        prior: the prior, with the largest number of factors allowed.
        decay: the decay of the noise's law.
        seed: the seed of the first guesses.
        kept: the file that keeps the factors after every pass.
        steps: the steps of a command, of which the fit is `STEPS_TO_FIT`; they are not shown by
            default.
        note: says more about the pass that is under way.
    """
    steps = steps or Steps(STEPS_TO_FIT, bar=False)
    with steps.step("looking for topics"):
        fitted = kept.load(prior)
        if fitted is None or not all(workers.each(partial(_knows, passes=fitted.passes))):
            fitted = _first(workers, prior, decay, seed)
            kept.save(fitted)
        else:
            _LOGGER.info("going on after %d of %d passes of an earlier run", fitted.passes, PASSES)
    with steps.step("fitting topics", PASSES, "passes", done=fitted.passes, note=note) as display:
        while fitted.passes < PASSES:
            geometric = np.stack([factors.geometric_mean for factors in fitted.fits])
            tokens = workers.total(_Pass(fitted.passes, geometric, fitted.prior, decay))
            fits = tuple(updated(fitted.prior, own) for own in tokens)
            fitted = Fitted(fitted.passes + 1, fitted.prior, fits)
            kept.save(fitted)
            display.show(fitted.passes)
    return fitted


def sample(rows: Sequence[int], seed: int) -> list[npt.NDArray[np.int64]]:
    """Sample rows of every part to represent all documents, where some are enough."""
    size = min(_SAMPLE, sum(rows))
    chosen = np.sort(np.random.default_rng(seed).choice(sum(rows), size, replace=False))
    ends = np.cumsum(rows)
    return [
        chosen[np.searchsorted(chosen, end - own) : np.searchsorted(chosen, end)] - (end - own)
        for own, end in zip(rows, ends, strict=True)
    ]


def _noisy(part: FilePart, chosen: list[npt.NDArray[np.int64]]) -> Counts:
    found: Counts = part.noisy[chosen[part.number]]
    return found


def _knows(part: FilePart, passes: int) -> bool:
    return part.has_shapes(passes)


def _first(workers: Workers, prior: Prior, decay: float, seed: int) -> Fitted:
    gram = workers.total(_Gram())
    variance = 2 * decay / (1 - decay) ** 2  # of two-sided geometric noise
    signal = directions(gram, sum(workers.rows), variance, prior.histogram * prior.length)
    prior = replace(prior, factors=min(prior.factors, signal.supported))
    seen = np.concatenate(list(workers.each(partial(_noisy, chosen=sample(workers.rows, seed)))))
    denoised = signal.denoised(seen)

    def guess(start: int) -> Factors:
        return first_factors(denoised, prior, np.random.default_rng([seed, start]))

    with ThreadPoolExecutor(processors()) as pool:
        fits = tuple(pool.map(guess, range(STARTS)))
    workers.total(_Begin(signal, fits, prior))
    return Fitted(0, prior, fits)


@dataclass(frozen=True)
class _Gram:
    """The sum of outer products of the noisy counts."""

    def __call__(self, part: FilePart, rows: slice) -> Floats:
        noisy = part.noisy[rows].astype(np.float32)
        return noisy.T @ noisy

    def done(self, part: FilePart) -> None:
        """Do nothing: no array was written."""


@dataclass(frozen=True)
class _Begin:
    """The documents' first weights, from denoised counts."""

    signal: Directions
    fits: tuple[Factors, ...]
    prior: Prior

    def __call__(self, part: FilePart, rows: slice) -> Floats:
        denoised = self.signal.denoised(part.noisy[rows])
        shapes = part.next_shapes(0, len(self.fits), self.prior.factors)
        for own, factors in zip(shapes, self.fits, strict=True):
            own[rows] = first_shapes(denoised, factors, self.prior)
        return np.zeros(0, np.float32)

    def done(self, part: FilePart) -> None:
        part.finish_shapes(0)


@dataclass(frozen=True)
class _Pass:
    """A step for every document and start, with tokens summed by factor and bin, (starts, T, K)."""

    passes: int
    topics: Floats
    prior: Prior
    decay: float

    def __call__(self, part: FilePart, rows: slice) -> Floats:
        shape = self.topics.shape[:2]
        old, new = part.shapes(self.passes, *shape), part.next_shapes(self.passes + 1, *shape)
        noisy, tokens = part.noisy[rows], np.empty_like(self.topics)
        for start, topics in enumerate(self.topics):
            own = old[start, rows]
            new[start, rows], tokens[start] = step(noisy, own, topics, self.prior, self.decay)
        return tokens

    def done(self, part: FilePart) -> None:
        part.finish_shapes(self.passes + 1)
