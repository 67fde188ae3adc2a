"""The policies under deploy/policies: enough for their roles, and no more, on a real server.

The server enforces the S3 policies as they are. Nothing here enforces those of other stores.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from claimed import SPEC, moved_to_store
from machine import ROOT
from ruamel.yaml import YAML
from s3_server import BUCKET
from scripts import HALF_PUBLISHED, IN_THE_MIDDLE, KILLED, killed

if TYPE_CHECKING:
    from s3_server import S3Server

    from tests.conftest import Workspace

POLICIES = ROOT / "deploy" / "policies"
LOCKED = "locked"
PLACES = {
    "CORPUS_BUCKET": BUCKET,
    "CORPUS_PREFIX": "in",
    "ARTEFACTS_BUCKET": BUCKET,
    "ARTEFACTS_PREFIX": "artefacts",
    "RELEASED_BUCKET": BUCKET,
    "RELEASED_PREFIX": "claimed",
    "RELEASE": "out",
    "LEDGER_BUCKET": BUCKET,
    "LEDGER_PREFIX": "ledger",
}
LEDGERED = SPEC | {
    "mechanism.vocabulary": {"public": f"s3://{BUCKET}/artefacts/vocabulary.txt"},
    "ledger": f"s3://{BUCKET}/ledger",
}
VERIFIED = ("verify", SPEC["output"])
AUDITS = (
    ("ledger", "show", LEDGERED["ledger"]),
    ("ledger", "history", LEDGERED["ledger"]),
    ("ledger", "verify", LEDGERED["ledger"]),
)
RECORDS = ("FindRecords", "ReadAndAddRecords", "WithdrawTheProbe")
UNTOLD = {("MakeReleases", "s3:AbortMultipartUpload")}
"""Permitted by the server to everybody who may write."""
# The command, to which every claim is stale.
IMPATIENT = """
import sys
from quietcorpus.cli.main import main
from quietcorpus.pipelines.storage import claims
claims.STALE_SECONDS = 0.0
main()
"""


def policy_of(role: str) -> dict[str, Any]:
    """A role's policy for the places of these tests."""
    text = (POLICIES / "s3" / f"{role}.json").read_text()
    filled = re.sub("|".join(sorted(PLACES, key=len, reverse=True)), lambda m: PLACES[m[0]], text)
    content: dict[str, Any] = json.loads(filled)
    return content


