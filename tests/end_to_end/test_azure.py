"""Input, index and output on Azure Blob Storage: Azurite, with a shared key in the environment."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from s3_server import free_ports

if TYPE_CHECKING:
    from tests.conftest import Workspace

BUILD = Path(os.environ.get("QUIETCORPUS_CLUSTERS", Path(__file__).parents[2] / "build"))
AZURITE = BUILD / "azurite" / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
ACCOUNT, CONTAINER = "quietcorpustest", "corpus"
KEY = base64.b64encode(b"a shared key that nobody may log").decode()
ROOT = f"azfs://{ACCOUNT}/{CONTAINER}"
ABSENT = f"azfs://{ACCOUNT}/absent"
PATIENCE_SECONDS = 60
REMOTE = {
    "input": {"path": f"{ROOT}/in/*.jsonl"},
    "mechanism.vocabulary": {"public": f"{ROOT}/vocabulary.txt"},
    "mechanism.compression": {"method": "random", "size": 3},
    "mechanism.histogram_epsilon": 1,
    "rejects": {"path": f"{ROOT}/rejects", "max_share": 0.5},
}
RACE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from pipelines.object_stores import create_exclusively, read
barrier = Barrier(16)
def race(number):
    barrier.wait()
    return create_exclusively(sys.argv[1], b"%d" % number)
with ThreadPoolExecutor(16) as pool:
    won = [number for number, mine in enumerate(pool.map(race, range(16))) if mine]
print(won, read(sys.argv[1])[0].decode())
"""


def required(reason: str) -> None:
    """Skip for a reason, or fail for it where nothing may be skipped."""
    if os.environ.get("QUIETCORPUS_REQUIRE_CLUSTERS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def connection(port: int) -> str:
    return (
        f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};"
        f"BlobEndpoint=http://127.0.0.1:{port}/{ACCOUNT};"
    )


