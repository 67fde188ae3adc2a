"""Releases of sentence embeddings of real text: what is in them, and what their cards say."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from card_schema import assert_valid
from public_candidates import PUBLIC_TEXTS
from sentence_releases import DOCUMENTS, INPUT, LAWS, NOISY, Sentences, corpus, in_order

from quietcorpus.indexes.documents.candidates import Candidates
from quietcorpus.transforms.artefacts.encoder import PACKAGED

if TYPE_CHECKING:
    from tests.conftest import Workspace

DIMENSIONS = 384


@pytest.fixture(scope="module", params=LAWS)
def law(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def release(
    law: str,
    tmp_path_factory: pytest.TempPathFactory,
    new_workspace: Callable[[Path], Workspace],
    sentences: Sentences,
    lee_texts: list[str],
) -> Workspace:
    """A workspace with a release by a law, of texts that no candidates are made of."""
    workspace = new_workspace(tmp_path_factory.mktemp(law))
    corpus(workspace, lee_texts[PUBLIC_TEXTS:][:DOCUMENTS])
    workspace.release_here({"input": INPUT} | sentences(**LAWS[law]))
    return workspace


@pytest.mark.slow
def test_the_released_rows(release: Workspace, law: str, opened: Candidates) -> None:
    # Kills: a candidate's number beside another's embedding, a text or a length that is let out.
    drawn = law not in NOISY
    rows = in_order(release)
    assert len(rows) == DOCUMENTS == release.card()["counts"]["documents"]
    schema = pq.read_schema(next((release.output / "data").iterdir()))
    names = ["id", "article", *(["candidate"] if drawn else []), "embedding"]
    assert sorted(schema.names) == sorted(names)
    assert schema.field("embedding").type == pa.list_(pa.float32(), DIMENSIONS)
    released = np.array([row["embedding"] for row in rows], dtype=np.float32)
    assert np.isfinite(released).all()
    if drawn:
        assert schema.field("candidate").type == pa.int32()
        numbers = np.array([row["candidate"] for row in rows])
        assert ((numbers >= 0) & (numbers < len(opened.embeddings))).all()
        assert len(set(numbers.tolist())) > 1
        np.testing.assert_array_equal(released, opened.embeddings[numbers])
    else:
        assert len(np.unique(released, axis=0)) == DOCUMENTS
    # Rows in an order of their own, under ids of their own.
    frame = pl.read_parquet(release.output / "data/*.parquet")
    for path in (release.output / "data").iterdir():
        numbers = [int(number) for number in pl.read_parquet(path)["article"]]
        assert numbers != sorted(numbers)
    assert frame["id"].n_unique() == DOCUMENTS
    assert frame.schema["embedding"] == pl.Array(pl.Float32, DIMENSIONS)


def test_the_card_says_what_is_promised(
    release: Workspace, law: str, candidates: Path, opened: Candidates
) -> None:
    # Kills: the guarantee of one mechanism, or of a whole document, on the card of another; a
    # parameter that is not the release's; an artefact without its digest.
    card = release.card()
    assert_valid(card)
    parameters = {"epsilon": 10.0, "epsilon_exact": "10"}
    promised = card["guarantee"]
    assert promised["parameters"] == parameters
    assert card["budget"] == {
        "stages": [{"stage": "documents", "parameters": parameters}],
        "total": parameters,
        "inherited": [],
    }
    assert promised["definition"] == "sentence-level privacy"
    assert promised["unit"] == "one sentence of one document"
    assert "but for one document, one of whose sentences" in promised["adjacency"]
    assert "Replacing one sentence of a document" in promised["statement"]
    assert "by a factor of at most exp(10)" in promised["statement"]
    assert "replacing a of them by one of at most exp(a * 10)" in promised["statement"]
    lines = "\n".join(promised["not_protected"])
    assert "how many sentences a document has, up to 4; those beyond have no part" in lines
    assert "a of them are protected at a * 10 only" in lines
    assert "the columns article" in lines
    digest = hashlib.sha256((candidates / "manifest.json").read_bytes()).hexdigest()
    found = {artefact["name"]: artefact for artefact in card["artefacts"]}
    assert found == {
        "candidates": {
            "name": "candidates",
            "uri": "built",
            "digest": digest,
            "provenance": "public",
        },
        "encoder": {
            "name": "encoder",
            "uri": PACKAGED,
            "digest": opened.manifest.encoder["sha256"],
            "provenance": "public",
        },
    }
    said = card["mechanism"]
    depths = law not in (*NOISY, "similarity")
    assert said["mechanism"] == (law if law in NOISY else "deep-candidate")
    assert said.get("utility") == (None if law in NOISY else law)
    assert said.get("projections") == (LAWS[law].get("projections", 20) if depths else None)
    assert said.get("candidates_number") == (None if law in NOISY else 40)
    assert said.get("directions") == (5 if law == "projected-mean" else None)
    assert (said["epsilon_exact"], said["most_sentences"]) == ("10", 4)
    # Kills: candidates that were calibrated for other documents than the release's, unsaid.
    assert said["candidates_most_sentences"] == 5
    assert (said["splitter"], said["language"]) == ("sentencex-1", "en")
    assert said["dimensions"] == DIMENSIONS
    assert "tokenizer" not in said
    # Rule 7: no exact statistic of the content, and no place on the machine.
    assert set(card["counts"]) == {"documents", "rejected"}
    assert "/built" not in json.dumps(card)


def test_the_readme_says_it_to_people(release: Workspace) -> None:
    text = (release.output / "README.md").read_text()
    assert (
        "Candidates were calibrated with the first 5 sentences of public documents, and of these "
        "documents the first 4 count: the guarantee is the same, what the embeddings are good for "
        "may not be."
    ) in text
    assert "| **in all** | **epsilon 10 a sentence** |" in text
    assert "`embedding`, and, where that is a public candidate's, its number `candidate`" in text


@pytest.mark.parametrize(("most", "warned"), [(5, False), (6, True)])
def test_candidates_of_other_sentences_are_warned_of(
    workspace: Workspace,
    sentences: Sentences,
    caplog: pytest.LogCaptureFixture,
    most: int,
    warned: bool,
) -> None:
    # Kills: a warning for one direction alone, or where both agree; a text that says they differ.
    workspace.json_lines(["One sentence. Another one. A third."])
    workspace.release_here(sentences(most_sentences=most))
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said == [MISMATCH] * warned
    assert ("were calibrated" in (workspace.output / "README.md").read_text()) == warned
    if warned:  # Kills: --strict that refuses weak guarantees alone.
        workspace.output = workspace.output.with_name("other")
        message = workspace.refused(
            sentences(most_sentences=most) | {"output": "released/other"}, "--strict"
        )
        assert message == f"--strict: {MISMATCH}"


MISMATCH = (
    "mechanism.most_sentences: 6, and the candidates were calibrated with the first 5 of public "
    "documents: the guarantee is the same, the utility may be less; give 5, or build candidates "
    "with --most-sentences 6"
)
