"""Candidates that no release of sentence embeddings can use: one line each, and no output."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from manifests import edit
from sentence_releases import Sentences, refusal

from quietcorpus.transforms.artefacts.encoder import EncoderSource

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.fixture
def copy(workspace: Workspace, candidates: Path) -> Path:
    """Candidates that a test may spoil."""
    return shutil.copytree(candidates, workspace.folder / "candidates")


def replace(copy: Path, name: str, change: Callable[[Any], Any]) -> None:
    """Change an array, and the manifest's digest of it."""
    np.save(copy / name, change(np.load(copy / name)))
    content = (copy / name).read_bytes()
    entry = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    edit(copy, lambda m: next(f for f in m["files"] if f["path"] == name).update(entry))


GUARANTEE = {"definition": "d", "unit": "u", "parameters": {"epsilon": 1}, "statement": "s"}
# Every other fault: indexes/test_folder_artefacts.py, indexes/documents/test_candidates.py.
FAULTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "damaged": (
        lambda c: (c / "embeddings.npy").write_bytes(b"x"),
        "is damaged: embeddings.npy is not the file that manifest.json describes",
    ),
    "private": (
        lambda c: edit(c, lambda m: m.update(provenance="private", guarantee=GUARANTEE)),
        "was made from private data, and nothing here accounts for that; build candidates from "
        "public documents",
    ),
    "not finite": (
        lambda c: replace(c, "embeddings.npy", lambda rows: rows * np.float32("nan")),
        "holds files of other sizes or values than its manifest.json says; build it again",
    ),
    "newer": (
        lambda c: edit(c, lambda m: m.update(version=5, builder="quietcorpus 9")),
        "was built by a newer version (quietcorpus 9, format 5; this one reads up to 4): update",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_candidates_of_no_use(
    workspace: Workspace, sentences: Sentences, copy: Path, fault: str
) -> None:
    # Kills: any check of candidates that is left out, or made only once workers run.
    change, message = FAULTS[fault]
    change(copy)
    found = refusal(workspace, sentences(candidates=str(copy)))
    assert found.startswith(f"mechanism.candidates: {copy} ")
    assert message in found
    if fault == "private":
        assert workspace.refused(sentences(candidates="candidates")) == found


def test_no_candidates(workspace: Workspace, sentences: Sentences) -> None:
    assert refusal(workspace, sentences(candidates=str(workspace.input))) == (
        f"mechanism.candidates: {workspace.input} is not a set of candidates: it has no "
        "manifest.json that can be read; make one with `quietcorpus index build-candidates`"
    )


def test_an_index_is_no_set_of_candidates(
    workspace: Workspace, sentences: Sentences, word_index: Path
) -> None:
    message = refusal(workspace, sentences(candidates=str(word_index)))
    assert "has a manifest.json that is not one of a set of candidates" in message


def test_an_encoder_that_cannot_be_loaded(
    workspace: Workspace, sentences: Sentences, copy: Path
) -> None:
    # Candidates that claim to have been made with it. Kills: a traceback of the library's.
    (folder := workspace.folder / "model").mkdir()
    (folder / "config.json").write_text("{}")
    digest = EncoderSource.resolve("encoder", str(folder)).digest
    edit(copy, lambda manifest: manifest["encoder"].update(sha256=digest))
    message = refusal(workspace, sentences(candidates=str(copy), encoder=str(folder)))
    assert message.startswith(
        f"mechanism.encoder: {folder} is not a model of sentence-transformers that can be loaded ("
    )
