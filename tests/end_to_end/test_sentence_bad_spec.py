"""Specs of sentence embeddings that name no encoder of use, or ask for too much: one line each."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from encoders import packaged_folder
from machine import without
from sentence_releases import Sentences, refusal

from quietcorpus.indexes.documents.candidates import Candidates
from quietcorpus.transforms.artefacts.encoder import PACKAGED, EncoderSource
from quietcorpus.transforms.artefacts.folders import CandidatesSource

if TYPE_CHECKING:
    from tests.conftest import Workspace


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
