"""Runs that meet at one output of an object store, and runs that die there."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from claimed import CLAIM, OUTPUT, PREFIX, moved_to_store
from machine import OTHER_KEY
from s3_server import BUCKET
from scripts import HALF_PUBLISHED, IN_THE_MIDDLE, KILLED, killed
from signing_keys import KeyFiles

if TYPE_CHECKING:
    from command_client import CommandServer
    from s3_server import S3Server

    from tests.conftest import Workspace

pytestmark = pytest.mark.slow

ROUNDS = 3
UPLOADING = ("quietcorpus.transforms.shards", "SealedSink", "data/part-")
TEXTS_WRITTEN = ("quietcorpus.pipelines.storage.stores", "create_exclusively", "out/release.json")
CARD_ALONE = (*TEXTS_WRITTEN[:2], "out/release.json'")
PUBLISHED = ("quietcorpus.pipelines.storage.claims", "drop", "claimed")


@pytest.fixture
def remote(workspace: Workspace, s3: S3Server) -> Workspace:
    return moved_to_store(workspace, s3)


def contents(s3: S3Server) -> dict[str, bytes]:
    return {key: s3.read(key) for key in s3.keys(PREFIX)}


def uploads(s3: S3Server) -> list[str]:
    """The objects of which parts may have been uploaded, but which nobody has completed."""
    return [key for key, _ in s3.uploads("")]


def assert_released(remote: Workspace, s3: S3Server) -> None:
    """A release that is as its card says, and nothing of any run beside it."""
    assert remote.run("verify", OUTPUT).returncode == 0
    assert s3.keys("claimed/.") == []
    own = re.compile(rf"claimed/\.out\.staging-[0-9a-f]{{12}}/|{PREFIX}")
    assert [key for key in uploads(s3) if own.match(key)] == []


@pytest.fixture
def both(
    remote: Workspace, second_command_server: CommandServer
) -> Callable[[Mapping[str, str]], list[subprocess.CompletedProcess[str]]]:
    """Runs two releases at once, the second with other variables."""

    def run(changes: Mapping[str, str]) -> list[subprocess.CompletedProcess[str]]:
        done: list[subprocess.CompletedProcess[str]] = []
        arguments = ("release", "spec.yaml")
        rival = threading.Thread(
            target=lambda: done.append(
                second_command_server.run(
                    arguments, remote.folder, remote.environment | dict(changes)
                )
            )
        )
        rival.start()
        done.append(remote.run(*arguments))
        rival.join()
        return sorted(done, key=lambda one: one.returncode)

    return run


LATE = "holds a release already", "appeared meanwhile; name another place"
"""The message of a run that comes when the other has published."""


def test_of_two_different_runs_one_publishes(
    remote: Workspace, s3: S3Server, both: Callable[..., Any]
) -> None:
    """Kills: a claim that is written without a condition, or that nobody checks."""
    for _ in range(ROUNDS):
        winner, loser = both({"QUIETCORPUS_MASTER_KEY": OTHER_KEY})
        assert winner.returncode == 0, winner.stderr
        # One that comes while the other runs may try again; one that comes afterwards may not, and
        # one that claims the place just then finds what the other has published.
        late = any(word in loser.stderr for word in LATE)
        message = remote.error_of(loser, code=2 if late else 1)
        assert late or "is being written by another run, of release test" in message
        assert_released(remote, s3)
        for key in s3.keys("claimed/"):
            s3.client().delete_object(Bucket=BUCKET, Key=key)


def test_of_two_equal_runs_both_may_end_well(
    remote: Workspace, s3: S3Server, both: Callable[..., Any]
) -> None:
    """Kills: a takeover that leaves the earlier run's staging area, or harms what it published."""
    for _ in range(ROUNDS - 1):
        first, second = both({})
        assert first.returncode == 0, first.stderr
        if second.returncode:
            late = any(word in second.stderr for word in LATE)
            message = remote.error_of(second, code=2 if late else 1)
            assert any(
                reason in message
                for reason in ("taken over by another run", "holds a release", "appeared meanwhile")
            ), message
        assert_released(remote, s3)
        for key in s3.keys("claimed/"):
            s3.client().delete_object(Bucket=BUCKET, Key=key)


