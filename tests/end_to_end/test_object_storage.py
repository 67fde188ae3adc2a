"""Input and output on object storage: a real S3 server, credentials in the environment."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import datasets
import pytest
from machine import SURE, WORKERS
from s3_server import BUCKET
from uploads import UPLOADS

if TYPE_CHECKING:
    from pathlib import Path

    from s3_server import S3Server

    from tests.conftest import Workspace

PATIENCE_SECONDS = 120


@pytest.fixture
def remote(workspace: Workspace, s3: S3Server) -> Workspace:
    """A workspace whose commands have the server's credentials, and a corpus there."""
    workspace.environment |= s3.environment
    client = s3.client()
    path = workspace.parquet({"text": ["quiet world"] * 200, "n": range(200)}, row_group_size=50)
    client.upload_file(str(path), BUCKET, "in/corpus.parquet")
    client.upload_file(str(workspace.folder / "vocabulary.txt"), BUCKET, "vocabulary.txt")
    return workspace


REMOTE = {
    "input": {"path": "s3://corpus/in/*.parquet", "id": "n", "keep": ["n"]},
    "mechanism.vocabulary": {"public": "s3://corpus/vocabulary.txt"},
    "mechanism.compression": {"method": "random", "size": 3},
    "mechanism.histogram_epsilon": 1,
}


@pytest.mark.slow
@pytest.mark.parametrize("stranger", ["raw.txt", "data/.raw", "x/y/z"])
def test_strangers_are_found_below_any_prefix(
    workspace: Workspace, s3: S3Server, golden: Path, stranger: str
) -> None:
    # Kills: brackets of a prefix that are taken for a pattern, which matches no object.
    workspace.environment |= s3.environment
    release, prefix = golden / "out-words", f"odd[{stranger.count('/')}]{len(stranger)}/*{{a,b}}"
    for path in release.rglob("*"):
        if path.is_file():
            key = f"{prefix}/{path.relative_to(release)}"
            s3.client().upload_file(str(path), BUCKET, key)
    place = f"s3://{BUCKET}/{prefix}"
    assert workspace.run("verify", place).returncode == 0
    s3.client().put_object(Bucket=BUCKET, Key=f"{prefix}/{stranger}", Body=b"raw")
    done = workspace.run("verify", place)
    assert done.returncode == 2
    assert f"{place}/{stranger}: not part of the release" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("workers", WORKERS)
def test_a_release_from_bucket_to_bucket(remote: Workspace, s3: S3Server, workers: str) -> None:
    output = f"s3://corpus/released/{workers}"
    changes = REMOTE | {"output": output, "rejects": {"path": "s3://corpus/rejects"}}
    done = remote.release(changes, "--workers", workers, "--log-level", "DEBUG")
    # Every secret stays out of a log that has every request in it.
    assert s3.environment["AWS_SECRET_ACCESS_KEY"] not in done.stdout + done.stderr
    assert remote.environment["QUIETCORPUS_MASTER_KEY"] not in done.stdout + done.stderr
    assert "quiet world" not in done.stdout + done.stderr
    assert s3.keys(f"released/{workers}/") == [
        f"released/{workers}/{name}"
        for name in (
            "README.md",
            "compression.parquet",
            "data/part-00000-of-00001.parquet",
            "page.html",
            "release.json",
            "vocabulary.parquet",
        )
    ]
    # Nothing of the staging area is left.
    assert s3.keys("released/.") == []
    assert remote.leftovers() == []
    done = remote.run("verify", output)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"verified  {output}: 3 files are as release.json says")
    if workers != "1":
        return
    # The same place again.
    message = remote.error_of(remote.run("release", "spec.yaml"))
    assert f"output: {output} holds a release already, of the same id" in message
    # A stranger among the files.
    s3.client().put_object(Bucket="corpus", Key=f"released/{workers}/data/x", Body=b"x")
    assert "data/x: not part of the release" in remote.error_of(remote.run("verify", output))


