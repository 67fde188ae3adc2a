"""An upgrade of the software between a try that died and its retry, by real processes."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import pytest
from claimed import OUTPUT, PREFIX, SPEC, moved_to_store
from machine import ROOT
from s3_server import BUCKET
from scripts import HALF_PUBLISHED, IN_THE_MIDDLE, KILLED, killed

if TYPE_CHECKING:
    from s3_server import S3Server

    from tests.conftest import Workspace

pytestmark = pytest.mark.slow

STALE_SECONDS = 3
COMMENT = (
    "pipelines/storage/places.py",
    "from __future__",
    "# of a later version\nfrom __future__",
)
STALE = (
    "pipelines/storage/claims.py",
    "STALE_SECONDS = 15 * 60.0",
    f"STALE_SECONDS = {STALE_SECONDS}.0",
)
LAW = ("pipelines/kinds/bag_of_words/job.py", '"documents": 1', '"documents": 2')
"""Changes of the software: a file, what is in it, and what a later version has there."""


def upgraded(workspace: Workspace, *changes: tuple[str, str, str]) -> dict[str, str | None]:
    """The environment of a later version of the software, which differs in these files alone."""
    folder = workspace.folder / f"later-{len(list(workspace.folder.glob('later-*')))}"
    package = folder / "quietcorpus"
    shutil.copytree(ROOT / "quietcorpus", package)  # with its links, and what is compiled of it
    for file, before, after in changes:
        path = package / file
        text = path.read_text()
        assert before in text
        path.write_text(text.replace(before, after, 1))
    return {"PYTHONPATH": str(folder), "PYTHONSAFEPATH": "1"}


@pytest.fixture
def remote(workspace: Workspace, s3: S3Server) -> Workspace:
    return moved_to_store(workspace, s3)


def assert_released(remote: Workspace, s3: S3Server) -> None:
    """A release that is as its card says, and nothing of any run beside it."""
    assert remote.run("verify", OUTPUT).returncode == 0
    assert s3.keys("claimed/.") == []
    assert s3.uploads("claimed/") == []


def assert_retried(remote: Workspace, s3: S3Server, later: dict[str, str | None]) -> None:
    """A retry by a later version makes the release."""
    done = remote.run("release", "spec.yaml", environment=later, fresh=True)
    assert done.returncode == 0, done.stderr
    assert_released(remote, s3)


def test_a_later_version_retries_what_an_earlier_one_began(remote: Workspace, s3: S3Server) -> None:
    # Kills: a claim that is for ever another run's once a comment was changed; one that is taken
    # while its run may be alive; and staging areas that stay.
    killed(remote, KILLED, *IN_THE_MIDDLE)
    later = upgraded(remote, COMMENT)
    message = remote.error_of(
        remote.run("release", "spec.yaml", environment=later, fresh=True), code=1
    )
    assert "which differs in the software (0.1.0 there, of other files or libraries)" in message
    assert "run again after 15 minutes without one; nothing was published" in message
    time.sleep(STALE_SECONDS)
    later = upgraded(remote, COMMENT, STALE)
    assert_retried(remote, s3, later)


def test_a_later_version_finishes_what_was_published_by_the_same_law(
    remote: Workspace, s3: S3Server
) -> None:
    # Kills: a second draw of what a reader may have seen, and files that no card lists.
    killed(remote, KILLED, *HALF_PUBLISHED)
    left = {key: s3.read(key) for key in s3.keys(PREFIX)}
    assert len(left) >= 2
    time.sleep(STALE_SECONDS)
    other = upgraded(remote, STALE, LAW)
    message = remote.error_of(
        remote.run("release", "spec.yaml", environment=other, fresh=True), code=1
    )
    assert f"give `quietcorpus release-claim {OUTPUT} --reason ...`" in message
    later = upgraded(remote, STALE, COMMENT)
    assert_retried(remote, s3, later)
    assert {key: s3.read(key) for key in left} == left


def test_a_claim_of_another_law_is_released_by_hand(remote: Workspace, s3: S3Server) -> None:
    # Kills: a wedge that only the deletion of an object that no document describes can end.
    killed(remote, KILLED, *HALF_PUBLISHED)
    command = ("release-claim", OUTPUT, "--reason", "of an earlier version")
    message = remote.error_of(remote.run(*command), code=1)
    assert "gave a sign of life" in message
    assert message.endswith("; the claim was not released")
    time.sleep(STALE_SECONDS)
    later = upgraded(remote, STALE, LAW)
    done = remote.run(*command, environment=later, fresh=True)
    assert (done.returncode, done.stdout) == (0, f"released  {OUTPUT}\n"), done.stderr
    assert s3.keys("claimed/") == []
    assert_retried(remote, s3, later)


def test_a_ledger_lets_no_later_version_finish_what_is_committed(
    remote: Workspace, s3: S3Server
) -> None:
    # Kills: a ledger that asks for no more than a claim does. What was committed was published, or
    # may have been; what another version draws may be a second look at the same documents.
    (remote.folder / "caps.yaml").write_text(
        f"corpus: s3://{BUCKET}/in\n"
        "caps: [{definition: limited-precision, precision: 2, epsilon: 9, delta: 1.0e-6}]\n"
    )
    done = remote.run("ledger", "init", f"s3://{BUCKET}/ledger", "caps.yaml")
    assert done.returncode == 0, done.stderr
    remote.spec(SPEC | {"ledger": f"s3://{BUCKET}/ledger"})
    killed(remote, KILLED, *HALF_PUBLISHED)
    left = {key: s3.read(key) for key in s3.keys(PREFIX)}
    time.sleep(STALE_SECONDS)
    later = upgraded(remote, STALE, COMMENT)
    message = remote.error_of(remote.run("release", "spec.yaml", environment=later, fresh=True))
    assert "release test is committed, of other documents or by other software" in message
    assert {key: s3.read(key) for key in s3.keys(PREFIX)} == left
    assert remote.run("release", "spec.yaml").returncode == 0
    assert_released(remote, s3)


def test_a_local_folder_needs_no_patience(workspace: Workspace) -> None:
    # Kills: a staging area of an earlier version that stays, or that stops a later one.
    workspace.spec()
    killed(workspace, KILLED, *IN_THE_MIDDLE)
    assert len(workspace.leftovers()) == 1
    later = upgraded(workspace, COMMENT)
    done = workspace.run("release", "spec.yaml", environment=later, fresh=True)
    assert done.returncode == 0, done.stderr
    assert workspace.run("verify", "released/out").returncode == 0
    assert workspace.leftovers() == []


def test_a_killed_run_beside_a_local_folder_is_released_by_hand(workspace: Workspace) -> None:
    # Kills: what a run that nobody repeats leaves for ever.
    workspace.spec()
    killed(workspace, KILLED, *IN_THE_MIDDLE)
    command = ("release-claim", "released/out", "--reason", "nobody needs it")
    done = workspace.run(*command)
    assert (done.returncode, done.stdout) == (0, "released  released/out\n"), done.stderr
    message = workspace.error_of(workspace.run(*command))
    assert "no run has left anything beside" in message
