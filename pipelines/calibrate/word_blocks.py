"""The measurement of a calibration's blocks, by threads of this process or by a Ray cluster."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, Literal

from quietcorpus.evaluation.calibration import Run, limited
from quietcorpus.evaluation.simulation import Simulator
from quietcorpus.evaluation.tallies import Block, Tally, Task
from quietcorpus.pipelines.engine.ray_session import ray_session, require_ray
from quietcorpus.pipelines.terminal.progress import shown

Engine = Literal["local", "ray"]


@contextlib.contextmanager
def engine(name: Engine, workers: int | None, *, progress: bool) -> Iterator[Run]:
    """Yield a function that runs blocks, with progress; raises InputError if Ray is missing.

    Args:
        name: `local` for threads, or `ray` for the cluster that RAY_ADDRESS names, else for one
            that is started on this machine and ends with the context. The nodes of a cluster need
            this version of quietcorpus.
        workers: the number of threads, or of processes of a cluster started here; None for one per
            processor.
        progress: whether to show a bar.
    """
    count = workers or len(os.sched_getaffinity(0))
    run = _threads(count) if name == "local" else _ray(count)
    with run as tallies:
        yield lambda task, blocks: shown(
            tallies(task, blocks),
            len(blocks),
            "epsilon " + ", ".join(f"{epsilon:.4g}" for epsilon in task.epsilons),
            "blocks of words",
            bar=progress,
        )


@contextlib.contextmanager
def _threads(count: int) -> Iterator[Run]:
    pool = ThreadPoolExecutor(count)

    def run(task: Task, blocks: Sequence[Block]) -> Iterator[Tally]:
        for future in as_completed([pool.submit(task, block) for block in blocks]):
            yield future.result()

    try:
        yield run
    finally:  # even after Ctrl-C: running blocks end, waiting ones are dropped
        pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _ray(count: int) -> Iterator[Run]:
    require_ray()
    with ray_session(count) as ray:
        measured = ray.remote(_measured)
        stored: dict[int, tuple[Simulator, Any]] = {}  # holds the simulator: its id is not reused

        def run(task: Task, blocks: Sequence[Block]) -> Iterator[Tally]:
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
) -> Tally:
    with limited():
        return Task(simulator, epsilons, draws, held)(block)
