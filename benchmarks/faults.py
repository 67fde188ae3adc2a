"""The outcome of a release when something breaks in the middle of it.

The output is docs/measurements/faults.md.

    make faults

Every run is the real command on a real S3 server, with two processes of the local engine or on a
Spark cluster of two workers. A fault strikes once a quarter of the shards are written. The expected
result is that of an undisturbed run with the same key.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyarrow.parquet as pq
from machine import MASTER_KEY
from running_clusters import Cluster, spark, stop
from s3_server import BUCKET, S3Server

COMMAND = str(Path(sys.executable).with_name("quietcorpus"))
TERMS = 20_000
ROW_GROUP = 2500
LIMIT_SECONDS = 900
SPEC = """
release: faults
input: {{path: '{place}/in/*.parquet', text: text}}
output: {output}
mechanism:
  kind: bag-of-words
  precision: 10
  epsilon: 5
  histogram_epsilon: 0.5
  vocabulary: {{public: '{place}/vocabulary.txt'}}
  compression: {{method: frequency, size: 100}}
"""
MULTI_PROCESS = "two processes"
SPARK = "Spark"
SPECULATIVE = (
    "--job_server_jvm_properties=-Dspark.speculation=true",
    "--job_server_jvm_properties=-Dspark.speculation.quantile=0.25",
    "--job_server_jvm_properties=-Dspark.speculation.multiplier=1.2",
)


def main() -> None:
    """Break everything, one after another, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", required=True, help="Parquet with a column `text`")
    parser.add_argument("--copies", type=int, default=3, help="how often the corpus is repeated")
    parser.add_argument("--only", default="", help="a pattern for what to run")
    parser.add_argument("--output", help="the Markdown file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        lab = Lab(Path(folder), stack)
        documents = lab.upload(given.corpus, given.copies)
        lines = list(outcomes(lab, given.only))
        told = lab.told_secrets()
    page = PAGE.format(documents=documents, lines="\n".join(lines), told=told)
    print(page)
    if given.output:
        Path(given.output).write_text(page, "utf-8")


PAGE = """# What happens to a release when something breaks

Measured by `make faults`: {documents:,} film reviews as bags of words, from and to a real S3
server, with two processes of the local engine and on a Spark cluster of two workers. The fault
strikes when a quarter of the shards are written. *Identical* means: every Parquet file and the card
(except its time) are byte by byte those of an undisturbed run with the same key, checked by
`quietcorpus verify`, with nothing left beside the release. *Refused* means: exit code 1 or 2, one
line, and nothing published or left behind.

| engine | fault | outcome | seconds |
|---|---|---|---|
{lines}

After all runs, files that held the master key, the storage secret or a line of the corpus, among
logs, spools, work folders and released objects: {told}.

What the table shows:

- The local engine never retries: what it loses ends the run, and the same command repeats it.
- Spark retries a lost part, and keyed noise makes the repetition the same. A killed launcher takes
  its job server, and with it the job, down with it, so the repeated command finds the cluster's
  cores free. (A job on Flink still runs to its end; nothing of it is published.)
- Spark keeps replacing an executor that cannot even start, for lack of disk or memory. The job ends
  after fifty in a row that took no task while no other executor was at work. Each executor keeps a
  copy of the job server in Spark's working folder, 300 MB. Where executors live on a full disk, a
  task is tried four times, from its beginning, before the job ends.
- `--environment_cache_millis=120000` keeps Python workers from one stage to the next, which
  shortened a short job by a third. But a killed worker is then tried four times while it is dead,
  and the job ends with an error, so the option is off by default.
"""


@dataclass
class Run:
    """A release that is under way."""

    lab: Lab
    process: subprocess.Popen[str]
    name: str
    output: str
    begun: float = field(default_factory=time.monotonic)

    def at_a_quarter(self) -> bool:
        """Wait for a quarter of the shards; return whether they were written before the end."""
        while self.process.poll() is None:
            staged = [k for k in self.lab.s3.keys("out/.") if "/data/part-" in k]
            if staged:
                shards = int(staged[0].rsplit("-of-", 1)[1][:5])
                if len(staged) >= shards / 4:
                    return True
            time.sleep(0.2)
        return False

    def finish(self) -> tuple[int, str]:
        """Wait for the end; return the exit code and the last line."""
        _, err = self.process.communicate(timeout=LIMIT_SECONDS)
        lines = [line for line in err.splitlines() if line.startswith("quietcorpus: error: ")]
        return self.process.returncode, lines[-1] if lines else ""

    def workers(self) -> list[psutil.Process]:
        """Return the Python processes that privatise."""
        found = []
        for process in psutil.process_iter():
            try:
                command = process.cmdline()
                inherited = process.environ().get("QUIETCORPUS_LAB")
            except psutil.Error:
                continue
            if inherited == str(self.lab.folder) and any(
                part.endswith("quietcorpus-worker") or part == "quietcorpus.pipelines.engine.worker"
                for part in command
            ):
                found.append(process)
        return found


class Lab:
    """A folder, an S3 server with the corpus, and, on demand, a Spark cluster."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        (folder / "s3").mkdir()
        self.s3 = S3Server(folder / "s3")
        self.s3.start()
        stack.callback(self.s3.stop)
        self.cluster: Cluster | None = None
        self.stack = stack
        self.reference: dict[str, bytes] = {}
        bin_folder = Path(sys.executable).parent
        self.environment = (
            dict(os.environ)
            | self.s3.environment
            | {
                "PATH": f"{bin_folder}:{os.environ['PATH']}",
                "QUIETCORPUS_MASTER_KEY": MASTER_KEY,
                "QUIETCORPUS_LAB": str(folder),
                "SPARK_LOCAL_IP": "127.0.0.1",
            }
        )

    def keep(self, corpus: str, copies: int) -> int:
        """Put the corpus and its vocabulary into the folder; return the number of documents."""
        texts = pq.read_table(corpus, columns=["text"])
        path = self.folder / "corpus.parquet"
        pq.write_table(texts, path, row_group_size=ROW_GROUP)
        counted: Counter[str] = Counter()
        for text in texts["text"].slice(0, 5000).to_pylist():
            counted.update(word.lower() for word in text.split() if word.isalpha())
        vocabulary = "\n".join(word for word, _ in counted.most_common(TERMS))
        (self.folder / "vocabulary.txt").write_text(vocabulary)
        (self.folder / "in").mkdir()
        for copy in range(copies):
            (self.folder / "in" / f"{copy:02d}.parquet").symlink_to(path)
        return copies * len(texts)

    def upload(self, corpus: str, copies: int) -> int:
        """Put the corpus and its vocabulary on the server; return the number of documents."""
        documents = self.keep(corpus, copies)
        for path in [self.folder / "vocabulary.txt", *(self.folder / "in").iterdir()]:
            key = str(path.relative_to(self.folder))
            self.s3.client().upload_file(str(path), BUCKET, key)
        return documents

    def on_spark(self) -> tuple[str, ...]:
        """Return the options for the cluster, which is started at the first call."""
        if self.cluster is None:
            folder = self.folder / "spark"
            folder.mkdir()
            storage = self.s3.environment | {"QUIETCORPUS_LAB": str(self.folder)}
            self.cluster = spark(folder, storage)
            self.stack.callback(stop, self.cluster)
        return self.cluster.options

    def start(self, name: str, *options: str, output: str | None = None) -> Run:
        """Start a release from the server, and to it by default."""
        place = output or f"s3://{BUCKET}/out/{name}"
        return self._start(name, f"s3://{BUCKET}", place, options)

    def start_locally(self, name: str, *options: str) -> Run:
        """Start a release from a folder to a folder."""
        return self._start(name, str(self.folder), f"{self.folder}/out/{name}", options)

    def _start(self, name: str, place: str, output: str, options: Sequence[str]) -> Run:
        spec = self.folder / f"{name}.yaml"
        spec.write_text(SPEC.format(place=place, output=output))
        process = subprocess.Popen(
            [COMMAND, "release", str(spec), "--quiet", *options],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return Run(self, process, name, output)

    def told_secrets(self) -> str:
        """Name the places that hold a secret or a text they may not hold, or `none`."""
        texts = pq.read_table(self.folder / "corpus.parquet").slice(0, 50)["text"].to_pylist()
        secrets = [
            MASTER_KEY.encode(),
            self.s3.environment["AWS_SECRET_ACCESS_KEY"].encode(),
            *(text[:60].encode() for text in texts),
        ]
        own = {self.folder / name for name in ("s3", "in", "corpus.parquet")}
        places = {
            str(path): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file() and path.suffix != ".jar" and not own & {path, *path.parents}
        }
        places |= {key: self.s3.read(key) for key in self.s3.keys("out/")}
        print(f"{len(places)} places are searched", file=sys.stderr)
        found = [p for p, content in places.items() if any(s in content for s in secrets)]
        return ", ".join(found) or "none"

    def content(self, name: str) -> dict[str, bytes]:
        """Return a release's files except README.md, with the card's time left out."""
        prefix = f"out/{name}/"
        files = {key.removeprefix(prefix): self.s3.read(key) for key in self.s3.keys(prefix)}
        files.pop("README.md", None)
        if "release.json" in files:
            card = json.loads(files["release.json"])
            timeless = {k: v for k, v in card.items() if k not in ("created", "readme_sha256")}
            files["release.json"] = json.dumps(timeless, sort_keys=True).encode()
        return files

    def outcome(self, run: Run, code: int, line: str) -> str:
        """Describe the outcome in a phrase; raises AssertionError for one that is not allowed."""
        if not run.output.startswith("s3://"):
            assert code != 0
            assert not [p for p in Path(run.output).parent.rglob("*") if p.is_file()], "left"
            return f"refused: `{line.removeprefix('quietcorpus: error: ')}`"
        left = [*self.s3.keys("out/."), *self.s3.uploads("out/")]
        content = self.content(run.name)
        if code != 0:
            assert line, "no line"
            assert not content, "published"
            assert not left, left
            return f"refused: `{line.removeprefix('quietcorpus: error: ')}`"
        verified = subprocess.run(
            [COMMAND, "verify", run.output], env=self.environment, capture_output=True, check=False
        )
        assert verified.returncode == 0, verified.stderr
        assert content == self.reference, "not the same"
        assert not left, left
        return "identical"


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


def server_stopped(run: Run) -> None:
    """Stop the S3 server for ten seconds."""
    run.lab.s3.stop()
    time.sleep(10)
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


@contextmanager
def small_disk(lab: Lab, megabytes: int) -> Iterator[Path]:
    """Mount a disk of a few megabytes, and yield its place."""
    place = Path(tempfile.mkdtemp(dir=lab.folder))
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", str(place)], check=True
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
    assert run.at_a_quarter(), run.finish()
    fault(run)
    if fault is launcher_killed:
        begun = run.begun
        run = lab.start(name, *options)
        run.begun = begun
    code, line = run.finish()
    return lab.outcome(run, code, line), time.monotonic() - run.begun


def full_disk_locally(lab: Lab) -> tuple[str, float]:
    """Let two processes write a release to a disk that is too small for it."""
    with small_disk(lab, 16) as disk:
        run = lab.start("full", "--workers", "2", output=str(disk / "released" / "out"))
        code, line = run.finish()
        return lab.outcome(run, code, line), time.monotonic() - run.begun


def full_disk_on_spark(lab: Lab) -> tuple[str, float]:
    """Fill the disk of a cluster's workers to the last byte, in the middle of a run."""
    with small_disk(lab, 2048) as disk:
        storage = lab.s3.environment | {"QUIETCORPUS_LAB": str(lab.folder)}
        cluster = spark(disk, storage)
        try:
            run = lab.start("spark-full", *cluster.options)
            assert run.at_a_quarter(), run.finish()
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
    lab.reference = lab.content("reference")
    print(f"undisturbed: {time.monotonic() - run.begun:.0f} s", file=sys.stderr)
    local = ("--workers", "2")
    plain = [undisturbed, worker_killed, server_stopped, launcher_killed, slow_worker]
    cases: list[tuple[str, str, Callable[[], tuple[str, float]]]] = [
        (
            MULTI_PROCESS,
            str(f.__doc__),
            lambda f=f: disturbed(lab, f"local-{f.__name__}", f, *local),
        )
        for f in plain
    ]
    cases.append((MULTI_PROCESS, str(full_disk_locally.__doc__), lambda: full_disk_locally(lab)))
    cases += [
        (
            SPARK,
            str(f.__doc__),
            lambda f=f: disturbed(lab, f"spark-{f.__name__}", f, *lab.on_spark()),
        )
        for f in (*plain[:-1], executor_lost)
    ]
    cases.append(
        (
            SPARK,
            f"{slow_worker.__doc__} Speculative execution is on.",
            lambda: disturbed(lab, "spark-slow", slow_worker, *lab.on_spark(), *SPECULATIVE),
        )
    )
    cases.append((SPARK, str(full_disk_on_spark.__doc__), lambda: full_disk_on_spark(lab)))
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