@pytest.mark.slow
def test_from_a_saved_dataset_in_a_bucket_to_tables(remote: Workspace, s3: S3Server) -> None:
    # Kills: a prefix that is taken for no place at all, since a store has no folders.
    folder = remote.folder / "saved"
    made = datasets.Dataset.from_dict({"text": ["quiet world"] * 20, "n": [*range(20)]})
    made.save_to_disk(str(folder), num_shards=2)
    for path in folder.iterdir():
        s3.client().upload_file(str(path), BUCKET, f"saved/{path.name}")
    output = "s3://corpus/released/saved"
    remote.release(REMOTE | {"input.path": "s3://corpus/saved", "output": output})
    load = f"import quietcorpus as qc; print(*qc.load('{output}').rows['id'].to_pylist())"
    done = subprocess.run(
        [sys.executable, "-P", "-c", load],
        env=remote.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert sorted(map(int, done.stdout.split())) == [*range(20)], done.stderr


PARQUET = "in/corpus.parquet"
GLOBS = {
    "*.parquet": ["top.parquet", ".b.parquet", "_c.parquet", "in/d.parquet"],
    "day-*/x.parquet": ["day-1/x.parquet", "_day-1/x.parquet"],
    "of [old]/a[1].parquet": ["of [old]/a[1].parquet", "of [old]/b.parquet"],
}


@pytest.mark.parametrize("place", GLOBS)
def test_globs_right_below_the_bucket(remote: Workspace, s3: S3Server, place: str) -> None:
    # Kills: a question for an object without a name, whose failure is taken for an outage; files
    # that are hidden, or markers, read as documents.
    client, names = s3.client(), GLOBS[place]
    content = s3.read(PARQUET)
    for name in names:
        client.put_object(Bucket=BUCKET, Key=name, Body=content)
    try:
        remote.release(REMOTE | {"input.path": f"s3://{BUCKET}/{place}"})
    finally:
        for name in names:
            client.delete_object(Bucket=BUCKET, Key=name)
    assert remote.card()["counts"]["documents"] == 200


def test_the_advice_for_a_folder_in_a_bucket(remote: Workspace) -> None:
    for place, glob in (("s3://corpus/in", "*.parquet"), ("s3://corpus", "**/*.parquet")):
        message = remote.refused(REMOTE | {"input.path": place})
        assert message.endswith(f"{place} is a folder; give a glob, such as {place}/{glob}")


@pytest.mark.parametrize(
    "place", ["*.parquet", "day=1/*.parquet", "x.parquet", "", "day=*/x.parquet"]
)
def test_a_table_in_a_bucket_is_refused(remote: Workspace, s3: S3Server, place: str) -> None:
    # Kills: a marker that is looked for where a store has folders alone.
    for name in ("x.parquet", "day=1/x.parquet", "_delta_log/00000000000000000000.json"):
        s3.client().put_object(Bucket=BUCKET, Key=f"table/{name}", Body=s3.read(PARQUET))
    message = remote.refused(REMOTE | {"input.path": f"s3://corpus/table/{place}"})
    assert message.startswith("input.path: s3://corpus/table is a Delta table: its files also hold")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"input.path": "s3a://corpus/in/*.parquet"},
            "is not written as Beam's file systems expect it; write s3://corpus/in/*.parquet",
        ),
        ({"input.path": "s3://*/in.parquet"}, "s3://*/in.parquet does not name a bucket; write"),
        (
            {"input.path": "s3://Corpus_[1]/x.parquet"},
            "s3://Corpus_[1]/x.parquet does not name a bucket; write",
        ),
        (
            {"mechanism.vocabulary": {"public": "s3://corpus"}},
            "vocabulary.public: s3://corpus cannot be used: no request can be made (ValueError)",
        ),
        ({"output": "s3://No Bucket!/out"}, "no request can be made (ParamValidationError)"),
        (
            {"input.path": "s3://absent/in/*.parquet"},
            "input.path: s3://absent/in cannot be used: the bucket does not exist",
        ),
        ({"input.path": "s3://corpus/none/*"}, "input.path: no file matches s3://corpus/none/*"),
        (
            {"output": "s3://absent/out"},
            "output: s3://absent/out cannot be used: the bucket does not exist; create it",
        ),
        (
            {"mechanism.vocabulary": {"public": "s3://corpus/absent.txt"}},
            "mechanism.vocabulary.public: s3://corpus/absent.txt cannot be read",
        ),
        (
            {"mechanism.vocabulary": {"public": "s3://absent/vocabulary.txt"}},
            "vocabulary.public: s3://absent/vocabulary.txt cannot be used: the bucket does not",
        ),
        (
            {"rejects": {"path": "s3://absent/rejects"}},
            "rejects.path: s3://absent/rejects/test cannot be used: the bucket does not exist",
        ),
    ],
    ids=[
        "scheme",
        "bucket's glob",
        "bucket's brackets",
        "no object",
        "bucket's name",
        "input bucket",
        "input",
        "output bucket",
        "vocabulary",
        "vocabulary bucket",
        "rejects",
    ],
)
def test_missing_places(remote: Workspace, changes: dict[str, Any], message: str) -> None:
    code = 4 if "no file matches" in message else 2
    assert message in remote.refused(REMOTE | {"output": "s3://corpus/never"} | changes, code=code)


