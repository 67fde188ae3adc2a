"""The outcome of a release when something breaks in the middle of it.

The output is the table of docs/measurements/faults.md.

    make faults

Every run is the real command on a real S3 server, with two processes of the local engine or on a
Spark cluster of two workers. A fault strikes once a quarter of the shards are written. The expected
result is that of an undisturbed run with the same key. Disks are mounted and networks are cut, by
`nft`, as the superuser alone can.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pyarrow.parquet as pq
from fault_lab import Lab, Run
from marked_tables import write_tables
from running_clusters import below, spark, stop
from s3_proxy import Proxy
from s3_server import BUCKET

PARTITION = "quietcorpus_faults"
MULTI_PROCESS = "two processes"
SPARK = "Spark"
SPECULATIVE = (
    "--job_server_jvm_properties=-Dspark.speculation=true",
    "--job_server_jvm_properties=-Dspark.speculation.quantile=0.25",
    "--job_server_jvm_properties=-Dspark.speculation.multiplier=1.2",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", required=True, help="Parquet with a column `text`")
    parser.add_argument("--copies", type=int, default=3, help="how often the corpus is repeated")
    parser.add_argument("--only", default="", help="a pattern for what to run")
    parser.add_argument("--output", type=Path, help="a Markdown file with a section of tables")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        lab = Lab(Path(folder), stack)
        documents = lab.upload(pq.read_table(given.corpus, columns=["text"]), given.copies)
        lines = list(outcomes(lab, given.only))
        told = lab.told_secrets()
    found = TABLE.format(documents=documents, lines="\n".join(lines), told=told)
    print(found)
    if given.output:
        write_tables(given.output, found)


TABLE = """{documents:,} film reviews in each run.

| engine | fault | outcome | seconds |
|---|---|---|---|
{lines}

After all runs, files that held the master key, the storage secret or a line of the corpus, among
logs, spools, work folders and released objects: {told}."""


# The docstrings of faults are cells of the table.


def undisturbed(run: Run) -> None:
    """Disturb nothing."""


def worker_killed(run: Run) -> None:
    """Kill a Python worker with SIGKILL."""
    run.workers()[0].kill()


def executor_lost(run: Run) -> None:
    """Kill an executor's JVM with SIGKILL."""
    assert run.lab.cluster
    run.lab.cluster.executors()[0].kill()


def cut_briefly(run: Run) -> None:
    """Cut the network between Spark's driver and its executors for thirty seconds."""
    _cut(run, 30)


def cut_for_long(run: Run) -> None:
    """Cut the network between Spark's driver and its executors for three minutes."""
    _cut(run, 180)


def _cut(run: Run, seconds: int) -> None:
    """Have the kernel drop what either side sends to the other; the launcher keeps its driver."""
    assert run.lab.cluster
    drivers = [one for one in below(run.process.pid, "-jar") if one.name() == "java"]
    executors = run.lab.cluster.executors()
    # Not all of their ports: executors serve Python workers, too, and the driver its launcher.
    ports = _used(executors, drivers) | _used(drivers, executors)
    assert ports, "no executor is connected"
    cut = ", ".join(map(str, ports))
    rules = "".join(f"tcp {end} {{ {cut} }} drop; " for end in ("sport", "dport"))
    chain = f"chain input {{ type filter hook input priority 0; {rules}}};"
    subprocess.run(["nft", f"table inet {PARTITION} {{ {chain} }}"], check=True)
    try:
        time.sleep(seconds)
    finally:
        subprocess.run(["nft", f"delete table inet {PARTITION}"], check=True)


def _used(clients: Sequence[psutil.Process], servers: Sequence[psutil.Process]) -> set[int]:
    """Return the ports of servers to which clients are connected."""
    there = {
        one.laddr.port
        for server in servers
        for one in server.net_connections("tcp")
        if one.status == psutil.CONN_LISTEN
    }
    return {
        one.raddr.port
        for client in clients
        for one in client.net_connections("tcp")
        if one.raddr and one.raddr.port in there
    }


def server_stopped(run: Run) -> None:
    """Stop the S3 server for ten seconds."""
    run.lab.s3.stop()
    time.sleep(10)
    run.lab.s3.start()


def server_gone(run: Run) -> None:
    """Stop the S3 server for a minute."""
    run.lab.s3.stop()
    time.sleep(60)
    run.lab.s3.start()


