"""A word index by its URI: fetched once a host, whole or not at all, and trusted in no other place.

The object store is real; a proxy before it counts what is asked for, and can hold answers back.
Where the store does not matter, a file system that is quicker to reach takes its place.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlparse

import pytest
from apache_beam.io.filesystems import FileSystems
from apache_beam.io.localfilesystem import LocalFileSystem
from apache_beam.options.pipeline_options import PipelineOptions
from s3_server import S3Server

from quietcorpus.indexes.folder import ArtefactError
from quietcorpus.indexes.word_index import WordIndex, open_index
from quietcorpus.transforms.artefacts import folders
from quietcorpus.transforms.artefacts.word_index import IndexSource
from quietcorpus.transforms.errors import InputError

if TYPE_CHECKING:
    from tests.conftest import Workspace

FILES = ["codes.npy", "slots.npy", "vectors.npy", "words.arrow"]
PATIENCE_SECONDS = 30
REQUEST = re.compile(rb"^(GET|HEAD|PUT|POST|DELETE) (/\S*) HTTP/1\.1\r\n")


class Proxy(socketserver.ThreadingTCPServer):
    """Forwards bytes to a server and back, and notes the first line of every request.

    Attributes:
        seen: the requests, as method and path, in order.
        slow: seconds by which every answer is late.
        held: a name; of an answer for it only the first bytes go through, until `go` is set.
        forbidden: part of a first line; such requests are answered here, with 403.
    """

    allow_reuse_address = daemon_threads = True
    block_on_close = False

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Forward)
        place = urlparse(target)
        self.target = (place.hostname, place.port)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.seen: list[tuple[str, str]] = []
        self.slow = 0.0
        self.held = self.forbidden = "\0"
        self.holding, self.go = threading.Event(), threading.Event()

    def fetched(self) -> Counter[str]:
        """Count the requests for each file."""
        return Counter(path.rsplit("/", 1)[1] for method, path in self.seen if method == "GET")


class _Forward(socketserver.BaseRequestHandler):
    server: Proxy

    def handle(self) -> None:
        self.method = self.path = ""
        with socket.create_connection(self.server.target) as upstream:
            answers = threading.Thread(target=self._answer, args=(upstream,), daemon=True)
            answers.start()
            try:
                while data := self.request.recv(1 << 16):
                    if found := REQUEST.match(data):
                        self.method, self.path = (part.decode() for part in found.groups())
                        self.server.seen.append((self.method, self.path))
                    if self.server.forbidden in f"{self.method} {self.path}":
                        self.request.sendall(
                            b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n"
                            b"Connection: close\r\n\r\n"
                        )
                        break
                    upstream.sendall(data)
            except OSError:
                pass
            upstream.close()

    def _answer(self, upstream: socket.socket) -> None:
        try:
            while data := upstream.recv(1 << 14):
                time.sleep(self.server.slow)
                self.request.sendall(data)
                if self.server.held in self.path and self.method == "GET":
                    self.server.holding.set()
                    self.server.go.wait(PATIENCE_SECONDS)
        except OSError:
            pass


class Elsewhere(LocalFileSystem):
    """Files of this machine under a scheme, so that they are fetched like any others."""

    opened: ClassVar[Counter[str]] = Counter()
    slow: ClassVar[float] = 0.0

    @classmethod
    def scheme(cls) -> str:
        return "elsewhere"

    def open(self, path: str, *args: Any, **kwargs: Any) -> Any:
        path = path.removeprefix("elsewhere:/")
        self.opened[path.rsplit("/", 1)[1]] += 1
        time.sleep(self.slow)
        return super().open(path, *args, **kwargs)


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[Proxy]:
    server = Proxy(s3.endpoint)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield server
    server.go.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of fetched indexes, for a user whose home and temporary folders are empty."""
    for name in ("home", "tmp"):  # a workspace has made them already
        (tmp_path / name).mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    for name in (folders.CACHE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(Elsewhere, "opened", Counter())
    FileSystems.set_options(PipelineOptions([]))
    yield tmp_path / "home" / ".cache" / "quietcorpus"
    folders._opened.cache_clear()


@pytest.fixture
def environment(
    cache: Path, proxy: Proxy, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """The variables of a process that may use the store; this one has them too."""
    variables = s3.environment | {"AWS_ENDPOINT_URL_S3": proxy.url}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return dict(os.environ)


@pytest.fixture
def remote(workspace: Workspace, environment: dict[str, str]) -> Workspace:
    """A workspace whose commands may use the store."""
    workspace.environment |= {k: v for k, v in environment.items() if k.startswith("AWS_")}
    return workspace


@pytest.fixture
def stored(environment: dict[str, str], s3: S3Server, word_index: Path) -> IndexSource:
    """The index, in the store."""
    prefix = f"indexes/{uuid.uuid4().hex}"
    for path in word_index.iterdir():
        s3.client().upload_file(str(path), "corpus", f"{prefix}/{path.name}")
    return IndexSource("mechanism.index", f"s3://corpus/{prefix}", digest_of(word_index))


@pytest.fixture
def source(cache: Path, word_index: Path) -> IndexSource:
    """The index, elsewhere."""
    return IndexSource("mechanism.index", f"elsewhere:/{word_index}", digest_of(word_index))


def digest_of(folder: Path) -> str:
    return hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()


def opened(source: IndexSource) -> WordIndex:
    """Open the index as a process does that has not opened it yet."""
    folders._opened.cache_clear()
    return source.open()


def assert_same(index: WordIndex, folder: Path) -> None:
    expected = open_index(str(folder))
    assert (index.vectors == expected.vectors).all()
    assert (index.codes == expected.codes).all()
    assert index.vocabulary.terms == expected.vocabulary.terms
    assert index.manifest == expected.manifest


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


OPEN = """
import os, sys
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from quietcorpus.transforms.artefacts.word_index import IndexSource

uri, digest, processes = sys.argv[1:]
FileSystems.set_options(PipelineOptions([]))
source = IndexSource("mechanism.index", uri, digest)
children = []
for _ in range(int(processes)):
    child = os.fork()
    if child == 0:
        index = source.open()
        assert len(index.vocabulary) == index.manifest.words == len(index.vectors)
        os._exit(0)
    children.append(child)
sys.exit(sum(os.waitpid(child, 0)[1] != 0 for child in children))
"""


def in_processes(source: IndexSource, environment: dict[str, str], count: int) -> Any:
    """Start a process that opens the index in `count` children at once."""
    arguments = [sys.executable, "-W", "ignore", "-c", OPEN, source.uri, source.digest, str(count)]
    return subprocess.Popen(arguments, env=environment, start_new_session=True)


WHOLE = Counter([*FILES, "manifest.json"])


def test_an_index_is_fetched_once_and_kept(
    stored: IndexSource, proxy: Proxy, word_index: Path, cache: Path, tmp_path: Path
) -> None:
    assert_same(opened(stored), word_index)
    assert proxy.fetched() == WHOLE
    # Another process finds it, and does not even know whether the store is there.
    proxy.forbidden = "/"
    seen = len(proxy.seen)
    assert_same(opened(stored), word_index)
    assert len(proxy.seen) == seen
    assert names_in(cache) == [stored.digest, f"{stored.digest}.lock"]
    assert not list((tmp_path / "tmp").iterdir())


@pytest.mark.parametrize("place", ["named", "xdg", "home"])
def test_where_it_is_kept(
    source: IndexSource,
    word_index: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
) -> None:
    cache = {
        "named": tmp_path / "named",
        "xdg": tmp_path / "xdg" / "quietcorpus",
        "home": tmp_path / "home" / ".cache" / "quietcorpus",
    }[place]
    if place != "home":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    if place == "named":
        monkeypatch.setenv(folders.CACHE, str(cache))
    for _ in range(2):
        assert_same(opened(source), word_index)
        assert Elsewhere.opened == WHOLE
    assert names_in(cache) == [source.digest, f"{source.digest}.lock"]
    assert names_in(cache / source.digest) == sorted(WHOLE)
    # Nobody else can look in, or put something there.
    assert cache.stat().st_mode & 0o777 == 0o700


def test_processes_of_a_host_fetch_it_once(
    stored: IndexSource, environment: dict[str, str], proxy: Proxy, cache: Path
) -> None:
    # Kills: no lock; each of four would download, and three fail to rename.
    proxy.slow = 0.05
    assert in_processes(stored, environment, 4).wait(PATIENCE_SECONDS) == 0
    assert proxy.fetched() == WHOLE
    assert names_in(cache) == [stored.digest, f"{stored.digest}.lock"]


def test_threads_of_a_process_fetch_it_once(
    source: IndexSource, word_index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Clusters' workers run several bundles in one process, and a lock of a file is the process's.
    monkeypatch.setattr(Elsewhere, "slow", 0.05)
    folders._opened.cache_clear()
    ready = threading.Barrier(4)

    def in_step(_: int) -> WordIndex:
        ready.wait()
        return source.open()

    with ThreadPoolExecutor(4) as pool:
        for index in pool.map(in_step, range(4)):
            assert_same(index, word_index)
    assert Elsewhere.opened == WHOLE


def test_a_torn_download_is_never_used(
    stored: IndexSource,
    environment: dict[str, str],
    proxy: Proxy,
    word_index: Path,
    cache: Path,
) -> None:
    # A process is killed in the middle of a file. Kills: downloading to where it is looked for.
    proxy.held = "vectors.npy"
    process = in_processes(stored, environment, 1)
    assert proxy.holding.wait(PATIENCE_SECONDS)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(PATIENCE_SECONDS)
    assert not (cache / stored.digest).exists()
    assert list(cache.rglob("manifest.json"))  # it had begun
    proxy.held = "\0"
    assert_same(opened(stored), word_index)
    assert proxy.fetched()["vectors.npy"] == 2


def test_a_torn_download_is_cleared_away(
    source: IndexSource, cache: Path, word_index: Path
) -> None:
    # Kills: a disk that fills up with the downloads of workers that were killed.
    cache.mkdir(parents=True, mode=0o700)
    torn = cache / f"{source.digest}.{uuid.uuid4().hex}.torn"
    torn.mkdir()
    (torn / "vectors.npy").write_bytes(b"half")
    assert_same(opened(source), word_index)
    assert names_in(cache) == [source.digest, f"{source.digest}.lock"]


@pytest.mark.parametrize("damage", ["manifest.json", "vectors.npy", "missing"])
def test_a_damaged_copy_is_fetched_again(
    source: IndexSource, word_index: Path, cache: Path, damage: str
) -> None:
    cache.mkdir(parents=True, mode=0o700)
    copy = shutil.copytree(word_index, cache / source.digest)
    assert_same(opened(source), word_index)
    assert not Elsewhere.opened
    match damage:
        case "missing":
            (copy / "codes.npy").unlink()
        case name:
            content = bytearray((copy / name).read_bytes())
            content[len(content) // 2] ^= 1
            (copy / name).write_bytes(content)
    assert_same(opened(source), word_index)
    assert Elsewhere.opened == WHOLE
    assert_same(open_index(str(copy)), word_index)


def test_a_home_that_cannot_be_written_to(
    source: IndexSource, word_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    for home in ("/proc", str(tmp_path / "file")):  # neither is the superuser's to write to
        monkeypatch.setenv("HOME", home)
        assert_same(opened(source), word_index)
    places = list((tmp_path / "tmp").iterdir())
    assert places == [tmp_path / "tmp" / f"quietcorpus-{os.getuid()}"]
    assert places[0].stat().st_mode & 0o777 == 0o700


def test_a_user_without_a_home(
    source: IndexSource, word_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Containers often run under a number that no list of users knows.
    monkeypatch.delenv("HOME")
    number = os.getuid()
    monkeypatch.setattr("pwd.getpwuid", lambda _: {}["nobody"])
    assert_same(opened(source), word_index)
    assert names_in(tmp_path / "tmp") == [f"quietcorpus-{number}"]


def refusal(source: IndexSource) -> str:
    with pytest.raises(InputError) as raised:
        opened(source)
    message = str(raised.value)
    assert "\n" not in message
    assert raised.value.__cause__ is None
    start = f"mechanism.index: {source.uri} "
    assert message.startswith(start)
    return message.removeprefix(start)


def test_a_folder_of_somebody_elses_is_not_used(
    source: IndexSource,
    word_index: Path,
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Whoever owns it could exchange a file between its verification and its use. What is whole in
    # it is not used either.
    shutil.copytree(word_index, cache / source.digest)
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 4711)
    theirs = tmp_path / "tmp" / f"quietcorpus-{os.getuid()}"
    theirs.mkdir()
    assert refusal(source).startswith("cannot be kept anywhere; set $QUIETCORPUS_CACHE to a fol")
    assert not list(theirs.iterdir())
    assert not Elsewhere.opened
    monkeypatch.setenv(folders.CACHE, str(theirs))
    assert refusal(source).startswith("cannot be kept anywhere")


@pytest.mark.parametrize("trap", ["link", "writable"])
def test_a_folder_that_others_can_change_is_not_used(
    source: IndexSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trap: str
) -> None:
    # In a shared temporary folder, anybody can put a link to a folder of ours, or find ours open.
    monkeypatch.setenv("HOME", "/proc")
    place = tmp_path / "tmp" / f"quietcorpus-{os.getuid()}"
    ours = tmp_path / "ours"
    ours.mkdir()
    if trap == "link":
        place.symlink_to(ours)
    else:
        place.mkdir()
        place.chmod(0o777)
    assert refusal(source).startswith("cannot be kept anywhere")
    assert not list(ours.iterdir())


def test_nowhere_to_keep_it(source: IndexSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(folders.CACHE, "/proc/none")
    assert refusal(source).startswith("cannot be kept anywhere; set $QUIETCORPUS_CACHE to a fol")


@pytest.mark.parametrize("path", ["../../../../../../../../etc/passwd", "/etc/passwd", "x.npy"])
def test_a_manifest_that_names_other_files(
    source: IndexSource, word_index: Path, cache: Path, tmp_path: Path, path: str
) -> None:
    # Kills: fetching what it says to where it says.
    wrong = shutil.copytree(word_index, tmp_path / "wrong")
    manifest = json.loads((wrong / "manifest.json").read_text())
    files = [manifest["files"][0] | {"path": path}, *manifest["files"]]
    (wrong / "manifest.json").write_text(json.dumps(manifest | {"files": files}))
    named = IndexSource(source.key, f"elsewhere:/{wrong}", digest_of(wrong))
    assert "does not list each of words.arrow, slots.npy, vectors.npy, codes.n" in refusal(named)
    assert Elsewhere.opened == Counter(["manifest.json"])
    assert names_in(cache) == [f"{named.digest}.lock"]


@pytest.mark.parametrize("path", ["../outside", "/outside", "inner/outside", "..", "", "\0"])
def test_no_artefact_writes_beside_its_copy(cache: Path, tmp_path: Path, path: str) -> None:
    # Kills: leaving it to each kind of artefact to say which names its files may have.
    (tmp_path / "manifest.json").write_text("{}")
    uri, digest = f"elsewhere:/{tmp_path}", digest_of(tmp_path)
    listing = SimpleNamespace(files=[{"path": path, "sha256": ""}])
    with pytest.raises(ArtefactError, match=r"lists files by other than plain names; build it"):
        folders.local(uri, digest, lambda *_: listing)
    assert Elsewhere.opened == Counter(["manifest.json"])
    assert names_in(cache) == [f"{digest}.lock"]


def test_what_is_not_in_the_store(
    stored: IndexSource, word_index: Path, s3: S3Server, cache: Path
) -> None:
    prefix = stored.uri.removeprefix("s3://corpus/")
    store = s3.client()

    def put(name: str, content: bytes) -> None:
        store.put_object(Bucket="corpus", Key=f"{prefix}/{name}", Body=content)

    put("codes.npy", b"x")
    assert refusal(stored).startswith("is damaged: codes.npy is not the file that manifest.json")
    store.delete_object(Bucket="corpus", Key=f"{prefix}/codes.npy")
    assert refusal(stored).startswith("cannot be fetched; check the path, the credentials, and ")
    put("manifest.json", (word_index / "manifest.json").read_bytes() + b" ")
    assert refusal(stored) == "has changed since the release began"
    store.delete_object(Bucket="corpus", Key=f"{prefix}/manifest.json")
    assert refusal(stored).startswith("cannot be fetched")
    # Nothing of all that is kept.
    assert names_in(cache) == [f"{stored.digest}.lock"]
    for uri in (stored.uri, "s3://absent/index", "foo://bucket/index", str(cache)):
        with pytest.raises(
            InputError, match=r"^mechanism\.index: .* is not an index: it has no man"
        ):
            IndexSource.resolve("mechanism.index", uri)


def test_credentials_that_do_not_open_it(
    stored: IndexSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong" * 8)
    message = refusal(stored)
    assert message.startswith("cannot be fetched; check the path, the credentials")
    assert "wrong" not in message


def test_an_index_in_the_store_from_end_to_end(
    remote: Workspace,
    proxy: Proxy,
    s3: S3Server,
    word_index: Path,
    words: Callable[..., dict[str, Any]],
    lee_texts: list[str],
    lee_file: Callable[[str], Path],
) -> None:
    prefix = f"built/{uuid.uuid4().hex}"
    uri = f"s3://corpus/{prefix}"
    arguments = (str(lee_file("lee_fasttext.vec")), "--output", uri, "--provenance", "public")
    done = remote.run("index", "build", *arguments)
    assert done.returncode == 0, done.stderr
    written = [path for method, path in proxy.seen if method in ("PUT", "POST") and prefix in path]
    # An index exists once its manifest does.
    assert "manifest.json" in written[-1]
    assert not any("manifest.json" in path for path in written[: -len(written) // 5])
    # It is the same index as one on disk, byte by byte.
    store = s3.client()
    for path in word_index.iterdir():
        body = store.get_object(Bucket="corpus", Key=f"{prefix}/{path.name}")["Body"].read()
        assert body == path.read_bytes()
    assert s3.keys(prefix) == [f"{prefix}/{name}" for name in names_in(word_index)]
    # A place that is taken.
    assert "exists already and is not empty" in remote.error_of(
        remote.run("index", "build", *arguments)
    )
    # What it releases is what the index on disk does.
    remote.json_lines(lee_texts[:8])
    proxy.seen.clear()
    for output, index in (("far", uri), ("near", str(word_index))):
        options = ("--workers", "2") if output == "far" else ()
        remote.release(words(index=index) | {"output": f"released/{output}"}, *options)
    far, near = (remote.output.with_name(name) for name in ("far", "near"))
    assert remote.rows(far) == remote.rows(near)
    assert [a["uri"] for a in remote.card(far)["artefacts"]] == [uri]
    # The launcher has looked at the manifest, and somebody has fetched it, for all three.
    assert not proxy.fetched() - Counter([*FILES, "manifest.json", "manifest.json"])


def test_an_index_that_cannot_be_stored_leaves_nothing(
    remote: Workspace, proxy: Proxy, s3: S3Server
) -> None:
    (remote.folder / "v.txt").write_text("alpha 1 2\nbeta 2 1\n")

    def message(output: str) -> str:
        arguments = ("v.txt", "--output", output, "--provenance", "public")
        return remote.error_of(remote.run("index", "build", *arguments))

    assert message("s3://absent/index").startswith("--output: s3://absent")
    prefix = f"failed/{uuid.uuid4().hex}"
    proxy.forbidden = f"PUT /corpus/{prefix}/words.arrow"
    assert message(f"s3://corpus/{prefix}").startswith(f"--output: s3://corpus/{prefix}")
    assert s3.keys(prefix) == []
