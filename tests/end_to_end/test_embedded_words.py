"""The baseline by Madlib: what comes out is the encoder's view of released words, at their cost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from public_candidates import PUBLIC_TEXTS

from indexes.artefact import open_index
from indexes.sentences import split
from indexes.tokenizer import tokenize
from transforms.encoder import PACKAGED, EncoderSource

if TYPE_CHECKING:
    from tests.conftest import Workspace

Changes = Callable[..., dict[str, Any]]

SCHEMA = Path(__file__).parents[2] / "docs" / "release.schema.json"
INPUT = {"path": "input/texts.jsonl", "keep": ["article"]}
MOST = 4  # sentences of a document, in the fixture


@pytest.fixture(scope="module")
def madlib(sentences: Changes, word_index: Path) -> Changes:
    """Makes the changes by which a workspace's spec becomes one of the baseline."""

    def make(**block: Any) -> dict[str, Any]:
        baseline = {"mechanism": "madlib", "utility": ..., "index": str(word_index)}
        return sentences(**baseline | block)

    return make


def corpus(workspace: Workspace, texts: list[str]) -> None:
    records = [{"text": text, "article": number} for number, text in enumerate(texts)]
    workspace.json_lines(records, "texts.jsonl")


def in_order(workspace: Workspace, output: str = "out") -> list[dict[str, Any]]:
    rows = workspace.rows(workspace.output.with_name(output))
    return sorted(rows, key=lambda row: int(row["article"]))


def embeddings(workspace: Workspace, output: str = "out") -> npt.NDArray[np.float32]:
    rows = in_order(workspace, output)
    return np.array([row["embedding"] for row in rows], dtype=np.float32)


def encoded(texts: list[str]) -> npt.NDArray[np.float32]:
    return EncoderSource.found("encoder", PACKAGED).open().encode(texts)


def known(text: str, index: Path) -> str:
    """The text's words that the index has."""
    vocabulary = open_index(str(index)).vocabulary
    _, words = vocabulary.look_up(tokenize(pa.array([text], pa.large_string())))
    return " ".join(vocabulary.terms.take(pa.array(words)).to_pylist())


def test_without_noise_to_speak_of_the_known_words_are_encoded_sentence_by_sentence(
    workspace: Workspace, madlib: Changes, word_index: Path, lee_texts: list[str]
) -> None:
    # Kills: words that slip into the next sentence or document, whole documents that are encoded
    # and then cut, sentences beyond the limit, a mean over something else.
    texts = ["", *lee_texts[PUBLIC_TEXTS:][:20], "12 #!"]
    corpus(workspace, texts)
    workspace.release_here({"input": INPUT} | madlib(epsilon=100_000))
    released = embeddings(workspace)
    expected = [
        encoded([known(sentence, word_index) for sentence in split([text], MOST, "en").texts]).mean(
            axis=0
        )
        for text in texts[1:]
    ]
    assert not released[0].any()
    np.testing.assert_allclose(released[1:], expected, atol=1e-6)
    # The control: the mean of one sentence less is another.
    fewer = [encoded([known(s, word_index) for s in split([t], 3, "en").texts]) for t in texts[1:3]]
    assert not np.allclose(released[1:3], [own.mean(axis=0) for own in fewer], atol=1e-3)


def test_the_words_are_those_of_a_release_of_words(
    workspace: Workspace, madlib: Changes, words: Changes
) -> None:
    # Of one sentence each, so that the released text is what was encoded. Kills: noise that is
    # drawn anew, another epsilon, words that are encoded before they are replaced.
    texts = [f"police found the {word} in the river" for word in ("man", "car", "fire", "dog")]
    corpus(workspace, texts)
    workspace.release_here({"input": INPUT} | madlib())
    workspace.release_here({"input": INPUT, "output": "released/words"} | words())
    released = [row["text"] for row in in_order(workspace, "words")]
    assert released != texts
    np.testing.assert_array_equal(embeddings(workspace), encoded(released))


def test_the_card(
    workspace: Workspace, madlib: Changes, words: Changes, candidates: Path, word_index: Path
) -> None:
    # Kills: a sentence's guarantee on a release that has none; an artefact that is not named.
    corpus(workspace, ["Police found him. The river rose."] * 3)
    workspace.release_here({"input": INPUT} | madlib())
    workspace.release_here({"input": INPUT, "output": "released/words"} | words())
    done = workspace.run("verify", "released/out")
    assert done.returncode == 0, done.stderr
    assert "cost      epsilon 10 * d a word (documents epsilon 10 * d a word)" in done.stdout
    card, of_words = workspace.card(), workspace.card(workspace.output.with_name("words"))
    jsonschema.validate(card, json.loads(SCHEMA.read_text()))
    for part in ("budget", "meaning"):
        assert card[part] == of_words[part]
    own, theirs = (content["guarantee"] for content in (card, of_words))
    assert own["statement"] == theirs["statement"]
    lines = "\n".join(own["not_protected"])
    assert "how a document is divided into sentences, up to 4, and how many words that" in lines
    assert set(theirs["not_protected"]) < set(own["not_protected"])
    digests = {artefact["name"]: artefact["digest"] for artefact in card["artefacts"]}
    assert digests == {
        "candidates": hashlib.sha256((candidates / "manifest.json").read_bytes()).hexdigest(),
        "encoder": EncoderSource.found("encoder", PACKAGED).digest,
        "index": hashlib.sha256((word_index / "manifest.json").read_bytes()).hexdigest(),
    }
    said = card["mechanism"]
    assert (said["kind"], said["mechanism"]) == ("sentence-embeddings", "madlib")
    assert (said["splitter"], said["language"], said["dimensions"]) == ("sentencex-1", "en", 384)
    assert "utility" not in said
    assert "candidates_number" not in said
    assert set(in_order(workspace)[0]) == {"id", "article", "embedding"}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda card: card["artefacts"].pop(), "artefacts: the index, or what epsilon means"),
        (lambda card: card["artefacts"].pop(0), "artefacts: not public candidates and a public"),
        (lambda card: card.pop("meaning"), "artefacts: the index, or what epsilon means there"),
        (
            lambda card: card["meaning"].update(loss_at_mean=1.0),
            "meaning: loss_at_mean is not epsilon times the distance",
        ),
        (
            lambda card: card["mechanism"].update(mechanism="truncation"),
            "artefacts: more than candidates and an encoder",
        ),
    ],
)
def test_a_card_that_was_changed_is_refused(
    workspace: Workspace,
    madlib: Changes,
    spoil: Callable[[dict[str, Any]], Any],
    message: str,
) -> None:
    # Kills: a look at the first two artefacts alone, a metric without its index.
    corpus(workspace, ["Police found him. The river rose."] * 3)
    workspace.release_here({"input": INPUT} | madlib())
    card = workspace.card()
    spoil(card)
    (workspace.output / "release.json").write_text(json.dumps(card))
    done = workspace.run("verify", "released/out")
    assert done.returncode == 2
    assert message in done.stderr


def test_a_corpus_without_a_known_word_is_refused(workspace: Workspace, madlib: Changes) -> None:
    corpus(workspace, ["Qqqx zzzv."] * 3)
    message = workspace.refused({"input": INPUT} | madlib())
    assert "has none of the corpus's words; give an index of the corpus's language" in message