def slow_worker(run: Run) -> None:
    """Suspend a worker for thirty seconds."""
    worker = run.workers()[0]
    worker.suspend()
    threading.Timer(30, lambda: worker.is_running() and worker.resume()).start()


def launcher_killed(run: Run) -> None:
    """Kill the launcher with SIGKILL; the outcome is that of the same command, given again."""
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.communicate()


def memory_short(run: Run) -> None:
    """Give a worker no more memory than it has just then."""
    worker = run.workers()[0]
    size = worker.memory_info().vms
    worker.rlimit(psutil.RLIMIT_AS, (size, size))
    gone, _ = psutil.wait_procs([worker], timeout=60)
    print(f"    the worker {'ended' if gone else 'went on'}", file=sys.stderr)


def bit_flipped(run: Run) -> None:
    """Flip a bit of a staged file."""
    names = run.lab.reference.keys() - {"release.json"}
    while True:
        keys = run.lab.s3.keys("out/.")
        if staged := [key for key in keys if any(f"/{name}" in key for name in names)]:
            break
        assert run.process.poll() is None, "nothing was staged"
        time.sleep(0.05)
    staged = staged[0]
    content = bytearray(run.lab.s3.read(staged))
    content[len(content) // 2] ^= 1
    run.lab.s3.client().put_object(Bucket=BUCKET, Key=staged, Body=bytes(content))


def launched_twice(lab: Lab) -> tuple[str, float]:
    """Give the same command again meanwhile; the outcome is that of the launcher that goes on."""
    first = lab.start("local-twice", "--workers", "2")
    first.wait_for_the_middle()
    second = lab.start("local-twice", "--workers", "2")
    ends = {run.finish(): run for run in (first, second)}
    (refused, line), (code, said) = sorted(ends, reverse=True)
    assert code == 0 < refused, [*ends]
    told = "second" if ends[refused, line] is second else "first"
    print(f"    the {told} launcher is refused: {line}", file=sys.stderr)
    return lab.outcome(ends[code, said], code, said), time.monotonic() - first.begun


class _EveryTenth:
    """Stands for a pattern that every tenth request matches."""

    def __init__(self) -> None:
        self._requests = itertools.count(1)

    def search(self, _: str) -> bool:
        return next(self._requests) % 10 == 0


def store_throttles(lab: Lab) -> tuple[str, float]:
    """Have the S3 server refuse every tenth request, with 503 SlowDown."""
    with Proxy(lab.s3.endpoint) as proxy:
        proxy.refused, proxy.status = _EveryTenth(), (503, "SlowDown")  # type: ignore[assignment]
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        try:
            own = {"AWS_ENDPOINT_URL_S3": proxy.url}
            run = lab.start("local-throttled", "--workers", "2", environment=own)
            code, line = run.finish()
            print(f"    {len(proxy.seen)} requests", file=sys.stderr)
        finally:
            proxy.shutdown()
    return lab.outcome(run, code, line), time.monotonic() - run.begun


def clock_jumps(lab: Lab) -> tuple[str, float]:
    """Set the wall clock of launcher and workers an hour ahead for ten seconds."""
    run = lab.start("local-clock", "--workers", "2", environment=own_clock(lab))
    return jumped(run)


def one_clock_jumps(lab: Lab) -> tuple[str, float]:
    """Set the wall clock of one worker an hour ahead for ten seconds."""
    run = lab.start("local-one-clock", "--workers", "2", environment=own_clock(lab))
    return jumped(run, alone=True)


def clock_jumps_on_spark(lab: Lab) -> tuple[str, float]:
    """Set the wall clock of master, executors and Python workers an hour ahead for ten seconds."""
    place = Path(tempfile.mkdtemp(dir=lab.folder))
    cluster = spark(place, lab.of_clusters | own_clock(lab))
    try:
        return jumped(lab.start("spark-clock", *cluster.options))
    finally:
        stop(cluster)


def own_clock(lab: Lab) -> dict[str, str]:
    """Return the environment of processes whose wall clock `jumped` sets."""
    # `libfaketime` 0.9.10 makes every `time.sleep` fail if it leaves monotonic clocks alone.
    library = lab.folder / "clock_ahead.so"
    source = Path(__file__).with_name("clock_ahead.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return {"LD_PRELOAD": str(library), "CLOCK_AHEAD_FILE": str(lab.folder / "clock")}


def jumped(run: Run, *, alone: bool = False) -> tuple[str, float]:
    """Return the outcome of a run in whose middle the clock is ahead, and its seconds."""
    run.wait_for_the_middle()
    where = run.workers()[0].pid if alone else ""
    for ahead, seconds in ((3600, 10), (0, 0)):
        (run.lab.folder / "clock.next").write_text(f"{ahead} {where}\n")
        (run.lab.folder / "clock.next").replace(run.lab.folder / "clock")
        time.sleep(seconds)
    code, line = run.finish()
    return run.lab.outcome(run, code, line), time.monotonic() - run.begun


@contextmanager
def small_disk(lab: Lab, kilobytes: int) -> Iterator[Path]:
    """Mount a small disk, and yield its place."""
    place = Path(tempfile.mkdtemp(dir=lab.folder))
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(place)], check=True
    )
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def disturbed(
    lab: Lab, name: str, fault: Callable[[Run], None], *options: str
) -> tuple[str, float]:
    """Return the outcome of a run with a fault in its middle, and its seconds."""
    run = lab.start(name, *options)
    run.wait_for_the_middle()
    fault(run)
    if fault is launcher_killed:
        begun = run.begun
        run = lab.start(name, *options)
        run.begun = begun
    code, line = run.finish()
    return lab.outcome(run, code, line), time.monotonic() - run.begun


