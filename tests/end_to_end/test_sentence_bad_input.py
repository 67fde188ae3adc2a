"""Candidates that no release of sentence embeddings can use: one line each, and no output."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from encoders import packaged_folder
from machine import without
from manifests import edit
from sentence_releases import Sentences, refusal

from quietcorpus.indexes.documents.candidates import Candidates
from quietcorpus.transforms.artefacts.encoder import PACKAGED, EncoderSource
from quietcorpus.transforms.artefacts.folders import CandidatesSource

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.fixture
def copy(workspace: Workspace, candidates: Path) -> Path:
    """Candidates that a test may spoil."""
    return shutil.copytree(candidates, workspace.folder / "candidates")


def put(copy: Path, name: str, change: Callable[[Any], Any]) -> None:
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
        lambda c: put(c, "embeddings.npy", lambda rows: rows * np.float32("nan")),
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


# Specs of sentence embeddings that name no encoder of use, or ask for too much: one line each.


@pytest.mark.parametrize("mechanism", ["deep-candidate", "truncation", "projected-mean"])
def test_another_encoder(
    workspace: Workspace, sentences: Sentences, candidates: Path, mechanism: str
) -> None:
    # Kills: a name, or a number of dimensions, taken for the encoder itself.
    packaged = EncoderSource.resolve("encoder", PACKAGED)
    model = Path(os.path.realpath(packaged_folder()))
    other = workspace.folder / "model"
    shutil.copytree(model, other, copy_function=os.symlink)
    # Another place, and what a download leaves there, make no other encoder.
    (other / ".cache").mkdir()
    (other / ".cache" / "note").write_text("fetched today")
    assert EncoderSource.resolve("encoder", str(other)).digest == packaged.digest
    config = other / "config.json"
    content = config.read_text()
    config.unlink()
    config.write_text(content.replace("{", "{ ", 1))
    block = {"mechanism": mechanism, "encoder": str(other)}
    if mechanism != "deep-candidate":
        block |= {"utility": ...}
    message = refusal(workspace, sentences(**block))
    digest = json.loads((candidates / "manifest.json").read_text())["encoder"]["sha256"]
    assert message == (
        f"mechanism.encoder: {other} is not the encoder of the candidates "
        f"({PACKAGED}, 384 dimensions, sha256 {digest[:12]}...); give that one, or build "
        "candidates with this"
    )


def test_no_encoder(workspace: Workspace, sentences: Sentences) -> None:
    offline = {"HF_HUB_OFFLINE": "1"}
    message = workspace.refused(sentences(encoder="nobody/none"), environment=offline)
    assert message.startswith(
        "mechanism.encoder: nobody/none is neither a folder nor an available model; give the "
        "path of a sentence-transformers model"
    )


@pytest.mark.slow
@pytest.mark.parametrize("module", ["onnxruntime", "sentencex"])
def test_what_encodes_is_not_installed(
    workspace: Workspace, sentences: Sentences, module: str
) -> None:
    # Kills: an ImportError of a worker's, which says nothing of an extra.
    environment = without(workspace, module, "sentence_transformers")
    message = workspace.refused(sentences(), environment=environment, fresh=True)
    assert message == f"mechanism.encoder: {module} is not installed; install the extra [sentences]"


def test_more_projections_than_there_are(workspace: Workspace, sentences: Sentences) -> None:
    # Kills: as many as there are in their place, which the card would not say.
    block = {"utility": "depth", "projections": 21}
    assert refusal(workspace, sentences(**block)) == (
        "mechanism.projections: 21 is more than the candidates have; give at most 20"
    )


def test_directions_that_the_candidates_lack(
    workspace: Workspace,
    sentences: Sentences,
    opened: Candidates,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Kills: as many as there are in their place; a traceback for what an earlier version built.
    noisy = {"mechanism": "projected-mean", "utility": ...}
    assert refusal(workspace, sentences(**noisy, epsilon=0.01, directions=4)) == (
        "mechanism.epsilon: with 4 directions epsilon must be at least 0.0512256"
    )
    kept = {name: getattr(opened, name)[:2] for name in ("directions", "radii", "lifts")}
    few = replace(opened, **kept)
    monkeypatch.setattr(CandidatesSource, "open", lambda _: few)
    assert refusal(workspace, sentences(**noisy, directions=3)) == (
        "mechanism.directions: 3 is more than the candidates have; give at most 2"
    )
    old = replace(opened, directions=None, radii=None, lifts=None)
    monkeypatch.setattr(CandidatesSource, "open", lambda _: old)
    message = refusal(workspace, sentences(**noisy))
    assert message.startswith("mechanism.candidates: ")
    assert message.endswith(" has no directions, since an earlier version built it; build it again")


@pytest.mark.slow
def test_an_epsilon_of_no_use(workspace: Workspace, sentences: Sentences) -> None:
    noisy = {"mechanism": "truncation", "utility": ...}
    for epsilon, fits in ((0.307, False), (0.3072, True)):
        changes = sentences(**noisy, epsilon=epsilon)
        if fits:
            workspace.release_here(changes)
        else:
            assert refusal(workspace, changes) == (
                "mechanism.epsilon: with embeddings of 384 dimensions epsilon must be at least "
                "0.3072"
            )


def test_texts_that_candidates_lack(workspace: Workspace, sentences: Sentences) -> None:
    # Kills: a release without the column that was asked for.
    message = refusal(workspace, sentences(include=["text"]))
    assert message.startswith("mechanism.include: ")
    assert message.endswith(" has no texts; build candidates with --keep-text")
