"""A folder, an S3 server, and on demand a Spark cluster, in which releases can be disturbed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from machine import MASTER_KEY
from running_clusters import Cluster, spark, stop
from s3_server import BUCKET, S3Server

COMMAND = str(Path(sys.executable).with_name("quietcorpus"))
TERMS = 20_000
ROW_GROUP = 2500
LIMIT_SECONDS = 900
BAGS = {
    "kind": "bag-of-words",
    "precision": 10,
    "epsilon": 5,
    "histogram_epsilon": 0.5,
    "vocabulary": {"public": "PLACE/vocabulary.txt"},
    "compression": {"method": "frequency", "size": 100},
}
"""The releases' mechanism, where PLACE is that of the corpus."""


class TooLate(Exception):
    """A run that ended, with this code and line, before a fault could strike."""


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

    def wait_for_the_middle(self) -> None:
        """Wait for the time of a fault; raises TooLate if the end came first."""
        if self.lab.middle is None:
            came = self.at_a_quarter()
        else:
            self.wait_for_workers()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(self.lab.middle)
            came = bool(self.workers())
        if not came:
            raise TooLate(self.finish())

    def wait_for_workers(self) -> None:
        """Wait until two workers are there, or for the end."""
        while self.process.poll() is None and len(self.workers()) < 2:
            time.sleep(0.3)

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
                name = process.name()
                inherited = process.environ().get("QUIETCORPUS_LAB")
            except psutil.Error:
                continue
            if inherited == str(self.lab.folder) and name == "qc-worker":
                found.append(process)
        return found


class Lab:
    """A folder, an S3 server with the corpus, and, on demand, a Spark cluster.

    Attributes:
        files: the folder with the corpus.
        mechanism: that of the releases, where PLACE is what holds the folder.
        middle: the seconds after which a fault strikes, once two workers are there; None stands for
            a quarter of the shards.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        (folder / "s3").mkdir()
        self.s3 = S3Server(folder / "s3")
        self.s3.start()
        stack.callback(self.s3.stop)
        self.cluster: Cluster | None = None
        self.stack = stack
        self.reference: dict[str, bytes] = {}
        self.files, self.mechanism = "in", dict[str, Any](BAGS)
        self.middle: float | None = None
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

    def keep(self, texts: pa.Table, copies: int) -> int:
        """Put the corpus and its vocabulary into the folder; return the number of documents."""
        path = self.folder / "corpus.parquet"
        pq.write_table(texts, path, row_group_size=ROW_GROUP)
        counted: Counter[str] = Counter()
        for text in texts["text"].slice(0, 5000).to_pylist():
            counted.update(word.lower() for word in text.split() if word.isalpha())
        vocabulary = "\n".join(word for word, _ in counted.most_common(TERMS))
        (self.folder / "vocabulary.txt").write_text(vocabulary)
        (self.folder / self.files).mkdir()
        for copy in range(copies):
            (self.folder / self.files / f"{copy:02d}.parquet").symlink_to(path)
        return copies * len(texts)

    def upload(self, texts: pa.Table, copies: int) -> int:
        """Put the corpus and its vocabulary on the server; return the number of documents."""
        documents = self.keep(texts, copies)
        for path in [self.folder / "vocabulary.txt", *(self.folder / self.files).iterdir()]:
            key = str(path.relative_to(self.folder))
            self.s3.client().upload_file(str(path), BUCKET, key)
        return documents

    @property
    def of_clusters(self) -> dict[str, str]:
        """Return what a cluster's processes need in their environment."""
        return self.s3.environment | {"QUIETCORPUS_LAB": str(self.folder)}

    def on_spark(self) -> tuple[str, ...]:
        """Return the options for the cluster, which is started at the first call."""
        if self.cluster is None:
            folder = self.folder / "spark"
            folder.mkdir()
            self.cluster = spark(folder, self.of_clusters)
            self.stack.callback(stop, self.cluster)
        return self.cluster.options

    def start(
        self,
        name: str,
        *options: str,
        output: str | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> Run:
        """Start a release from the server, and to it by default."""
        name = f"{self.files}-{name}"
        place = output or f"s3://{BUCKET}/out/{name}"
        return self._start(name, f"s3://{BUCKET}", place, options, environment)

    def start_locally(self, name: str, *options: str) -> Run:
        """Start a release from a folder to a folder."""
        return self._start(name, str(self.folder), f"{self.folder}/out/{name}", options, {})

    def _start(
        self,
        name: str,
        place: str,
        output: str,
        options: Sequence[str],
        environment: Mapping[str, str],
    ) -> Run:
        spec = self.folder / f"{name}.yaml"
        content = {
            "release": "faults",
            "input": {"path": f"{place}/{self.files}/*.parquet", "text": "text"},
            "output": output,
            "mechanism": self.mechanism,
        }
        spec.write_text(json.dumps(content).replace("PLACE", place))
        process = subprocess.Popen(
            [COMMAND, "release", str(spec), "--quiet", *options],
            cwd=self.folder,
            env={**self.environment, **environment},
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
        own = {self.folder / "s3", self.folder / "corpus.parquet", *self.folder.glob("in*")}
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
        """Return a release's files except its pages, with the card's time left out."""
        prefix = f"out/{name}/"
        files = {key.removeprefix(prefix): self.s3.read(key) for key in self.s3.keys(prefix)}
        for page in ("README.md", "page.html"):  # they name the place
            files.pop(page, None)
        if "release.json" in files:
            card = json.loads(files["release.json"])
            told = ("created", "readme_sha256", "page_sha256")
            timeless = {k: v for k, v in card.items() if k not in told}
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
        different = content.items() ^ self.reference.items()
        assert not different, f"not the same: {sorted({name for name, _ in different})}"
        assert not left, left
        return "identical"