def full_disk_locally(lab: Lab, kilobytes: int = 16 << 10) -> tuple[str, float]:
    """Let two processes write a release to a disk that is too small for it."""
    with small_disk(lab, kilobytes) as disk:
        run = lab.start("full", "--workers", "2", output=str(disk / "released" / "out"))
        code, line = run.finish()
        return lab.outcome(run, code, line), time.monotonic() - run.begun


def full_disk_on_spark(lab: Lab) -> tuple[str, float]:
    """Fill the disk of a cluster's workers to the last byte, in the middle of a run."""
    with small_disk(lab, 2 << 20) as disk:
        cluster = spark(disk, lab.of_clusters)
        try:
            run = lab.start("spark-full", *cluster.options)
            run.wait_for_the_middle()
            with (disk / "filler").open("wb", buffering=0) as filler:
                try:
                    while True:
                        filler.write(bytes(1 << 20))
                except OSError:
                    pass
            code, line = run.finish()
            return lab.outcome(run, code, line), time.monotonic() - run.begun
        finally:
            stop(cluster)


def outcomes(lab: Lab, only: str) -> Iterator[str]:
    """Yield the table's lines."""
    run = lab.start("reference", "--workers", "2")
    assert run.finish()[0] == 0
    lab.reference = lab.content(run.name)
    print(f"undisturbed: {time.monotonic() - run.begun:.0f} s", file=sys.stderr)
    local = ("--workers", "2")
    plain = [
        undisturbed,
        worker_killed,
        server_stopped,
        server_gone,
        launcher_killed,
        slow_worker,
    ]
    cases: list[tuple[str, str, Callable[[], tuple[str, float]]]] = [
        (
            MULTI_PROCESS,
            str(f.__doc__),
            lambda f=f: disturbed(lab, f"local-{f.__name__}", f, *local),
        )
        for f in (*plain, memory_short, bit_flipped)
    ]
    cases += [
        (MULTI_PROCESS, str(f.__doc__), lambda f=f: f(lab))
        for f in (launched_twice, store_throttles, clock_jumps, one_clock_jumps, full_disk_locally)
    ]
    cases += [
        (
            SPARK,
            str(f.__doc__),
            lambda f=f: disturbed(lab, f"spark-{f.__name__}", f, *lab.on_spark()),
        )
        for f in (*plain[:-1], executor_lost, cut_briefly, cut_for_long)
    ]
    cases.append(
        (
            SPARK,
            f"{slow_worker.__doc__} Speculative execution is on.",
            lambda: disturbed(lab, "spark-slow", slow_worker, *lab.on_spark(), *SPECULATIVE),
        )
    )
    cases += [
        (SPARK, str(f.__doc__), lambda f=f: f(lab))
        for f in (clock_jumps_on_spark, full_disk_on_spark)
    ]
    for engine, fault, measure in cases:
        if not re.search(only, f"{engine}: {fault}"):
            continue
        print(f"{engine}: {fault}", file=sys.stderr)
        try:
            outcome, seconds = measure()
        except AssertionError as error:
            outcome, seconds = f"**WRONG**: {error}", float("nan")
        print(f"    {outcome} ({seconds:.0f} s)", file=sys.stderr)
        yield f"| {engine} | {fault} | {outcome} | {seconds:.0f} |"


if __name__ == "__main__":
    main()
