"""The command `canaries`: what it prints, writes and leaves behind, and what it refuses."""

from __future__ import annotations

import itertools
import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from canaries import CANARY, assert_unseen, needles_of
from machine import SURE
from s3_server import BUCKET, S3Server

from quietcorpus.pipelines.audit.inputs import made_up_words
from quietcorpus.pipelines.canaries.canaries import lines

if TYPE_CHECKING:
    from tests.conftest import Workspace

CERTAIN = "--confidence", str(SURE)  # 64 canaries show nothing then in a single run
COMMAND = "from quietcorpus.cli.evidence import canaries; canaries()"
TOLD = """
from quietcorpus.pipelines.terminal import progress
progress._QUICK_SECONDS = 0.0
"""
KILLED = """
import os, signal
from quietcorpus.pipelines.canaries import canaries as job
released = job.release
def fatal(*given):
    released(*given)
    os.kill(os.getpid(), signal.SIGKILL)
job.release = fatal
"""
SILENT = """
import quietcorpus.mechanisms.bags.histogram
from quietcorpus.mechanisms.noise.geometric import DenseNoise
quietcorpus.mechanisms.bags.histogram.DenseNoise = lambda rate, size: DenseNoise(100 * rate, size)
"""


def spec(workspace: Workspace, **changes: Any) -> str:
    """A spec of a histogram of a small corpus that has a secret; its ledger does not exist."""
    workspace.json_lines([CANARY, "quiet world", ""])
    words = "\n".join(itertools.islice(made_up_words(), 64))
    (workspace.folder / "words.txt").write_text(words)
    block = {"kind": "histogram", "precision": 2, "epsilon": 1}
    mechanism = block | {"vocabulary": {"public": "words.txt"}} | changes
    return str(workspace.spec({"mechanism": mechanism, "ledger": "nowhere"}))


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_what_is_written_printed_and_left(workspace: Workspace) -> None:
    # Kills: a copy or a release that stays, a ledger that is asked, text of the corpus in the
    # result or the log, runs that are not as many as asked for, or not among the steps.
    own = spec(workspace)
    given = ("--canaries", "64", "--runs", "2", "--output", "found", "--work", "private", *CERTAIN)
    done = workspace.run_code(TOLD + COMMAND, own, *given)
    assert done.returncode == 0, done.stderr
    assert "step 1 of 3: placing canaries: took " in done.stderr
    assert "step 3 of 3: run 2 of 2: took " in done.stderr
    written = json.loads((workspace.folder / "found" / "canaries.json").read_text())
    assert done.stdout.splitlines() == list(lines(written))
    assert done.stdout.startswith("canaries  64 in each run. ")
    assert written["verdict"] == "cannot tell"  # by 64 canaries in two runs
    assert len(written["runs"]) == 2
    assert written["canaries"] == 64
    assert files(workspace.folder / "private") == []
    assert not (workspace.folder / "nowhere").exists()
    assert not workspace.output.exists()
    assert workspace.leftovers() == []
    needles = needles_of(workspace)
    assert_unseen(needles, workspace.folder, workspace.input, done.stdout, done.stderr)


@pytest.mark.parametrize("place", ["private", None])
def test_the_next_run_deletes_what_a_killed_one_has_left(
    workspace: Workspace, place: str | None
) -> None:
    # In a folder that is named, and in the machine's own for temporary files. Kills: a copy of the
    # corpus that stays for ever, or that the next run of another corpus does not delete.
    folder = workspace.folder / (place or "temporary")
    folder.mkdir()
    workspace.environment["TMPDIR"] = str(folder)
    own, given = spec(workspace), ["--canaries", "64", "--runs", "2", *CERTAIN]
    given += ["--work", place] if place else []
    done = workspace.run_code(KILLED + COMMAND, own, *given)
    assert done.returncode == -signal.SIGKILL, done.stderr
    left = [path for path in files(folder) if path.suffix == ".parquet"]
    assert any("corpus" in path.parts for path in left), files(folder)
    assert any(CANARY.split()[0].encode() in path.read_bytes() for path in left)
    again = workspace.run_code(COMMAND, own, *given)
    assert again.returncode == 0, again.stderr
    assert [path for path in files(folder) if path.suffix == ".parquet"] == []
    assert not list(folder.glob(".canaries*"))


def test_a_fault_ends_with_1(workspace: Workspace) -> None:
    done = workspace.run_code(SILENT + COMMAND, spec(workspace), "--canaries", "64")
    assert done.returncode == 1, done.stderr
    assert "VIOLATION" in done.stdout
    last = done.stderr.splitlines()[-1]
    assert last.startswith("quietcorpus: error: releases give away an epsilon of at least ")
    assert last.endswith("that is stated: release nothing")
    assert workspace.leftovers() == []


def test_too_few_canaries_cannot_tell(workspace: Workspace) -> None:
    # 8 guesses of 16 canaries, all right, have a chance of .99 at epsilon 7. Kills: runs that
    # nothing can come of, a pass for nothing, and runs or steps that are announced and not made.
    own = spec(workspace, epsilon=7)
    done = workspace.run_code(TOLD + COMMAND, own, "--canaries", "16", "--output", "found")
    assert done.returncode == 0, done.stderr
    assert "step 1 of 1: placing canaries: took " in done.stderr
    assert "verdict   cannot tell" in done.stdout
    assert done.stdout.startswith("canaries  16. ")
    written = json.loads((workspace.folder / "found" / "canaries.json").read_text())
    assert (written["verdict"], written["runs"], written["passed"]) == ("cannot tell", [], True)


def test_a_copy_in_an_object_store_is_deleted(workspace: Workspace, s3: S3Server) -> None:
    workspace.environment |= s3.environment
    given = ("--canaries", "64", "--runs", "2", "--work", f"s3://{BUCKET}/private", *CERTAIN)
    done = workspace.run("canaries", spec(workspace), *given)
    assert done.returncode == 0, done.stderr
    assert list(s3.keys("private/")) == []


@pytest.mark.slow
def test_two_processes_release_the_copy(workspace: Workspace) -> None:
    given = ("--canaries", "64", "--workers", "2", *CERTAIN)
    done = workspace.run("canaries", spec(workspace), *given)
    assert done.returncode == 0, done.stderr
    assert "verdict   cannot tell: nothing was found" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.yaml",), "missing.yaml: no such spec file"),
        (("spec.yaml", "--canaries", "15"), "--canaries"),
        (("spec.yaml", "--runs", "0"), "--runs"),
        (("spec.yaml", "--confidence", "1"), "--confidence"),
        (("spec.yaml", "--output", "input"), "not empty"),
        (
            ("spec.yaml", "--canaries", "65"),
            "--canaries: 65 are too many: the vocabulary's words have room for 64",
        ),
        (("spec.yaml", "--runner=SparkRunner"), "--work: missing; workers on other machines"),
        (("spec.yaml", "--canaries", "64", "--work", "input/corpus.jsonl/x"), "--work: "),
        (("spec.yaml", "--no-such-option"), "no-such-option"),
    ],
)
def test_bad_input_is_refused(
    workspace: Workspace, arguments: tuple[str, ...], message: str
) -> None:
    spec(workspace)
    done = workspace.run("canaries", *arguments)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert workspace.leftovers() == []
