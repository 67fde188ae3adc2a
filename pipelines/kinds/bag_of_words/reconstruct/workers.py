"""The workers of a reconstruction: threads of this process, or Ray's actors with whole files."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from quietcorpus.evaluation.calibration import limited

from ....runners.parallel import Backend, processors, ray_session, require_ray, threads
from .part import FilePart, Source

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