def poorer(policy: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    """The policies that lack one action, by its statement and its name."""
    for number, statement in enumerate(policy["Statement"]):
        for action in statement["Action"]:
            without = copy.deepcopy(dict(policy))
            without["Statement"][number]["Action"].remove(action)
            if not without["Statement"][number]["Action"]:
                del without["Statement"][number]
            yield (statement["Sid"], action), without


@pytest.fixture
def remote(workspace: Workspace, s3: S3Server) -> Workspace:
    """A corpus, a vocabulary and an empty ledger in the store, and a spec of a release of them."""
    moved_to_store(workspace, s3)
    vocabulary = str(workspace.folder / "vocabulary.txt")
    s3.client().upload_file(vocabulary, BUCKET, "artefacts/vocabulary.txt")
    # Whoever opens a ledger needs what a launcher needs there, and another probe's deletion.
    opener = policy_of("launcher")
    opener["Statement"] = [one for one in opener["Statement"] if one["Sid"] in RECORDS]
    opener["Statement"][-1]["Resource"] += [f"arn:aws:s3:::{BUCKET}/ledger/.probe-*"]
    workspace.environment |= s3.environment_permitted(json.dumps(opener))
    opened(workspace, LEDGERED["ledger"])
    workspace.environment |= s3.environment
    workspace.spec(LEDGERED)
    return workspace


def opened(workspace: Workspace, place: str) -> None:
    cap = {"definition": "limited-precision", "precision": 2, "epsilon": 4, "delta": 1e-6}
    with (workspace.folder / "caps.yaml").open("w") as stream:
        YAML(typ="safe").dump({"corpus": f"s3://{BUCKET}/in", "caps": [cap]}, stream)
    done = workspace.run("ledger", "init", place, "caps.yaml")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def permitted(remote: Workspace, s3: S3Server) -> Callable[[Mapping[str, Any]], Workspace]:
    """Gives the workspace's commands a key that may do what a policy says alone."""

    def give(policy: Mapping[str, Any]) -> Workspace:
        remote.environment |= s3.environment_permitted(json.dumps(policy))
        return remote

    return give


def well(workspace: Workspace, *arguments: str) -> bool:
    """Run a command; return that it ends well, without a warning."""
    done = workspace.run(*arguments)
    return done.returncode == 0 and "WARNING" not in done.stderr


@pytest.mark.slow
def test_the_launcher_makes_ledgered_releases(
    permitted: Callable[..., Workspace], s3: S3Server
) -> None:
    """Kills: a policy that lacks what a retry, a takeover or a freed output needs."""
    launcher = permitted(policy_of("launcher"))
    killed(launcher, KILLED, *HALF_PUBLISHED)
    assert s3.keys("claimed/.out.claim")
    assert well(launcher, "release", "spec.yaml")
    assert s3.keys("claimed/.") == []
    assert well(launcher, *VERIFIED)
    assert well(launcher, *VERIFIED, "--ledger", LEDGERED["ledger"])
    # The release's own repetition costs nothing; another one is past the cap.
    assert well(launcher, "release", "spec.yaml", "--if-exists=ok")
    other = {"release": "other", "output": f"s3://{BUCKET}/claimed/other"}
    assert launcher.run("release", str(launcher.spec(LEDGERED | other))).returncode == 3


@pytest.mark.slow
def test_the_launcher_frees_an_output(permitted: Callable[..., Workspace], s3: S3Server) -> None:
    launcher = permitted(policy_of("launcher"))
    killed(launcher, KILLED, *IN_THE_MIDDLE)
    assert s3.keys("claimed/.out.staging-")
    freeing = ("release-claim", SPEC["output"], "--reason", "the run is gone")
    done = launcher.run_code(IMPATIENT, *freeing)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    assert s3.keys("claimed/") == []


@pytest.mark.slow
def test_the_launcher_needs_all_that_it_may_do(
    permitted: Callable[..., Workspace], s3: S3Server
) -> None:
    """Kills: a policy that grants an action which no release uses."""
    for action, without in poorer(policy_of("launcher")):
        if action in UNTOLD:
            continue
        assert not well(permitted(without), "release", "spec.yaml", "--if-exists=ok"), action
        for key in s3.keys("claimed/"):
            s3.client().delete_object(Bucket=BUCKET, Key=key)


@pytest.mark.slow
def test_readers_and_auditors_read_what_is_theirs(
    permitted: Callable[..., Workspace], s3: S3Server
) -> None:
    """Kills: a reader who may see the corpus or the ledger, an auditor who may see a release."""
    assert well(permitted(policy_of("launcher")), "release", "spec.yaml")
    reads: dict[str, tuple[tuple[str, ...], ...]] = {"reader": (VERIFIED,), "auditor": AUDITS}
    for role, commands in reads.items():
        policy = policy_of(role)
        workspace = permitted(policy)
        assert all(well(workspace, *command) for command in commands)
        others = [command for other in reads if other != role for command in reads[other]]
        assert not any(well(workspace, *command) for command in others)
        for _, without in poorer(policy):
            assert not all(well(permitted(without), *command) for command in commands)
        assert not well(permitted(policy), "release", "spec.yaml", "--if-exists=ok")
    both = policy_of("reader")
    both["Statement"] += policy_of("auditor")["Statement"]
    assert well(permitted(both), *VERIFIED, "--ledger", LEDGERED["ledger"])


@pytest.mark.slow
def test_a_ledger_in_a_bucket_with_an_object_lock(remote: Workspace, s3: S3Server) -> None:
    """Kills: a ledger that changes or deletes what it has written."""
    client = s3.client()
    client.create_bucket(Bucket=LOCKED, ObjectLockEnabledForBucket=True)
    rule = {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": 1}}
    client.put_object_lock_configuration(
        Bucket=LOCKED, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", "Rule": rule}
    )
    place = f"s3://{LOCKED}/ledger"
    opened(remote, place)
    remote.spec(LEDGERED | {"ledger": place})
    assert well(remote, "release", "spec.yaml")
    assert well(remote, "ledger", "verify", place)

    def versions(key: str) -> list[str]:
        found = client.list_object_versions(Bucket=LOCKED, Prefix=key)
        return [one["VersionId"] for one in found["Versions"]]

    last = [one["Key"] for one in client.list_objects_v2(Bucket=LOCKED)["Contents"]][-2:]
    assert [key.rpartition(".")[2] for key in last] == ["json", "sha256"]
    for key in last:
        # Nobody, not even an administrator, can delete what was written.
        (version,) = versions(key)
        with pytest.raises(ClientError, match="AccessDenied"):
            client.delete_object(Bucket=LOCKED, Key=key, VersionId=version)
        # But they can hide it, as if it had never been written, and write another in its place.
        hidden = client.delete_object(Bucket=LOCKED, Key=key)
        assert hidden["DeleteMarker"]
        assert versions(key) == [version]
    # The card of the release shows that the ledger's end is missing.
    assert not well(remote, *VERIFIED, "--ledger", place)
    for marker in client.list_object_versions(Bucket=LOCKED, Prefix="ledger/0")["DeleteMarkers"]:
        client.delete_object(Bucket=LOCKED, Key=marker["Key"], VersionId=marker["VersionId"])
    assert well(remote, *VERIFIED, "--ledger", place)
    # What is written over a record is noticed, and what was there before is there still.
    before = client.get_object(Bucket=LOCKED, Key=last[0])["Body"].read()
    client.put_object(Bucket=LOCKED, Key=last[0], Body=b"{}")
    assert not well(remote, "ledger", "verify", place)
    oldest = versions(last[0])[-1]
    kept = client.get_object(Bucket=LOCKED, Key=last[0], VersionId=oldest)["Body"].read()
    assert kept == before
    client.put_object(Bucket=LOCKED, Key=last[0], Body=kept)
    assert well(remote, *VERIFIED, "--ledger", place)


def test_the_roles_of_other_stores_permit_the_calls_that_are_made() -> None:
    """Kills: a role that may change a bucket or its permissions, or that lacks a call."""
    google = {
        path.stem: set(YAML(typ="safe").load(path)["includedPermissions"])
        for path in (POLICIES / "gcs").glob("*.yaml")
    }
    reading = {"storage.objects.get", "storage.objects.list"}
    assert google == {
        "reader": reading,
        "card-reader": {"storage.objects.get"},
        "writer": reading | {"storage.objects.create", "storage.objects.delete"},
    }
    azure = {}
    for path in (POLICIES / "azure").glob("*.json"):
        role = json.loads(path.read_text())
        assert role["Actions"] == []
        azure[path.stem] = {action.partition("/blobs/")[2] for action in role["DataActions"]}
    assert azure == {"reader": {"read"}, "writer": {"read", "write", "add/action", "delete"}}


def test_the_guide_names_the_policies_and_their_places() -> None:
    guide = (ROOT / "docs" / "guides" / "permissions.md").read_text()
    for path in POLICIES.rglob("*.*"):
        store, name = path.relative_to(POLICIES).parts
        assert f"{store}/{name}" in guide
    assert all(place in guide for place in PLACES)
