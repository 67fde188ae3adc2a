"""An interval's input that is not there yet, or not all of it, and one that changed since."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from machine import OTHER_KEY
from s3_server import BUCKET, S3Server

from quietcorpus.pipelines.release import arrival
from quietcorpus.pipelines.release.arrival import arrived
from quietcorpus.pipelines.schema.loading import load_spec
from quietcorpus.transforms.errors import InputError, NoInput

if TYPE_CHECKING:
    from tests.conftest import Workspace

NO_INPUT = 4
PARQUET = {"input.path": "days/*.parquet"}


def part(workspace: Workspace, number: int, documents: int = 2) -> Path:
    """Write one more file of the input."""
    path = workspace.folder / "days" / f"part-{number}.parquet"
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"text": ["quiet world"] * documents}), path)
    return path


def run(workspace: Workspace, changes: dict[str, Any], *options: str) -> tuple[int, dict[str, Any]]:
    spec = str(workspace.spec(PARQUET | changes))
    done = workspace.run("release", spec, "--summary", "summary.json", *options)
    summary: dict[str, Any] = json.loads((workspace.folder / "summary.json").read_text())
    assert summary["exit_code"] == done.returncode, done.stderr
    return done.returncode, summary | {"said": done.stderr}


class Kinds:
    """A kind of release whose number of documents is told, or is not."""

    def __init__(self, *, told: bool) -> None:
        self.counts_records, self.cost = told, None


def test_an_input_that_comes_later(workspace: Workspace) -> None:
    # Kills: a file that is late, taken for a mistake that no scheduler tries again.
    code, summary = run(workspace, {})
    assert (code, summary["reason"], summary["outcome"]) == (NO_INPUT, "no_input", "refused")
    assert "input.path: no file matches" in summary["said"]
    assert not workspace.output.exists()
    part(workspace, 0)
    assert run(workspace, {})[0] == 0


@pytest.mark.parametrize(
    ("complete", "missing", "completing"),
    [
        ({"marker": "_SUCCESS"}, "marker: {days}/_SUCCESS is not there yet", "_SUCCESS"),
        ({"at_least": {"files": 2}}, "at_least.files: 1 of at least 2 are there", "part"),
        ({"at_least": {"documents": 4}}, "at_least.documents: 2 of at least 4 are there", "part"),
        (
            {"marker": "_SUCCESS", "at_least": {"files": 1}},
            "marker: {days}/_SUCCESS is not there yet",
            "_SUCCESS",
        ),
    ],
    ids=str,
)
def test_half_of_an_input_is_not_released(
    workspace: Workspace, complete: dict[str, Any], missing: str, completing: str
) -> None:
    # Kills: each condition, and one that is met too early; a condition that makes another release.
    part(workspace, 0)
    path = workspace.spec(PARQUET | {"input.complete": complete})
    said = f"input.complete.{missing.format(days=workspace.folder / 'days')}"
    for options in ((), ("--dry-run",)):
        done = workspace.run("release", str(path), *options)
        assert workspace.error_of(done, NO_INPUT).startswith(said)
    if completing == "part":
        part(workspace, 1)
    else:
        (workspace.folder / "days" / completing).touch()
    assert workspace.run("release", str(path)).returncode == 0
    rows = workspace.card()["counts"]["documents"]
    assert rows == (4 if completing == "part" else 2)
    loosened = str(workspace.spec(PARQUET))
    assert workspace.run("release", loosened, "--if-exists=ok").returncode == 0


def test_an_input_is_waited_for(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Kills: a wait that ends before its time, or never, or that nobody hears of.
    monkeypatch.setattr(arrival, "_POLL_SECONDS", 0.05)
    caplog.set_level("INFO", "quietcorpus")
    monkeypatch.chdir(workspace.folder)
    spec = load_spec(str(workspace.spec(PARQUET | {"input.complete": {"at_least": {"files": 2}}})))
    kind: Any = Kinds(told=True)
    with pytest.raises(NoInput, match="no file matches"):
        arrived(spec, kind, 0.005)
    part(workspace, 0)
    late = threading.Timer(0.4, part, (workspace, 1))
    late.start()
    assert len(arrived(spec, kind, 10).files) == 2
    late.join()
    told = [one.getMessage() for one in caplog.records]
    assert [one.partition(":")[0] for one in told] == [
        "input.path",
        "input.complete.at_least.files",
    ]
    assert told[-1].endswith("1 of at least 2 are there yet: waiting for at most 10 minutes")


def test_a_number_that_a_release_protects_decides_nothing(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a release whose existence tells whether one more document is there.
    monkeypatch.chdir(workspace.folder)
    part(workspace, 0)
    complete = {"input.complete": {"at_least": {"documents": 2, "files": 1}}}
    spec = load_spec(str(workspace.spec(PARQUET | complete)))
    told, protected = (Kinds(told=one) for one in (True, False))
    assert arrived(spec, told).documents == 2  # type: ignore[arg-type]
    with pytest.raises(InputError, match="this release protects the number of documents") as found:
        arrived(spec, protected)  # type: ignore[arg-type]
    assert not isinstance(found.value, NoInput)
    workspace.json_lines(["quiet world"] * 2)
    lines = load_spec(str(workspace.spec(complete)))
    with pytest.raises(InputError, match="these files do not state how many documents"):
        arrived(lines, told)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("complete", "said"),
    [
        ({}, "names no condition; give marker or at_least"),
        ({"at_least": {}}, "names no number; give documents or files"),
        ({"marker": "../_SUCCESS"}, "input.complete.marker"),
        ({"at_least": {"files": 0}}, "input.complete.at_least.files"),
    ],
)
def test_a_condition_that_says_nothing(workspace: Workspace, complete: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load_spec(str(workspace.spec({"input.complete": complete})))


def test_an_input_that_changed_since_is_told(workspace: Workspace) -> None:
    # Kills: a rerun of all files that takes a release of some for theirs, in silence; an input that
    # is gone, or another key, taken for a change.
    part(workspace, 0)
    assert "input_changed" not in run(workspace, {})[1]
    code, again = run(workspace, {}, "--if-exists=ok")
    assert (code, again["outcome"], again["input_changed"]) == (0, "existed", False)
    assert "WARNING" not in again["said"]
    late = part(workspace, 1)
    code, changed = run(workspace, {}, "--if-exists=ok")
    assert (code, changed["outcome"], changed["input_changed"]) == (0, "existed", True)
    assert "its files are not those of the release at" in changed["said"]
    before = dict(workspace.environment)
    for other in (OTHER_KEY, None):
        workspace.environment["QUIETCORPUS_MASTER_KEY"] = other or ""
        code, found = run(workspace, {}, "--if-exists=ok")
        assert (code, "input_changed" in found) == (0, False)
    workspace.environment.update(before)
    for path in late.parent.iterdir():
        path.unlink()
    code, gone = run(workspace, {}, "--if-exists=ok")
    assert (code, "input_changed" in gone) == (0, False)


def test_a_marker_in_a_store(workspace: Workspace, s3: S3Server) -> None:
    # Kills: a marker that is looked for elsewhere than in the folder of the glob.
    s3.empty()
    client = s3.client()
    client.put_object(Bucket=BUCKET, Key="days/one/part.jsonl", Body=b'{"text": "quiet world"}\n')
    workspace.environment |= s3.environment
    changes = {"input.path": f"s3://{BUCKET}/days/one/*.jsonl"}
    assert run(workspace, changes | {"input.complete": {"marker": "_SUCCESS"}})[0] == NO_INPUT
    client.put_object(Bucket=BUCKET, Key="days/one/_SUCCESS", Body=b"1")
    assert run(workspace, changes | {"input.complete": {"marker": "_SUCCESS"}})[0] == 0
