"""The baseline by Madlib: what comes out is the encoder's view of released words, at their cost."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest
from public_candidates import PUBLIC_TEXTS
from tampering import edit_card, refused

from quietcorpus.transforms.artefacts.encoder import PACKAGED, EncoderSource

if TYPE_CHECKING:
    from tests.conftest import Workspace

Changes = Callable[..., dict[str, Any]]

MOST = 4  # runs of a document, in the fixture
INPUT = {"path": "input/texts.jsonl", "keep": ["article"]}


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
    return EncoderSource.resolve("encoder", PACKAGED).open().encode(texts)


def runs(text: str) -> list[str]:
    """Of 20 words each, as many as count."""
    words = text.split()
    return [" ".join(words[i : i + 20]) for i in range(0, len(words), 20)][:MOST]


@pytest.fixture
def released(
    workspace: Workspace, madlib: Changes, words: Changes, lee_texts: list[str]
) -> Workspace:
    """Releases of real documents, of embeddings and of words, under one id."""
    corpus(workspace, ["", *lee_texts[PUBLIC_TEXTS:][:20], "12 #!"])
    workspace.release_here({"input": INPUT} | madlib())
    workspace.release_here({"input": INPUT, "output": "released/words"} | words())
    return workspace


@pytest.mark.slow
def test_what_is_encoded_is_a_release_of_words(released: Workspace) -> None:
    # The proof: all that follows the words' replacement is post-processing of what that releases.
    # Kills: noise that is drawn anew, private words or a private division that are encoded, runs
    # that mix documents or go beyond the limit.
    own, theirs = in_order(released), in_order(released, "words")
    assert [row["id"] for row in own] == [row["id"] for row in theirs]
    texts = [row["text"] for row in theirs]
    assert max(len(text.split()) for text in texts) > 20 * MOST
    found = embeddings(released)
    expected = [encoded(runs(text)).astype(float).mean(axis=0) for text in texts[1:-1]]
    np.testing.assert_array_equal(found[1:-1], np.array(expected, dtype=np.float32))
    assert not found[[0, -1]].any()
    # The control: what was not replaced is encoded to something else.
    assert not np.isclose(found[1:-1], encoded(texts[1:-1]), atol=1e-3).all(axis=1).any()


@pytest.mark.slow
@pytest.mark.usefixtures("one_corpus")
def test_where_sentences_end_is_not_seen(workspace: Workspace, madlib: Changes) -> None:
    # Words of the same kind at the same places release the same bytes. Kills: a splitter, which
    # decides by private words and stops.
    text = "Police found the man. The river rose, etc. Berlin was cold"
    corpus(workspace, [text])
    workspace.release_here({"input": INPUT} | madlib())
    corpus(workspace, [text.replace(".", "").upper() + "!"])
    workspace.release_here({"input": INPUT, "output": "released/other"} | madlib())
    assert in_order(workspace) == in_order(workspace, "other")


@pytest.fixture(scope="module")
def small(
    tmp_path_factory: pytest.TempPathFactory,
    new_workspace: Callable[[Path], Workspace],
    madlib: Changes,
) -> Workspace:
    """A release of three documents, which nobody may change."""
    workspace = new_workspace(tmp_path_factory.mktemp("small"))
    corpus(workspace, ["Police found him. The river rose."] * 3)
    workspace.release_here({"input": INPUT} | madlib())
    return workspace


def test_the_card(small: Workspace, words: Changes, candidates: Path, word_index: Path) -> None:
    # Kills: a sentence's guarantee on a release that has none; an artefact that is not named.
    workspace = small
    workspace.release_here({"input": INPUT, "output": "released/words"} | words())
    card, of_words = workspace.card(), workspace.card(workspace.output.with_name("words"))
    for part in ("budget", "meaning"):
        assert card[part] == of_words[part]
    own, theirs = (content["guarantee"] for content in (card, of_words))
    assert own["statement"] == theirs["statement"]
    assert set(theirs["not_protected"]) == set(own["not_protected"])
    digests = {artefact["name"]: artefact["digest"] for artefact in card["artefacts"]}
    assert digests == {
        "candidates": hashlib.sha256((candidates / "manifest.json").read_bytes()).hexdigest(),
        "encoder": EncoderSource.resolve("encoder", PACKAGED).digest,
        "index": hashlib.sha256((word_index / "manifest.json").read_bytes()).hexdigest(),
    }
    said = card["mechanism"]
    assert (said["kind"], said["mechanism"]) == ("sentence-embeddings", "madlib")
    assert (said["run_words"], said["dimensions"]) == (20, 384)
    for name in ("tokenizer", "out_of_vocabulary", "words"):
        assert said[name] == of_words["mechanism"][name]
    assert "splitter" not in said
    assert "utility" not in said
    assert "candidates_number" not in said
    assert set(in_order(workspace)[0]) == {"id", "article", "embedding"}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda card: card["artefacts"].pop(), "artefacts: not those that the mechanism names"),
        (lambda card: card["artefacts"].pop(0), "artefacts: not those that the mechanism names"),
        (lambda card: card.pop("meaning"), "meaning: not what a release of this kind states there"),
        (
            lambda card: card["meaning"].update(loss_at_mean=1.0),
            "meaning: loss_at_mean is not epsilon times the distance",
        ),
        (
            lambda card: card["mechanism"].update(mechanism="truncation"),
            "mechanism: it does not give such a guarantee, or is not known",
        ),
    ],
)
def test_a_card_that_was_changed_is_refused(
    small: Workspace, tmp_path: Path, spoil: Callable[[dict[str, Any]], Any], message: str
) -> None:
    # Kills: a look at the first two artefacts alone, a metric without its index.
    copied = shutil.copytree(small.output, tmp_path / "release")
    edit_card(copied, spoil)
    assert message in refused(copied)


@pytest.mark.slow
def test_a_corpus_without_a_known_word_is_refused(workspace: Workspace, madlib: Changes) -> None:
    corpus(workspace, ["Qqqx zzzv."] * 3)
    message = workspace.refused({"input": INPUT} | madlib())
    assert "has none of the corpus's words; give an index of the corpus's language" in message
