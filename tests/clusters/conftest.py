"""Real clusters on this machine's loopback, and what it takes to have them.

What `make clusters` fetches is looked for under `build/`, or under $QUIETCORPUS_CLUSTERS. Without
it, or without Java, these tests are skipped; QUIETCORPUS_REQUIRE_CLUSTERS=1 has them fail instead.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from s3_server import S3Server, free_ports

from tests.conftest import MASTER_KEY

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("QUIETCORPUS_CLUSTERS", ROOT / "build"))
PATIENCE_SECONDS = 90


def required(reason: str) -> None:
    """Skip for a reason, or fail for it where clusters are required."""
    if os.environ.get("QUIETCORPUS_REQUIRE_CLUSTERS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def found(path: str, target: str) -> Path:
    """A part of a cluster under `build/`, by the make target that brings it."""
    if shutil.which("java") is None:
        required("Java is not installed")
    if not (BUILD / path).exists():
        required(f"{BUILD / path} is missing; `make {target}` brings it")
    return BUILD / path


@dataclass(frozen=True)
class Cluster:
    """A cluster that runs.

    Attributes:
        name: the engine's.
        folder: its logs, its process ids and what its workers write.
        options: Beam's, by which a release goes there.
        ui: the address of its pages.
        environment: what its processes were started with.
    """

    name: str
    folder: Path
    options: tuple[str, ...]
    ui: str
    environment: Mapping[str, str]

    def pids(self) -> list[int]:
        """Its own processes, workers last."""
        return [int(file.read_text()) for file in sorted(self.folder.glob("*.pid"))]

    def pages(self) -> str:
        """All that its pages show, links followed."""
        seen: dict[str, str] = {}
        todo = [f"{self.ui}/{path}" for path in ("", "jobs/overview", "config", "taskmanagers")]
        while todo and len(seen) < 300:
            url = todo.pop()
            if url in seen:
                continue
            try:
                with urllib.request.urlopen(url, timeout=10) as answer:
                    seen[url] = answer.read().decode("utf-8", "replace")
            except (OSError, urllib.error.URLError):
                seen[url] = ""
            host = re.match(r"http://[^/]+", url)
            assert host
            links = re.findall(r'href="(/[^"#]*|http://127\.0\.0\.1[^"#]*)"', seen[url])
            todo += [link if link.startswith("http") else host[0] + link for link in links]
            if url == f"{self.ui}/jobs/overview":
                for job in re.findall(r'"jid":"(\w+)"', seen[url]):
                    base = f"{self.ui}/jobs/{job}"
                    todo += [base, f"{base}/config", f"{base}/plan", f"{base}/exceptions"]
            for manager in re.findall(r'"id":"(taskmanager[\w.:-]*)"', seen[url]):
                todo += [f"{self.ui}/taskmanagers/{manager}/{x}" for x in ("log", "stdout")]
        return "\n".join(seen.values())


def run_script(script: str, command: str, environment: Mapping[str, str]) -> None:
    """Run a cluster's script."""
    done = subprocess.run(
        ["bash", str(ROOT / "deploy" / script / "cluster.sh"), command],
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def worker_environment(folder: Path, storage: Mapping[str, str]) -> dict[str, str]:
    """What a cluster's processes have: the master key, the storage's credentials, our command."""
    named = ("HOME", "JAVA_HOME", "LANG", "PYTHONPATH")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {
        **{name: os.environ[name] for name in named if name in os.environ},
        **storage,
        "PATH": path,
        "CLUSTER": str(folder),
        "TMPDIR": str(folder),
        "QUIETCORPUS_MASTER_KEY": MASTER_KEY,
        "QUIETCORPUS_CACHE": str(folder / "cache"),
    }


def spark(folder: Path, storage: Mapping[str, str], **changes: str) -> Cluster:
    """Start a Spark cluster of a master and two workers."""
    home = found("pyspark/pyspark", "spark")
    jar = found("spark/job-server.jar", "spark")
    port, ui, *_ = free_ports(2)
    environment = worker_environment(folder, storage) | {
        "SPARK_HOME": str(home),
        "PORT": str(port),
        "UI_PORT": str(ui),
        **changes,
    }
    run_script("spark", "up", environment)
    options = (
        "--runner=SparkRunner",
        f"--spark_job_server_jar={jar}",
        f"--spark_master_url=spark://127.0.0.1:{port}",
    )
    return Cluster("spark", folder, options, f"http://127.0.0.1:{ui}", environment)


def flink(folder: Path, storage: Mapping[str, str], **changes: str) -> Cluster:
    """Start a Flink cluster of a job manager and two task managers."""
    lib = found("pyflink/pyflink/lib", "flink")
    jar = found("flink/job-server.jar", "flink")
    (port,) = free_ports(1)
    environment = worker_environment(folder, storage) | {
        "FLINK_LIB": str(lib),
        "PORT": str(port),
        **changes,
    }
    run_script("flink", "up", environment)
    options = (
        "--runner=FlinkRunner",
        f"--flink_job_server_jar={jar}",
        f"--flink_master=127.0.0.1:{port}",
        "--flink_version=1.19",
        "--parallelism=2",
    )
    return Cluster("flink", folder, options, f"http://127.0.0.1:{port}", environment)


def stop(cluster: Cluster) -> None:
    """Stop a cluster's processes, and wait until they are gone."""
    pids = cluster.pids()
    run_script(cluster.name, "down", cluster.environment)
    deadline = time.monotonic() + PATIENCE_SECONDS
    for pid in pids:
        while _runs(pid):
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


START: dict[str, Callable[..., Cluster]] = {"spark": spark, "flink": flink}


@pytest.fixture(scope="module")
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, s3: S3Server
) -> Iterator[Cluster]:
    """A cluster by its engine's name, with the credentials of the S3 server."""
    folder = tmp_path_factory.mktemp(request.param)
    started = START[request.param](folder, s3.environment)
    yield started
    stop(started)