def test_a_killed_run_is_repeated_by_itself_alone(remote: Workspace, s3: S3Server) -> None:
    """Kills: an identity that leaves out the key; staging areas that are never deleted."""
    killed(remote, KILLED, *IN_THE_MIDDLE)
    claim = s3.read(CLAIM)
    assert remote.environment["QUIETCORPUS_MASTER_KEY"].encode() not in claim
    # Another key; and none at all, which is the key of a run that nothing can repeat.
    for key in (OTHER_KEY, None):
        done = remote.run("release", "spec.yaml", environment={"QUIETCORPUS_MASTER_KEY": key})
        message = remote.error_of(done, code=1)
        assert "is being written by another run, of release test" in message
        assert ", which differs in the master key; its last sign of life was " in message
        assert f"give `quietcorpus release-claim {OUTPUT} --reason ...` after 15 minutes" in message
    assert s3.read(CLAIM) == claim
    # The same run.
    done = remote.run("release", "spec.yaml", "--if-exists=ok")
    assert done.returncode == 0, done.stderr
    assert_released(remote, s3)


def test_what_a_killed_run_has_uploaded_goes(remote: Workspace, s3: S3Server) -> None:
    """Kills: parts that stay in the bucket, and are billed, for ever: a run that was killed in a
    worker, one that nobody knows any more, a launcher that copied a large file; and other outputs'
    parts that go with them."""
    killed(remote, KILLED, *UPLOADING)
    (left,) = uploads(s3)
    assert left.startswith("claimed/.out.staging-")
    own = ["claimed/.out.staging-0123456789ab/data/x", f"{PREFIX}data/part-00000-of-00002.parquet"]
    others = ["claimed/.out.staging-0123456789ab-b/x", "claimed/out.staging", "claimed/outer/x"]
    for key in [*own, *others]:
        s3.client().create_multipart_upload(Bucket=BUCKET, Key=key)
    assert uploads(s3) == sorted([left, *own, *others])
    assert remote.run("release", "spec.yaml").returncode == 0
    assert_released(remote, s3)
    assert uploads(s3) == sorted(others)


@pytest.mark.parametrize("place", [HALF_PUBLISHED, TEXTS_WRITTEN])
def test_a_run_that_died_while_it_published(
    remote: Workspace, s3: S3Server, place: tuple[str, str, str]
) -> None:
    """Kills: a repetition with other bytes, or that takes its own files for a stranger's."""
    killed(remote, KILLED, *place)
    left = contents(s3)
    assert f"{PREFIX}data/part-00001-of-00002.parquet" in left
    assert (f"{PREFIX}README.md" in left) == (place == TEXTS_WRITTEN)
    assert f"{PREFIX}release.json" not in left
    assert remote.run("release", "spec.yaml").returncode == 0
    assert_released(remote, s3)
    assert {key: s3.read(key) for key in left} == left


def test_a_signed_run_that_died_while_it_published(
    remote: Workspace, s3: S3Server, tmp_path: Path
) -> None:
    """Kill it when all but release.json is there, and repeat it with the key and without.

    Kills: a release that appears before its signature; another signature of the same release; a
    signature that stays with a release that nobody signs.
    """
    key = KeyFiles(tmp_path, "key")
    remote.environment["QUIETCORPUS_SIGNING_KEY_FILE"] = key.private
    killed(remote, KILLED, *CARD_ALONE)
    left = contents(s3)
    assert f"{PREFIX}release.json.sig" in left
    assert f"{PREFIX}release.json" not in left
    without = {"QUIETCORPUS_SIGNING_KEY_FILE": None}
    message = remote.error_of(remote.run("release", "spec.yaml", environment=without))
    assert f"{OUTPUT}/release.json.sig appeared meanwhile" in message
    assert remote.run("release", "spec.yaml").returncode == 0
    assert_released(remote, s3)
    assert {key: s3.read(key) for key in left} == left
    assert remote.run("verify", OUTPUT, "--public-key", key.public).returncode == 0


def test_a_stranger_among_what_a_crash_left(remote: Workspace, s3: S3Server) -> None:
    """Kills: a takeover that publishes among files it does not know."""
    killed(remote, KILLED, *HALF_PUBLISHED)
    s3.client().put_object(Bucket=BUCKET, Key="claimed/out/stranger", Body=b"x")
    message = remote.error_of(remote.run("release", "spec.yaml"))
    assert f"{OUTPUT}/stranger appeared meanwhile" in message
    assert s3.read("claimed/out/stranger") == b"x"
    # That run failed, and so can its own repetition: the claim stays with what lies there.
    s3.client().delete_object(Bucket=BUCKET, Key="claimed/out/stranger")
    assert remote.run("release", "spec.yaml").returncode == 0
    assert_released(remote, s3)


