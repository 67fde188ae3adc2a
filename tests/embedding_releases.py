"""Releases of word embeddings of the Lee corpus, as if each of its texts were a user's: of what and
how, and what is in them."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quietcorpus.indexes.tokens.tokenizer import tokenize

if TYPE_CHECKING:
    from conftest import Workspace

USERS = 300
WORDS = 120
DIMENSIONS = 8
WORDS_A_DOCUMENT = 60
TEAMS = ("gold", "silver")
INDEX_FILES = ("codes.npy", "manifest.json", "slots.npy", "vectors.npy", "words.arrow")
FILES = {
    "vectors.parquet",
    "vectors.txt",
    "vectors.bin",
    "vocabulary.parquet",
    *(f"index/{name}" for name in INDEX_FILES),
}
METHODS: dict[str, dict[str, Any]] = {
    "sgd": {"epsilon": 8, "training": {"steps": 5, "lot": 100}},
    "cooccurrence": {"epsilon": 60},
}
EITHER = [pytest.param("sgd", marks=pytest.mark.slow), "cooccurrence"]
"""The methods, of which training takes seconds."""
BUDGETS = {"column": "team", "epsilon": {"gold": 60, "silver": 30}}
PRIVATE = {"private": {"epsilon": 12, "delta": 1e-5, "words": 30}}

Record = dict[str, Any]


def documents(texts: Sequence[str]) -> list[Record]:
    """Each text as some documents of one user, and users in two teams."""
    return [
        {
            "author": f"user-{number}",
            "team": TEAMS[number % len(TEAMS)],
            "text": " ".join(words[start : start + WORDS_A_DOCUMENT]),
        }
        for number, words in enumerate(map(str.split, texts))
        for start in range(0, len(words), WORDS_A_DOCUMENT)
    ]


def common_words(texts: Sequence[str], count: int = WORDS) -> list[str]:
    """The most common words of some texts."""
    found = tokenize(pa.array(texts))
    raw = found.data.tobytes()
    counts = Counter(raw[a:b].decode() for a, b in zip(found.starts, found.ends, strict=True))
    return [word for word, _ in counts.most_common(count)]


def write_corpus(workspace: Workspace, records: Sequence[Record], **options: Any) -> None:
    """Documents in one Parquet file of several row groups."""
    workspace.parquet(
        {name: pa.array([r.get(name) for r in records], pa.string()) for name in records[0]},
        **{"row_group_size": 200} | options,
    )


def prepare(workspace: Workspace, texts: Sequence[str]) -> None:
    """A corpus of users, and the vocabulary `words.txt`."""
    write_corpus(workspace, documents(texts))
    (workspace.folder / "words.txt").write_text("\n".join(common_words(texts)) + "\n")


def embeddings(workspace: Workspace, method: str, /, **block: Any) -> dict[str, Any]:
    """The changes by which a workspace's spec becomes one of word embeddings (... removes a key).

    With `budgets`, all users' `epsilon` is left out.
    """
    whole = {
        "kind": "word-embeddings",
        "method": method,
        "user": "author",
        "users": USERS,
        "delta": 2e-5,
        "vocabulary": {"public": str(workspace.folder / "words.txt")},
        "dimensions": DIMENSIONS,
        "few_users": "accept",
        **METHODS[method],
        **({"epsilon": ...} if "budgets" in block else {}),
        **block,
    }
    return {
        "input": {"path": "input/corpus.parquet"},
        "mechanism": {key: value for key, value in whole.items() if value is not ...},
    }


def release_all(workspace: Workspace, changes: Mapping[str, Any], *outputs: str) -> None:
    """Release to each of these places in this process, which keeps what is slow to load."""
    for output in outputs:
        workspace.release_here({**changes, "output": f"released/{output}"})


def vectors_of(output: Path) -> dict[str, npt.NDArray[np.float32]]:
    """The vectors of the Parquet file."""
    table = pq.read_table(output / "vectors.parquet")
    rows = zip(table["word"].to_pylist(), table["vector"].to_pylist(), strict=True)
    return {word: np.array(vector, dtype=np.float32) for word, vector in rows}


def digests_of(output: Path) -> dict[str, str]:
    """The SHA-256 of every file of a release but its card's two."""
    return {
        str(path.relative_to(output)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in output.rglob("*")
        if path.is_file() and path.name not in ("release.json", "README.md", "page.html")
    }


@contextmanager
def ray_folder() -> Iterator[Path]:
    """Yield a folder for Ray's files: the names of its sockets must be short."""
    folder = Path(tempfile.mkdtemp(prefix="qcr", dir=tempfile.gettempdir()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def without_rays_words(text: str) -> str:
    """Return what the command said, less the lines that Ray's and gRPC's C++ parts write.

    They begin with a time and a process in brackets, with a level and a date as glog writes them,
    or announce that they come before the log is set up. No setting silences all of them.
    """
    return re.sub(
        r"(?m)^(\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|[IWEF]\d{4} \d\d:\d\d:\d\d"
        r"|WARNING: All log messages before absl).*\n",
        "",
        text,
    )


def not_installed(workspace: Workspace, *modules: str) -> dict[str, str | None]:
    """An environment in which modules are not found, though other packages may look whether they
    were imported."""
    folder = workspace.folder / "not-installed"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import importlib.machinery, sys\n"
        "class Finder(importlib.machinery.PathFinder):\n"
        "    @classmethod\n"
        "    def find_spec(cls, name, path=None, target=None):\n"
        f"        if name.split('.')[0] not in {modules!r}:\n"
        "            return super().find_spec(name, path, target)\n"
        "place = sys.meta_path.index(importlib.machinery.PathFinder)\n"
        "sys.meta_path[place] = Finder\n"
    )
    return {"PYTHONPATH": str(folder)}
