"""An index in a store, behind a proxy that counts what is fetched, and where a host keeps it."""

from __future__ import annotations

import os
import tempfile
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from fetched_indexes import Elsewhere, digest_of
from s3_proxy import Proxy
from s3_server import S3Server

from quietcorpus.transforms.artefacts import folders
from quietcorpus.transforms.artefacts.folders import IndexSource

if TYPE_CHECKING:
    from tests.conftest import Workspace


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
