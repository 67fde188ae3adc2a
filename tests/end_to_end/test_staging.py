"""Nobody can read what lies beside the output before a release is published."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pytest
from s3_server import BUCKET
from scripts import killed

if TYPE_CHECKING:
    from s3_server import S3Server

    from tests.conftest import Workspace

# Runs the command, and kills it once the pipeline is done, before anything is committed.
KILLED = """
import os, signal
import quietcorpus.pipelines.release.run
from quietcorpus.cli.main import main
quietcorpus.pipelines.release.run.describe = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main()
"""
TEXT = "hello quiet world alpha beta gamma delta island"
BAGS = {
    "mechanism.histogram_epsilon": 1,
    "mechanism.include": ["bins"],
    "mechanism.compression": {"method": "frequency", "size": 3},
}
READABLE = (b"PAR1", b"quiet", b"world", b"island", b'"sha256"', b"rows", b"mechanism")


def assert_unreadable(files: Mapping[str, bytes]) -> None:
    staged = {name: content for name, content in files.items() if not name.endswith(".lock")}
    assert len(staged) >= 3  # the manifest, the rows and the vocabulary
    for name, content in staged.items():
        assert not [word for word in READABLE if word in content], name


@pytest.mark.parametrize("kind", ["bags", "words"])
def test_a_killed_launcher_leaves_nothing_to_read(
    kind: str, workspace: Workspace, words: Callable[..., dict[str, Any]]
) -> None:
    # Its reservation may be given back, and its budget spent again. Kills: noisy rows, a noisy
    # histogram or a list of files that lie open in the staging area of a run that is no more; and
    # a folder that stays beside the output for ever.
    workspace.json_lines([TEXT] * 50)
    changes = BAGS if kind == "bags" else words(epsilon=50)
    workspace.spec(changes)
    killed(workspace, KILLED)
    beside = workspace.output.parent
    left = [path for path in beside.rglob("*") if path.is_file()]
    assert_unreadable({path.name: path.read_bytes() for path in left} | {"a": b"", "b": b""})
    assert len(left) >= (3 if kind == "words" else 4)
    workspace.release(changes)
    assert workspace.run("verify", "released/out").returncode == 0
    assert workspace.leftovers() == []


def test_a_launcher_killed_on_a_store(workspace: Workspace, s3: S3Server) -> None:
    # Versions of deleted objects may be kept: they are sealed too. Kills: a staging area that
    # nobody knows of once its claim was deleted by hand.
    s3.empty()
    workspace.environment |= s3.environment
    workspace.json_lines([TEXT] * 50)
    changes = BAGS | {"output": f"s3://{BUCKET}/staged/out"}
    workspace.spec(changes)
    killed(workspace, KILLED)
    keys = s3.keys("staged/.out.staging-")
    assert_unreadable({key: s3.read(key) for key in keys})
    assert len(keys) >= 4
    s3.client().delete_object(Bucket=BUCKET, Key="staged/.out.claim")
    workspace.release(changes)
    assert workspace.run("verify", f"s3://{BUCKET}/staged/out").returncode == 0
    assert s3.keys("staged/.") == []


# Runs the command; once the pipeline is done, another run's staged files take the place of its own.
SWAPPED = """
import shutil, sys
from pathlib import Path
import quietcorpus.pipelines.release.run
from quietcorpus.cli.main import main
theirs = Path(sys.argv.pop(1))
read = quietcorpus.pipelines.release.run.read_run_files
def read_theirs(staging, key):
    if WHAT == "everything":
        shutil.copy(theirs / "manifest.json", staging)
        for path in theirs.glob("data/*"):
            shutil.copy(path, Path(staging, "data"))
        return read(staging, key)
    files, tally = read(staging, key)
    (own,) = (file.staged for file in files if file.path.startswith("data/"))
    (other,) = theirs.glob("data/*")
    shutil.copy(other, own)
    return files, tally
quietcorpus.pipelines.release.run.read_run_files = read_theirs
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("what", ["everything", "rows"])
def test_what_one_run_has_staged_no_other_publishes(what: str, workspace: Workspace) -> None:
    # A run at epsilon 40 is killed, and its budget is given back. Whoever can write to the staging
    # area, and has no key, puts what it left into the place of a run's at epsilon 1. Kills: a seal
    # by the release's key alone, under which any run's files are as good as any other's.
    workspace.json_lines([TEXT] * 50)
    workspace.spec(BAGS | {"mechanism.epsilon": 40})
    killed(workspace, KILLED)
    (left,) = workspace.output.parent.glob(".out.staging-*")
    theirs = workspace.folder / "theirs"
    left.rename(theirs)
    workspace.spec(BAGS | {"mechanism.epsilon": 1})
    done = workspace.run_code(f"WHAT = {what!r}{SWAPPED}", str(theirs), "release", "spec.yaml")
    assert "the staged file was changed on its way" in workspace.error_of(done, code=1)


# Runs the command; once the pipeline is done, a file of the corpus is another.
ALTERED = """
import quietcorpus.pipelines.release.run
from quietcorpus.cli.main import main
read = quietcorpus.pipelines.release.run.read_run_files
def read_later(staging, key):
    with open("input/corpus.jsonl", "a") as file:
        file.write('{"text": "hello"}' + chr(10))
    return read(staging, key)
quietcorpus.pipelines.release.run.read_run_files = read_later
main()
"""


def test_a_corpus_that_changes_while_it_is_read_is_not_released(workspace: Workspace) -> None:
    # Its noise is that of the corpus as it was planned. Kills: two states of a corpus, both planned
    # as one, whose releases share the noise of all that did not change.
    workspace.json_lines([TEXT] * 50)
    workspace.spec(BAGS)
    done = workspace.run_code(ALTERED, "release", "spec.yaml")
    assert "were changed, added or deleted while they were read" in workspace.error_of(done, code=1)