PLACES = {
    "output": {"output": "s3://corpus/never"},
    "input.path": {"input.path": "s3://corpus/in/*.parquet"},
    "mechanism.vocabulary.public": {
        "mechanism.vocabulary": {"public": "s3://corpus/vocabulary.txt"}
    },
    "rejects.path": {"rejects": {"path": "s3://corpus/rejects"}},
}


@pytest.mark.parametrize("key", PLACES)
@pytest.mark.parametrize("variable", ["AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"])
def test_wrong_credentials(remote: Workspace, variable: str, key: str) -> None:
    found = remote.refused(PLACES[key], environment={variable: "wrong" * 8}, code=1)
    assert found.startswith(f"{key}: s3://corpus/")
    assert "rejects the credentials (" in found
    assert "renew them, and run again" in found
    assert "wrongwrong" not in found


def test_no_credentials(remote: Workspace) -> None:
    nowhere = dict.fromkeys(("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID")) | {
        "AWS_EC2_METADATA_DISABLED": "true"
    }
    found = remote.refused(PLACES["output"], environment=nowhere)
    assert "no credentials are found (NoCredentialsError); set them in the environment" in found


@pytest.mark.parametrize(
    ("identity", "key", "verb"),
    [
        ("unlisted", "output", "list"),
        ("unlisted", "input.path", "list"),
        ("reader", "output", "write"),
        ("reader", "rejects.path", "write"),
        ("stranger", "mechanism.vocabulary.public", "read"),
    ],
)
def test_what_is_not_permitted(
    remote: Workspace, s3: S3Server, identity: str, key: str, verb: str
) -> None:
    found = remote.refused(PLACES[key], environment=s3.environment_of(identity))
    assert found.startswith(f"{key}: s3://corpus/")
    assert f"do not permit to {verb} there; have that granted" in found


