"""Reports of a real cluster's workers while a job runs: documents, and what is done again."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from canaries import forms
from collector import collecting
from machine import wait_until
from running_clusters import PATIENCE_SECONDS, Cluster

if TYPE_CHECKING:
    from tests.conftest import Workspace

pytestmark = pytest.mark.slow

DOCUMENTS, ROW_GROUPS = 40_000, 20
WORDS = 400
SECRET = "xylocanary"
# The command, whose heartbeat is quick.
COMMAND = (
    "from quietcorpus.pipelines.engine import heartbeat; heartbeat._BEAT_SECONDS = 1; "
    "heartbeat._LOOK_SECONDS = 1; from quietcorpus.pipelines.cli.main import main; main()"
)


@pytest.mark.parametrize(
    "cluster", ["spark", pytest.param("flink", marks=pytest.mark.nightly)], indirect=True
)
def test_documents_are_told_while_they_are_read(workspace: Workspace, cluster: Cluster) -> None:
    """Kills: a job of which nobody sees how many documents it has read until it ends; a part that
    is read again, after a worker was lost, and counts twice or is not told; documents or words of
    the corpus in a report, the log, the metrics or the summary; reports that stay.
    """
    words = ["".join(letters) for letters in itertools.product("abcdefghi", repeat=3)][:WORDS]
    texts = [
        " ".join([*(words[(number * k) % WORDS] for k in range(1, 60)), SECRET])
        for number in range(DOCUMENTS)
    ]
    workspace.parquet({"text": texts}, row_group_size=DOCUMENTS // ROW_GROUPS)
    (workspace.folder / "vocabulary.txt").write_text("\n".join(words))
    changes = {
        "input.path": "input/*.parquet",
        "mechanism.vocabulary": {"public": "vocabulary.txt"},
        "mechanism.precision": 20,
        "mechanism.epsilon": 1,
    }
    arguments = ("release", str(workspace.spec(changes)), "--summary", "summary.json")
    said: list[str] = []

    def told(pattern: str) -> bool:
        return any(re.search(pattern, line) for line in [*said])

    # Beam leaves what it would ship to workers, none of it ours, in the temporary folder.
    (spool := workspace.folder / "spool").mkdir()
    with collecting() as collector:
        environment = workspace.environment | collector.environment
        environment |= {
            "SPARK_LOCAL_IP": "127.0.0.1",
            "TMPDIR": str(spool),
            "OTEL_METRIC_EXPORT_INTERVAL": "1000",
        }
        with subprocess.Popen(
            [sys.executable, "-P", "-c", COMMAND, *arguments, *cluster.options],
            cwd=workspace.folder,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        ) as launcher:
            reader = threading.Thread(target=lambda: said.extend(launcher.stderr or ()))
            reader.start()
            try:
                seen = rf"releasing documents: [\d,]{{4,}} of {DOCUMENTS:,} documents"
                wait_until(lambda: told(seen) or launcher.poll() is not None, PATIENCE_SECONDS)
                assert launcher.poll() is None
                if cluster.name == "spark":
                    cluster.executors()[0].kill()
                assert launcher.wait(PATIENCE_SECONDS) == 0
            finally:
                launcher.kill()
                reader.join()
                print("".join(said))  # pytest shows it if the test fails
        metrics = collector.metrics()
        sent = b"".join(body for _, body in collector.bodies)
    sent += (workspace.folder / "summary.json").read_bytes() + "".join(said).encode()
    assert not [form for form in forms(SECRET) if form in sent]
    summary = json.loads((workspace.folder / "summary.json").read_text())
    again = summary["repeated_parts"]
    assert bool(again) == (cluster.name == "spark"), again
    assert told(rf"WARNING some work was done twice.*read again: {again}$") == bool(again)
    done = [int(n.replace(",", "")) for n in re.findall(r"documents: ([\d,]+) of", "".join(said))]
    assert max(done) <= DOCUMENTS  # a part that was read twice counts once
    assert len({n for n in done if 0 < n < DOCUMENTS}) > 1
    run = frozenset({("quietcorpus.release", "test")})
    read = [
        one["quietcorpus.run.documents.read"][run]
        for one in metrics
        if "quietcorpus.run.documents.read" in one
    ]
    assert 0 < max(read) <= DOCUMENTS
    assert workspace.leftovers() == []
