"""Dataflow: the graphs that would be sent there, and the files under deploy/dataflow.

`--dry_run` builds a job's description with Beam's own Dataflow runner, and sends it nowhere. The
images are not built and no service is asked.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dataflow import run
from machine import ROOT

from quietcorpus.mechanisms.keystream import ReleaseKey

if TYPE_CHECKING:
    from tests.conftest import Workspace


CANARY = "zqxcanaryvoice"
OPTIONS = (
    "--runner=DataflowRunner",
    "--project=quiet-project",
    "--region=europe-west1",
    "--temp_location=gs://quiet-dataflow/tmp",
    "--sdk_container_image=europe-west1-docker.pkg.dev/quiet-project/quietcorpus/worker:1",
    "--sdk_location=container",
    "--service_account_email=quietcorpus@quiet-project.iam.gserviceaccount.com",
    "--dry_run=True",
)
# The command, which also writes what the runner would send.
DRY_RUN = """
import base64, bz2, json, re, sys
from apache_beam.runners.dataflow.dataflow_runner import DataflowRunner
from apache_beam.runners.dataflow.internal.apiclient import Environment
from google.protobuf import json_format
run = DataflowRunner.run_pipeline
def recorded(self, *args, **kwargs):
    result = run(self, *args, **kwargs)
    job = result.job
    content = job.proto_pipeline.SerializeToString()
    sent = Environment([], job.options, "8", "gs://quiet-dataflow/pipeline.pb", job.proto_pipeline)
    pickles = [
        bz2.decompress(base64.b64decode(found))
        for found in re.findall(rb"QlpoO[A-Za-z0-9+/]+={0,2}", content)  # b"BZh" in base 64
    ]
    transforms = job.proto_pipeline.components.transforms.values()
    with open("graph.json", "w") as sink:
        json.dump({
            "stages": [transform.unique_name for transform in transforms],
            "job": job.json() + json_format.MessageToJson(sent.proto._pb),
            "content": (content + b"".join(pickles)).decode("latin-1"),
            "pickles": len(pickles),
        }, sink)
    return result
DataflowRunner.run_pipeline = recorded
import runpy
program = sys.argv.pop(1)
start = runpy.run_path if program.endswith(".py") else runpy.run_module
start(program, run_name="__main__")
"""
COMMAND = "quietcorpus.cli.main"
BIGQUERY = ROOT / "examples" / "own_pipeline_bigquery.py"
KINDS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "bag of words": (
        {
            "mechanism.histogram_epsilon": 1,
            "mechanism.compression": {"method": "frequency", "size": 3},
        },
        {"splits", "shards", "documents", "histogram", "codebook", "run files"},
    ),
    "histogram": (
        {
            "mechanism": {
                "kind": "histogram",
                "precision": 2,
                "epsilon": 4,
                "vocabulary": {"public": "vocabulary.txt"},
            }
        },
        {"splits", "histogram", "run files"},
    ),
    "words": ({}, {"shards", "documents", "run files"}),
    "sentences": ({}, {"shards", "documents", "run files"}),
}


@pytest.mark.slow
@pytest.mark.usefixtures("gcp")
@pytest.mark.parametrize("kind", KINDS)
def test_a_dry_run_checks_the_graph(
    workspace: Workspace, request: pytest.FixtureRequest, kind: str
) -> None:
    changes, stages = KINDS[kind]
    if not changes:
        changes = request.getfixturevalue(kind)()
    workspace.parquet({"text": [f"quiet {CANARY}"] * 20, "key": range(20)}, row_group_size=5)
    changes = changes | {"input": {"path": "input/*.parquet", "id": "key"}}
    spec = str(workspace.spec(changes))
    done = run(workspace, "-c", DRY_RUN, COMMAND, "release", spec, *OPTIONS)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "graph     valid; nothing was run, and nothing was published\n"
    # Beam's own stager leaves folders in the temporary one; there may be nothing of the release.
    assert not workspace.output.parent.exists()
    graph = json.loads((workspace.folder / "graph.json").read_text())
    assert stages <= set(graph["stages"])
    assert '"DataflowRunner"' in graph["job"]
    assert "quietcorpus/worker:1" in graph["job"]
    # Stages are pickled, and must be unpacked to be searched: the place of the corpus is in one.
    assert graph["pickles"] > 5
    assert "input/corpus.parquet" in graph["content"]
    master = workspace.environment["QUIETCORPUS_MASTER_KEY"]
    raw = bytes.fromhex(master)
    derived = [value for value in vars_of(ReleaseKey.derive(raw, "test", b"")) if len(value) >= 16]
    assert derived
    for secret in (master, master.upper(), CANARY, *(k.decode("latin-1") for k in (raw, *derived))):
        assert secret not in graph["content"]
        assert secret not in graph["job"]
        assert secret not in done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("gcp")
def test_a_pipeline_of_ones_own_from_bigquery_to_bigquery(
    workspace: Workspace, word_index: Path
) -> None:
    # Kills: rows that BigQuery's steps cannot pass on, and a key or a step that the graph lacks or
    # has too much. No service is asked, so that nothing is said of a run.
    tables = [f"quiet-project:{name}.complaints" for name in ("private", "released")]
    arguments = (tables[0], str(word_index), tables[1], *OPTIONS)
    done = run(workspace, "-c", DRY_RUN, str(BIGQUERY), *arguments)
    assert done.returncode == 0, done.stderr
    graph = json.loads((workspace.folder / "graph.json").read_text())
    steps = " ".join(graph["stages"])
    assert "private/" in steps
    assert "PrivatizeWords/" in steps
    assert "released/BigQueryBatchFileLoads" in steps
    assert workspace.environment["QUIETCORPUS_MASTER_KEY"] not in graph["content"] + graph["job"]
    # The negative control: a column that the rows do not have ends it before there is a graph.
    (workspace.folder / "graph.json").unlink()
    broken = workspace.folder / "broken.py"
    broken.write_text(BIGQUERY.read_text().replace('keep=["product"]', 'keep=["none"]'))
    done = run(workspace, "-c", DRY_RUN, str(broken), *arguments)
    assert done.returncode != 0
    assert "none" in done.stderr
    assert not (workspace.folder / "graph.json").exists()


def vars_of(key: ReleaseKey) -> list[bytes]:
    """The bytes that a key holds."""
    names = {*getattr(key, "__dict__", {}), *getattr(key, "__slots__", ())}
    return [found for name in names if isinstance(found := getattr(key, name), bytes)]


@pytest.mark.parametrize("runner", ["FnApiRunner", "SparkRunner"])
def test_no_other_runner_knows_a_dry_run(workspace: Workspace, runner: str) -> None:
    message = workspace.refused({}, f"--runner={runner}", "--dry_run=True")
    assert message.startswith("--dry_run: ")


@pytest.mark.usefixtures("gcp")
def test_a_template_would_be_published_by_nobody(workspace: Workspace) -> None:
    template = "--template_location=gs://quiet-dataflow/template"
    message = workspace.refused({}, *OPTIONS[:-1], template)
    assert message.startswith("--template_location: ")