@pytest.mark.slow
@pytest.mark.parametrize("answers", ["nothing listens", "no answer"])
def test_a_store_that_does_not_answer(remote: Workspace, answers: str) -> None:
    """Kills: a check without a deadline; Beam alone takes minutes to give up."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        if answers == "nothing listens":
            silent.close()
        began = time.monotonic()
        found = remote.refused(
            REMOTE | PLACES["output"] | PLACES["rejects.path"],
            environment={"AWS_ENDPOINT_URL_S3": f"http://user:hidden@127.0.0.1:{port}"},
            code=1,
        )
    assert time.monotonic() - began < PATIENCE_SECONDS
    assert f"output: s3://corpus/never cannot be used: 127.0.0.1:{port} does not answer" in found
    assert "hidden" not in found


@pytest.mark.parametrize("scheme", ["hdfs", "nosuch"])
def test_stores_that_cannot_be_written_to_conditionally(workspace: Workspace, scheme: str) -> None:
    done = workspace.refused({"output": f"{scheme}://place/out"})
    assert done.startswith("output: ")


def test_a_failed_run_leaves_nothing(remote: Workspace, s3: S3Server) -> None:
    changes = REMOTE | {"output": "s3://corpus/failed", "input.id": "key"}
    path = remote.parquet({"text": ["quiet"] * 2, "key": ["a", "a"]}, "repeated.parquet")
    s3.client().upload_file(str(path), "corpus", "repeated/corpus.parquet")
    changes |= {"input": {"path": "s3://corpus/repeated/*.parquet", "id": "key"}}
    del changes["input.id"]
    assert "input.id: the column 'key' repeats" in remote.refused(changes)
    assert s3.keys("failed") == []
    assert s3.keys(".failed") == []


@pytest.mark.slow
def test_a_plan_and_an_audit_of_an_artefact_in_the_store(remote: Workspace) -> None:
    # Kills: a command that reads artefacts before the stores' file systems are set up, which a
    # process that another command has warmed up would not show.
    caps = "[{definition: limited-precision, precision: 2, epsilon: 9}]"
    (remote.folder / "caps.yaml").write_text(f"corpus: s3://corpus/in\ncaps: {caps}\n")
    assert remote.run("ledger", "init", "ledger", "caps.yaml").returncode == 0
    changes = REMOTE | {"output": "s3://corpus/planned", "ledger": "ledger"}
    spec = str(remote.spec(changes))
    done = remote.run("ledger", "plan", spec, "--json", fresh=True)
    assert done.returncode == 0, done.stderr
    (planned,) = json.loads(done.stdout)
    assert (planned["refused"], planned["known"]) == (None, False)
    done = remote.run("audit", spec, "--draws", "100", "--confidence", str(SURE), fresh=True)
    assert done.returncode == 0, done.stderr


def test_a_damaged_card_is_no_release(remote: Workspace) -> None:
    message = remote.error_of(remote.run("verify", "s3://corpus/in"))
    assert message == "s3://corpus/in: no release here: release.json is missing"


def test_a_release_is_verified_by_a_process_that_did_nothing_before(
    remote: Workspace, s3: S3Server, golden: Path
) -> None:
    # Kills: a check before the stores' file systems are set up, which finds no release.
    made, client = golden / "out-histogram", s3.client()
    for path in made.rglob("*.*"):
        client.upload_file(str(path), BUCKET, f"golden/{path.relative_to(made)}")
    done = remote.run("verify", "s3://corpus/golden", fresh=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("verified  s3://corpus/golden: ")


@pytest.mark.slow
def test_an_upload_is_whole_or_not_there(s3: S3Server, workspace: Workspace) -> None:
    # As on other stores (test_other_stores.py); and no part of it stays in the bucket, to be paid
    # for, once it has failed.
    done = subprocess.run(
        [sys.executable, "-P", "-c", UPLOADS, f"s3://{BUCKET}/uploads/one"],
        env=workspace.environment | s3.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Uploads" not in s3.client().list_multipart_uploads(Bucket=BUCKET)


@pytest.mark.slow
def test_an_overwritten_object_is_another_corpus(s3: S3Server, workspace: Workspace) -> None:
    # Of the same size, in the same second perhaps. Kills: a file known by its name, size and time.
    digest = "from apache_beam.io.filesystems import FileSystems; "
    digest += "from apache_beam.options.pipeline_options import PipelineOptions; "
    digest += "FileSystems.set_options(PipelineOptions([])); "
    digest += "from quietcorpus.transforms.reading.sources import plan; "
    digest += "from quietcorpus.transforms.reading.documents import Corpus; "
    digest += "c = Corpus('s3://corpus/digest/*.jsonl'); print(plan(c).corpus_digest(c).hex())"
    found = []
    for text in ("quiet", "world"):
        body = b'{"text": "%s"}\n' % text.encode()
        s3.client().put_object(Bucket=BUCKET, Key="digest/a.jsonl", Body=body)
        done = subprocess.run(
            [sys.executable, "-P", "-c", digest],
            env=workspace.environment | s3.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found.append(done.stdout)
    assert found[0] != found[1]