def test_an_altered_corpus_is_another_run(remote: Workspace, s3: S3Server) -> None:
    """Kills: an identity of the spec alone."""
    killed(remote, KILLED, *IN_THE_MIDDLE)
    path = remote.parquet({"text": ["quiet hello"] * 6000}, row_group_size=3000)
    s3.client().upload_file(str(path), BUCKET, "in/corpus.parquet")
    message = remote.error_of(remote.run("release", "spec.yaml"), code=1)
    assert (
        "is being written by another run, of release test, which differs in the corpus" in message
    )


def test_a_run_that_died_after_publishing(remote: Workspace, s3: S3Server) -> None:
    """Kills: an --if-exists=ok that does not tidy, or needs the input or the key."""
    killed(remote, KILLED, *PUBLISHED)
    released = contents(s3)
    assert CLAIM in s3.keys("claimed/")
    message = remote.error_of(remote.run("release", "spec.yaml"))
    assert "of the same id, columns and mechanism; accept it with --if-exists=ok" in message
    client = s3.client()
    client.delete_object(Bucket=BUCKET, Key="in/corpus.parquet")
    done = remote.run(
        "release", "spec.yaml", "--if-exists=ok", environment={"QUIETCORPUS_MASTER_KEY": None}
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == f"release   {OUTPUT} (complete already; nothing was done)"
    assert done.stdout.splitlines()[1] == "documents 6,000 (0 records rejected)"
    assert contents(s3) == released
    assert_released(remote, s3)


def test_a_claim_that_is_lost_publishes_nothing(remote: Workspace, s3: S3Server) -> None:
    """Kills: a publisher that does not look at its claim again."""
    script = KILLED.replace(
        "os.kill(os.getpid(), signal.SIGKILL)",
        f"import boto3; boto3.client('s3').delete_object(Bucket={BUCKET!r}, Key={CLAIM!r})",
    )
    done = remote.run_code(script, *IN_THE_MIDDLE, "release", "spec.yaml")
    assert done.returncode == 1
    message = done.stderr.splitlines()[-1]
    assert "was taken over by another run of this release, or deleted" in message
    assert s3.keys("claimed/") == []


def test_a_forged_claim_deletes_nothing(remote: Workspace, s3: S3Server) -> None:
    """Kills: a takeover that believes what a claim says is to be deleted."""
    killed(remote, KILLED, *IN_THE_MIDDLE)
    claim = json.loads(s3.read(CLAIM))
    for forged in (f"s3://{BUCKET}/in", f"{claim['stagings'][0]}/../../in", OUTPUT):
        body = json.dumps(claim | {"stagings": [forged, *claim["stagings"]]}).encode()
        s3.client().put_object(Bucket=BUCKET, Key=CLAIM, Body=body)
        message = remote.error_of(remote.run("release", "spec.yaml"))
        assert f"s3://{BUCKET}/{CLAIM} is not a claim that this version knows" in message
    assert s3.keys("in/") == ["in/corpus.parquet"]
    s3.client().put_object(Bucket=BUCKET, Key=CLAIM, Body=json.dumps(claim).encode())
    assert remote.run("release", "spec.yaml").returncode == 0
    assert_released(remote, s3)


def test_what_is_published_is_undone_under_a_claim_of_its_own(
    remote: Workspace, s3: S3Server
) -> None:
    """Kills: an undo beside which the run's own repetition may publish the same files."""
    # The run fails once its files are copied, and is killed when it has begun to undo that.
    killed(remote, KILLED.replace("original = getattr", FAILING + "original = getattr"), *UNDOING)
    assert json.loads(s3.read(CLAIM))["withdrawn"] is True
    message = remote.error_of(remote.run("release", "spec.yaml"), code=1)
    assert "is being written by another run, of release test; its last sign of life" in message


UNDOING = ("quietcorpus.pipelines.storage.files", "delete", "README.md")
FAILING = """
import quietcorpus.pipelines.storage.publishing
def fails(self, name, text):
    raise OSError(5, "injected")
quietcorpus.pipelines.storage.publishing.Claimed._create = fails
"""


def test_a_damaged_claim_is_named(remote: Workspace, s3: S3Server) -> None:
    s3.client().put_object(Bucket=BUCKET, Key=CLAIM, Body=json.dumps({"run": 1}).encode())
    message = remote.error_of(remote.run("release", "spec.yaml"))
    assert f"s3://{BUCKET}/{CLAIM} is not a claim that this version knows; free" in message
