"""Documents of no sentence, of one, and of more than any should have, released by sentences."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from sentence_releases import INPUT, LAWS, NOISY, Sentences, corpus, in_order

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.mark.slow
def test_a_corpus_without_a_sentence(workspace: Workspace, sentences: Sentences) -> None:
    # Kills: a release of draws that nothing has gone into, for a wrong column.
    workspace.json_lines(["", " \n\t ", "\u00a0"] * 20)
    message = workspace.refused(sentences())
    assert message == "input: no document has a sentence; check input.text"


@pytest.mark.parametrize("law", ["depth", "similarity", "truncation", "projected-mean"])
def test_documents_of_one_sentence_and_of_none(
    workspace: Workspace, sentences: Sentences, law: str
) -> None:
    # More than are encoded together, in batches that have no sentence at all. Kills: a path that
    # does not know the empty batch, a mean of nothing.
    workspace.json_lines([*[""] * 300, "Police found him.", *[" "] * 300, "No stop", "\0", "12 #"])
    noisy = {"mechanism": law, "utility": ...}
    workspace.release_here(sentences(**noisy if law in NOISY else {"utility": law}))
    rows = workspace.rows()
    assert len(rows) == 604
    assert np.isfinite([row["embedding"] for row in rows]).all()
    assert workspace.run("verify", "released/out").returncode == 0


@pytest.mark.parametrize(
    "text",
    ["It rained again. " * 5000, "rain " * 100_000, "." * 100_000],
    ids=["sentences", "words", "stops"],
)
def test_a_long_document(workspace: Workspace, sentences: Sentences, text: str) -> None:
    # Kills: a splitter that takes the square of a document's length, sentences that are encoded
    # though they do not count, one of more tokens than the encoder takes.
    workspace.json_lines(["Police found him."])
    workspace.release_here(sentences(most_sentences=...))
    workspace.json_lines(["Police found him.", text, "It rained."])
    began = time.monotonic()
    workspace.release_here({"output": "released/long"} | sentences(most_sentences=...))
    assert time.monotonic() - began < 60
    assert len(workspace.rows(workspace.folder / "released/long")) == 3


@pytest.mark.usefixtures("one_corpus")
@pytest.mark.slow
@pytest.mark.parametrize("law", ["similarity", "projected-mean"])
def test_only_the_first_sentences_count(
    workspace: Workspace, law: str, sentences: Sentences
) -> None:
    # Kills: a limit that is ignored, or off by one; draws that depend on what is not read.
    first = "Police found him. The river rose. It was cold! Who knows?"
    for name, text in {
        "one": f"{first} Nothing else happened.",
        "two": f"{first} The government fell on Monday. Then came spring.",
        "three": f"Police lost him.{first[17:]} Nothing else happened.",
    }.items():
        corpus(workspace, [text] * 20)
        changes = {"input": INPUT, "output": f"released/{name}"} | sentences(**LAWS[law])
        workspace.release_here(changes)
    one, two, three = (in_order(workspace, name) for name in ("one", "two", "three"))
    assert one == two
    assert not {row["id"] for row in one} & {row["id"] for row in three}