@dataclass(frozen=True)
class Store:
    """A server with one container; `environment` is its user's."""

    container: Any
    environment: dict[str, str]

    def put(self, name: str, content: bytes) -> None:
        self.container.upload_blob(name, content, overwrite=True)

    def keys(self, prefix: str) -> list[str]:
        return sorted(self.container.list_blob_names(name_starts_with=prefix))

    def get(self, name: str) -> bytes:
        return bytes(self.container.download_blob(name).readall())


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A server that demands signatures, with one container."""
    node = shutil.which("node")
    if node is None or not AZURITE.exists():
        required(f"{AZURITE} or node is missing; `make azurite` brings it")
    assert node is not None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from azure.storage.blob import BlobServiceClient
    except ImportError:
        required("apache-beam[azure] is not installed")
    folder = tmp_path_factory.mktemp("azurite")
    (port,) = free_ports(1)
    command = [node, str(AZURITE), "--blobPort", str(port), "--location", str(folder)]
    # The clients are younger than the emulator, and speak a version that it does not know by name.
    command += ["--silent", "--disableTelemetry", "--skipApiVersionCheck"]
    with (folder / "log").open("wb") as log:
        environment = os.environ | {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=environment)
    try:
        with BlobServiceClient.from_connection_string(connection(port), retry_total=0) as service:
            container = service.get_container_client(CONTAINER)
            create(container, process)
            yield Store(container, {"AZURE_STORAGE_CONNECTION_STRING": connection(port)})
    finally:
        process.kill()
        process.wait(timeout=PATIENCE_SECONDS)


def create(container: Any, process: subprocess.Popen[bytes]) -> None:
    from azure.core.exceptions import ServiceRequestError

    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            container.create_container()
        except ServiceRequestError:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        else:
            return


@pytest.fixture
def remote(workspace: Workspace, store: Store) -> Workspace:
    """A workspace whose commands have the key, and a corpus with one damaged record there."""
    workspace.environment |= store.environment
    path = workspace.json_lines([*["quiet world"] * 50, b'{"text": "quiet world'])
    store.put("in/corpus.jsonl", path.read_bytes())
    store.put("vocabulary.txt", (workspace.folder / "vocabulary.txt").read_bytes())
    return workspace


@pytest.fixture(scope="module")
def index(store: Store, word_index: Path) -> str:
    """The URI of an index in the container."""
    for path in word_index.iterdir():
        store.put(f"index/{path.name}", path.read_bytes())
    return f"{ROOT}/index"


def assert_tells_nothing(text: str, workspace: Workspace) -> None:
    for secret in (workspace.environment["QUIETCORPUS_MASTER_KEY"], KEY, "quiet world"):
        assert secret not in text


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_release_from_container_to_container(
    remote: Workspace, store: Store, workers: str
) -> None:
    output = f"{ROOT}/released/{workers}"
    done = remote.release(
        REMOTE | {"output": output, "release": workers},
        "--workers",
        workers,
        "--log-level",
        "DEBUG",
    )
    assert "DEBUG" in done.stderr
    assert_tells_nothing(done.stdout + done.stderr, remote)
    assert store.keys(f"released/{workers}/") == [
        f"released/{workers}/{name}"
        for name in (
            "README.md",
            "compression.parquet",
            "data/part-00000-of-00001.parquet",
            "release.json",
            "vocabulary.parquet",
        )
    ]
    assert_nothing_left(remote, store)
    rejects = store.keys(f"rejects/{workers}")
    assert rejects
    assert b"corpus.jsonl" in store.get(rejects[0])
    done = remote.run("verify", output)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"verified  {output}: 3 files are as release.json says")
    if workers != "1":
        return
    # The same place again, for another release.
    changes = REMOTE | {"output": output, "release": "another"}
    assert f"output: {output} holds a release already" in remote.refused(changes)
    # A stranger among the files.
    store.put(f"released/{workers}/data/x", b"x")
    assert "data/x: not part of the release" in remote.error_of(remote.run("verify", output))


def assert_nothing_left(workspace: Workspace, store: Store) -> None:
    """Neither a staging area nor a claim nor a probe."""
    assert [key for key in store.keys("") if "/." in key or key.startswith(".")] == []
    assert workspace.leftovers() == []


@pytest.mark.parametrize("workers", ["1", "2"])
def test_words_with_an_index_in_the_container(
    remote: Workspace, store: Store, index: str, words: Callable[..., Any], workers: str
) -> None:
    output = f"{ROOT}/words/{workers}"
    changes = {"input": REMOTE["input"], "rejects": REMOTE["rejects"], "output": output}
    done = remote.release(
        changes | words(index=index), "--workers", workers, "--log-level", "DEBUG"
    )
    assert_tells_nothing(done.stdout + done.stderr, remote)
    assert_nothing_left(remote, store)
    done = remote.run("verify", output)
    assert done.returncode == 0, done.stderr
    card = json.loads(store.get(f"words/{workers}/release.json"))
    assert card["counts"] == {"documents": 50, "rejected": 1}
    # The noise is the engine's affair no more than the store's.
    local = remote.release(changes | words() | {"output": "released/out"})
    assert local.returncode == 0
    (file,) = store.keys(f"words/{workers}/data/")
    (same,) = (remote.output / "data").iterdir()
    assert store.get(file) == same.read_bytes()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"input": {"path": f"{ABSENT}/in/*.jsonl"}}, "input.path: "),
        ({"input": {"path": f"{ROOT}/none/*"}}, f"input.path: no file matches {ROOT}"),
        ({"output": f"{ABSENT}/out"}, "output: "),
        (
            {"mechanism.vocabulary": {"public": f"{ROOT}/absent.txt"}},
            f"mechanism.vocabulary.public: {ROOT}/absent.txt cannot be read",
        ),
    ],
    ids=["input container", "input", "output container", "vocabulary"],
)
def test_missing_places(
    remote: Workspace, store: Store, changes: dict[str, Any], message: str
) -> None:
    before = time.monotonic()
    found = remote.refused(REMOTE | {"output": f"{ROOT}/never"} | changes)
    assert found.startswith(message)
    assert "absent" in found or "none" in found
    assert time.monotonic() - before < PATIENCE_SECONDS
    assert store.keys("never") == []


def test_of_sixteen_creators_one_wins(store: Store) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RACE, f"{ROOT}/raced"],
        env=os.environ | store.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    won, content = done.stdout.strip().rsplit(maxsplit=1)
    assert won == f"[{content}]"
