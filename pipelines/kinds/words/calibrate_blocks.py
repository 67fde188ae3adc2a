"""The measurement of a calibration's blocks, by threads of this process or by a Ray cluster."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from typing import Any

import numpy as np
import numpy.typing as npt

from quietcorpus.evaluation.calibration import Run, limited
from quietcorpus.evaluation.simulation import Simulator
from quietcorpus.evaluation.tallies import WORDS_A_BLOCK, Block, BlockTask, DrawCounts

from ...runners.parallel import Backend, processors, ray_session, require_ray, threads

_TIMED_DRAWS = 32


@contextlib.contextmanager
def runner(backend: Backend, workers: int | None) -> Iterator[Run]:
    """Yield a function that runs blocks; raises InputError if Ray is missing.

    Args:
        backend: `local` for threads, or `ray` for the cluster that RAY_ADDRESS names, else for one
            that is started on this machine and ends with the context. The nodes of a cluster need
            this version of quietcorpus.
        workers: the number of threads, or of processes of a cluster started here; None for one per
            processor.
    """
    count = workers or processors()
    with _threads(count) if backend == "local" else _ray(count) as run:
        yield run


def told(run: Run, advance: Callable[[int], object]) -> Run:
    """Return a function that runs blocks likewise, and tells how many more words are measured."""

    def telling(task: BlockTask, blocks: Sequence[Block]) -> Iterator[DrawCounts]:
        for counts in run(task, blocks):
            yield counts
            advance(counts.unchanged.size)

    return telling


def timed(simulator: Simulator, epsilons: Sequence[float], words: npt.NDArray[np.int64]) -> float:
    """Return the seconds that one thread takes for a draw of a word, the mean over epsilons.

    Zero if there are none.
    """
    if not epsilons:
        return 0.0
    block = Block(0, words[:WORDS_A_BLOCK], np.random.SeedSequence(1))
    task = BlockTask(simulator, tuple(epsilons), _TIMED_DRAWS, 1)
    with limited():
        task(block)  # compiles and loads
        begun = time.perf_counter()
        task(block)
    return (time.perf_counter() - begun) / (len(epsilons) * len(block.words) * _TIMED_DRAWS)


@contextlib.contextmanager
def _threads(count: int) -> Iterator[Run]:
    with threads(count) as pool:

        def run(task: BlockTask, blocks: Sequence[Block]) -> Iterator[DrawCounts]:
            for future in as_completed([pool.submit(task, block) for block in blocks]):
                yield future.result()

        yield run


@contextlib.contextmanager
def _ray(count: int) -> Iterator[Run]:
    require_ray()
    with ray_session(count, work="calibration") as ray:
        measured = ray.remote(_measured)
        stored: dict[int, tuple[Simulator, Any]] = {}  # holds the simulator: its id is not reused

        def run(task: BlockTask, blocks: Sequence[Block]) -> Iterator[DrawCounts]:
            key = id(task.simulator)
            if key not in stored:  # the index goes into the object store once
                stored[key] = task.simulator, ray.put(task.simulator)
            rest = (task.epsilons, task.draws, task.held)
            pending = [measured.remote(stored[key][1], *rest, block) for block in blocks]
            while pending:
                done, pending = ray.wait(pending)
                yield from ray.get(done)

        yield run


def _measured(
    simulator: Simulator, epsilons: tuple[float, ...], draws: int, held: int, block: Block
) -> DrawCounts:
    with limited():
        return BlockTask(simulator, epsilons, draws, held)(block)
