"""A million documents through Spark: memory of every process, and two workers against one.

python benchmarks/soak.py --corpus ../shared/data/imdb_reviews.parquet
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pyarrow.parquet as pq
from fault_lab import Lab
from running_clusters import Cluster, spark, stop

SAMPLE_SECONDS = 1.0
MEGABYTE = 1 << 20
OF_WORKERS = {"qc-worker": "Python worker", "qc-fork-server": "forks Python workers"}


class Memory(threading.Thread):
    """A sampler of resident memory, over the processes of the cluster and the launcher."""

    def __init__(self, roots: list[int]) -> None:
        super().__init__(daemon=True)
        self._roots = roots
        self.sizes: dict[str, list[float]] = defaultdict(list)
        self.busy: dict[str, float] = {}
        self.done = False

    def run(self) -> None:
        while not self.done:
            for process in self._processes():
                with suppress(psutil.Error):  # it may have ended meanwhile
                    name = f"{role(process)} {process.pid}"
                    self.sizes[name].append(process.memory_info().rss / MEGABYTE)
                    times = process.cpu_times()
                    self.busy[name] = times.user + times.system
            time.sleep(SAMPLE_SECONDS)

    def _processes(self) -> set[psutil.Process]:
        # Forks are nobody's children once the first worker of their executor has ended.
        named = psutil.process_iter(["name"])
        found = {one for one in named if one.info["name"] in OF_WORKERS}
        for root in self._roots:
            with suppress(psutil.Error):
                parent = psutil.Process(root)
                found |= {parent, *parent.children(recursive=True)}
        return found

    def table(self) -> str:
        """Tabulate each process's memory by quarters of its life, and its processor time."""
        lines = [
            "| process | 1/4 | 1/2 | 3/4 | end | most, MB | processor, s |",
            "|---|---|---|---|---|---|---|",
        ]
        for name, sizes in self.sizes.items():
            if len(sizes) > 20:
                quarters = [sizes[len(sizes) * i // 4 - 1] for i in (1, 2, 3, 4)]
                cells = " | ".join(f"{size:,.0f}" for size in (*quarters, max(sizes)))
                lines.append(f"| {name.rsplit(' ', 1)[0]} | {cells} | {self.busy[name]:.0f} |")
        return "\n".join(lines)


def role(process: psutil.Process) -> str:
    """Return the role of a process, by its name or its command line."""
    if found := OF_WORKERS.get(process.name()):
        return found
    text = " ".join(process.cmdline())
    for part, name in {
        "quietcorpus release": "launcher",
        "quietcorpus.pipelines.runners.job_server": "guardian",
        "deploy.master.Master": "Spark master",
        "deploy.worker.Worker": "Spark worker",
        "CoarseGrainedExecutorBackend": "executor",
        "job-server.jar": "job server",
        "quietcorpus-worker": "stands for a Python worker",
    }.items():
        if part in text:
            return name
    return "other"


def pin(workers: list[int]) -> None:
    """Pin each worker, and all that it starts, to one core: Spark only counts cores."""
    for core, pid in enumerate(workers):
        for thread in psutil.Process(pid).threads():
            os.sched_setaffinity(thread.id, {core})


def measure(lab: Lab, cluster: Cluster, name: str) -> tuple[float, Memory]:
    """Run a release; return its seconds and its memory."""
    run = lab.start_locally(name, *cluster.options)
    memory = Memory([*cluster.pids(), run.process.pid])
    memory.start()
    code, line = run.finish()
    memory.done = True
    assert code == 0, line
    return time.monotonic() - run.begun, memory


def main() -> None:
    """Print the table and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", required=True, help="Parquet with a column `text`")
    parser.add_argument("--copies", type=int, default=20, help="how often the corpus is repeated")
    parser.add_argument("--pin", action="store_true", help="hold each worker to a core of its own")
    given = parser.parse_args()
    seconds = {}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        lab = Lab(Path(folder), stack)
        documents = lab.keep(pq.read_table(given.corpus, columns=["text"]), given.copies)
        for workers in (2, 1):
            place = Path(folder) / f"spark-{workers}"
            place.mkdir()
            cluster = spark(place, lab.s3.environment, WORKERS=str(workers))
            try:
                if given.pin:
                    pin(cluster.pids()[-workers:])
                seconds[workers], memory = measure(lab, cluster, f"soak-{workers}")
            finally:
                stop(cluster)
            rate = documents / seconds[workers]
            print(f"{workers} workers: {seconds[workers]:.0f} s, {rate:,.0f} documents/s")
            print(memory.table(), flush=True)
    print(f"two workers against one: {seconds[1] / seconds[2]:.2f}x")


if __name__ == "__main__":
    sys.exit(main())
