"""Epsilons of words given otherwise: for a document, with a delta, by another mechanism."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from card_schema import assert_valid
from word_releases import DEVIATIONS, INPUT, corpus, simulated, texts_of

from quietcorpus.indexes.words.word_index import WordIndex
from quietcorpus.mechanisms.words.document_loss import Flips, Noise

if TYPE_CHECKING:
    from tests.conftest import Workspace


def test_an_epsilon_for_the_document(
    workspace: Workspace, words: Callable[..., dict[str, Any]], index: WordIndex
) -> None:
    # Documents of 20 words have a hundred times the epsilon a word of those of 2,000. Kills: the
    # whole epsilon for every word, or one share for all documents of a batch.
    total = 40_000.0
    word = index.vocabulary.terms.to_pylist().index("police")
    short, long = ["police " * 20] * 64, ["police " * 2000] * 8
    corpus(workspace, [text for pair in zip(short[::8], long, strict=True) for text in pair])
    changes = words(epsilon=..., document_epsilon=int(total))
    workspace.release({"input": INPUT} | changes)
    released = texts_of(workspace)
    assert set(" ".join(released[::2]).split()) == {"police"}
    again = " ".join(released[1::2]).split()
    assert len(again) == 8 * 2000
    share = np.mean([word == "police" for word in again])
    drawn = simulated(index, "madlib", total / 2000, np.full(len(again), word))
    bound = DEVIATIONS * np.sqrt(0.5 / len(again))
    assert abs(share - (drawn == word).mean()) < bound
    assert 2 * bound < share < 1 - 2 * bound  # or it would say little

    card = workspace.card()
    assert card["guarantee"]["parameters"]["per"] == "document"
    assert card["mechanism"]["document_epsilon"] == total
    assert "epsilon" not in card["mechanism"]
    assert "divided by the number of words of its released text" in card["guarantee"]["statement"]
    assert [(t["document_words"], t["epsilon"]) for t in card["meaning"]["typical"]] == [
        (words, total / words) for words in (1, 10, 100, 1000)
    ]
    # The worst case is of the document, whatever its length.
    rows = card["meaning"]["document_losses"]["documents"]
    assert {row["worst"] for row in rows} == {card["meaning"]["loss_at_maximum"]}
    assert rows[3]["epsilon_at_maximum"] < rows[0]["epsilon_at_maximum"]
    readme = (workspace.output / "README.md").read_text()
    assert f"epsilon {total:g} * d a word shared by a document's words" in readme
    assert workspace.run("verify", "released/out").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["madlib", "brr"])
def test_an_epsilon_and_a_delta_for_whole_documents(
    mechanism: str,
    workspace: Workspace,
    words: Callable[..., dict[str, Any]],
    index: WordIndex,
) -> None:
    # Kills: a bound at the mean distance, a limit that is not kept, a card without the promise.
    corpus(workspace, ["police in the city said " * 10, "the city", ""])
    budget = {"epsilon": 30, "delta": 1e-5, "words": 20}
    asked = words(mechanism=mechanism, epsilon=..., document_epsilon=budget)
    refused = workspace.run("release", str(workspace.spec({"input": INPUT} | asked)))
    assert refused.returncode == 2
    assert "mechanism.document_epsilon.words: a document has more than 20 words" in refused.stderr
    assert "police" not in refused.stderr
    assert not workspace.output.exists()

    cut = words(mechanism=mechanism, epsilon=..., document_epsilon=budget | {"longer": "cut"})
    workspace.release({"input": INPUT} | cut)
    assert sorted(len(text.split()) for text in texts_of(workspace)) == [0, 2, 20]
    card = workspace.card()
    assert_valid(card)
    assert card["mechanism"]["document_epsilon"] == budget | {
        "longer": "cut",
        "delta": pytest.approx(1e-5, rel=1e-12),
    }
    assert "epsilon" not in card["mechanism"]
    epsilon = Fraction(card["mechanism"]["epsilon_exact"])
    assert card["guarantee"]["parameters"]["per"] == "word"
    assert Fraction(card["guarantee"]["parameters"]["epsilon_exact"]) == epsilon
    maximum, delta = Fraction(card["meaning"]["maximum_distance"]), Fraction(1, 10**5)
    if mechanism == "madlib":
        found = Noise(index.vectors.shape[1]).document_epsilon(epsilon, maximum, 20, delta)
    else:
        found = Flips().document_epsilon(epsilon, maximum, 20, delta)
    assert 29.5 < found < 30.001
    assert epsilon * maximum * 20 > 30
    losses = card["meaning"]["document_losses"]
    assert losses["delta"] == 1e-5
    assert [row["words"] for row in losses["documents"]] == [1, 20, 200, 1000]
    readme = (workspace.output / "README.md").read_text()
    assert "epsilon = 30 at most and delta = 1e-5: `epsilon_exact`, of every word" in readme
    assert workspace.run("verify", "released/out").returncode == 0


@pytest.mark.parametrize(("key", "by"), [("epsilon", None), ("document_epsilon", "maximum")])
def test_a_matched_epsilon_is_exactly_the_ratio_times_the_other(
    workspace: Workspace,
    words: Callable[..., dict[str, Any]],
    word_index: Path,
    key: str,
    by: str | None,
) -> None:
    matching = {"mechanism": "madlib", "epsilon": 10} | ({"by": by} if by else {})
    changes = words(**{"mechanism": "brr", "epsilon": ..., key: {"matching": matching}})
    workspace.release(changes)
    distances = json.loads((word_index / "manifest.json").read_text())["distances"]
    theirs, ours = (distances[m][by or "mean"] for m in ("euclidean", "hamming"))
    expected = Fraction(theirs) / Fraction(ours) * 10
    card = workspace.card()
    assert card["guarantee"]["parameters"]["epsilon_exact"] == str(expected)
    assert card["mechanism"]["epsilon_exact"] == str(expected)
    # The decimal on the card never understates it.
    assert Fraction(card["mechanism"][key]) >= expected
    assert card["mechanism"][key] == pytest.approx(float(expected), rel=1e-15)
    # So the loss at the chosen distance is the other mechanism's.
    loss = card["meaning"]["loss_at_maximum" if by == "maximum" else "loss_at_mean"]
    assert loss == pytest.approx(10 * float(Fraction(theirs)))
    assert workspace.run("verify", "released/out").returncode == 0
