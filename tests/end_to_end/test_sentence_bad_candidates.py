"""Candidates that no release of sentence embeddings can use: one line each, and no output."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sentence_releases import Sentences, refusal

from quietcorpus.transforms.artefacts.encoder import EncoderSource

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.fixture
def copy(workspace: Workspace, candidates: Path) -> Path:
    """Candidates that a test may spoil."""
    return shutil.copytree(candidates, workspace.folder / "candidates")


def edit(copy: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    manifest = json.loads((copy / "manifest.json").read_text())
    change(manifest)
    (copy / "manifest.json").write_text(json.dumps(manifest))


def flip(copy: Path, name: str) -> None:
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 3] ^= 1
    (copy / name).write_bytes(content)


def replace(copy: Path, name: str, change: Callable[[Any], Any]) -> None:
    """Change an array, and the manifest's digest of it."""
    np.save(copy / name, change(np.load(copy / name)))
    content = (copy / name).read_bytes()
    entry = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    edit(copy, lambda m: next(f for f in m["files"] if f["path"] == name).update(entry))


def empty(copy: Path) -> None:
    edit(copy, lambda manifest: manifest.update(candidates=0))
    for name in ("embeddings.npy", "recoded.npy"):
        replace(copy, name, lambda rows: rows[:0])


GUARANTEE = {"definition": "d", "unit": "u", "parameters": {"epsilon": 1}, "statement": "s"}
FAULTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "damaged": (
        lambda c: flip(c, "embeddings.npy"),
        "is damaged: embeddings.npy is not the file that manifest.json describes",
    ),
    "damaged recoder": (lambda c: flip(c, "recoder.npz"), "is damaged: recoder.npz is not the"),
    "lacking": (lambda c: (c / "box.npy").unlink(), "lacks box.npy, or it cannot be read"),
    "torn manifest": (
        lambda c: (c / "manifest.json").write_text("{"),
        "has a manifest.json that is not one of a set of candidates; build it again",
    ),
    "no set of candidates": (
        lambda c: edit(c, lambda m: m.update(format="quietcorpus-index")),
        "has a manifest.json that is not one of a set of candidates; build it again",
    ),
    "private": (
        lambda c: edit(c, lambda m: m.update(provenance="private", guarantee=GUARANTEE)),
        "was made from private data, and nothing here accounts for that; build candidates from "
        "public documents",
    ),
    "private without a guarantee": (
        lambda c: edit(c, lambda m: m.update(provenance="private")),
        "was made from private data and does not say under which guarantee",
    ),
    "no provenance": (
        lambda c: edit(c, lambda m: m.pop("provenance")),
        "does not say its provenance, public or private; build it again with --provenance",
    ),
    "empty": (empty, "has a manifest.json with values that no candidates have; build it again"),
    "no range of cosines": (
        lambda c: edit(c, lambda m: m.update(cosines=[0.5, 0.5])),
        "has a manifest.json with values that no candidates have; build it again",
    ),
    "not finite": (
        lambda c: replace(c, "embeddings.npy", lambda rows: rows * np.float32("nan")),
        "holds files of other sizes or values than its manifest.json says; build it again",
    ),
    "fewer than said": (
        lambda c: replace(c, "embeddings.npy", lambda rows: rows[1:]),
        "holds files of other sizes or values than its manifest.json says; build it again",
    ),
    "a box without a width": (
        lambda c: replace(c, "box.npy", lambda box: box * [[1.0], [0.0]]),
        "holds files of other sizes or values than its manifest.json says; build it again",
    ),
    "another splitter": (
        lambda c: edit(c, lambda m: m.update(splitter="sentencex-0")),
        "was made by the splitter 'sentencex-0', and this is sentencex-1: build it again",
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
