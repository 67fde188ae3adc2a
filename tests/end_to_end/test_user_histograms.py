"""Histograms of users: right counts, documents of no user, measures, canaries, forged cards."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.special import ndtr
from tampering import edit_card

import quietcorpus as qc
from quietcorpus.mechanisms.users.clipped_sum import ClippedSum

if TYPE_CHECKING:
    from tests.conftest import Workspace

USERS = 300
WORDS = [a + b + c for a in "bdfgklmn" for b in "aeiou" for c in "rstn"]
BLOCK = {"kind": "histogram", "user": "author", "users": USERS, "epsilon": 4, "delta": 1e-4}


def corpus(workspace: Workspace) -> Counter[str]:
    """Two texts of each user, and some of nobody; how many users use each word."""
    generator, weights = np.random.default_rng(1), 1 / np.arange(1, len(WORDS) + 1)
    texts = [
        " ".join(generator.choice(WORDS, 8, p=weights / weights.sum())) for _ in range(2 * USERS)
    ]
    authors: list[str | None] = [f"u{number % USERS}" for number in range(2 * USERS)]
    used: dict[str, set[str | None]] = {}
    for text, author in zip(texts, authors, strict=True):
        for word in text.split():
            used.setdefault(word, set()).add(author)
    columns = {"text": [*texts, *[WORDS[0]] * 99], "author": [*authors, *[None] * 99]}
    workspace.parquet(columns, row_group_size=50)
    (workspace.folder / "words.txt").write_text("\n".join(WORDS[:40]))
    return Counter({word: len(own) for word, own in used.items()})


def released(workspace: Workspace, **block: Any) -> dict[str, int]:
    """The counts of a release by this process."""
    vocabulary = {"public": str(workspace.folder / "words.txt")}
    own = BLOCK | {"vocabulary": vocabulary, "contributions": {"items": 16}} | block
    workspace.release_here({"input": {"path": "input/*.parquet"}, "mechanism": own})
    table = pq.read_table(workspace.output / "vocabulary.parquet")
    return dict(zip(table["term"].to_pylist(), table["weight"].to_pylist(), strict=True))


def test_counts_are_of_users_and_of_no_others(workspace: Workspace) -> None:
    # No user has more than 16 words: none is clipped. Kills: counts of documents or occurrences,
    # documents of nobody that count, noise of another size. Six deviations: 40 words, 1e-7.
    used = corpus(workspace)
    found = released(workspace)
    deviation = workspace.card()["mechanism"]["deviation"]
    assert found.keys() == {*WORDS[:40]}
    errors = np.array([found[word] - used[word] for word in found])
    assert np.abs(errors).max() < 6 * deviation < 99
    assert math.sqrt(float((errors**2).mean())) > deviation / 2
    qc.verify(str(workspace.output))


def test_a_private_vocabulary_has_the_words_of_many_users(workspace: Workspace) -> None:
    # Kills: a word that few users have; all words at once.
    used = corpus(workspace)
    private = {"epsilon": 4, "delta": 5e-5, "words": 16}
    found = released(workspace, epsilon=8, vocabulary={"private": private})
    assert 10 < len(found) < len(WORDS)
    assert {word for word, _ in used.most_common(5)} <= found.keys()
    stages = [one["stage"] for one in workspace.card()["budget"]["stages"]]
    assert stages == ["vocabulary", "word counts"]
    qc.verify(str(workspace.output))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda card: card["mechanism"].update(deviation=1.0), "deviation is not that of the"),
        (lambda card: card["mechanism"].update(norms={"": 511}), "costs more|norms are not those"),
        (lambda card: card["mechanism"]["contributions"].update(items=4), "deviation is not"),
        (lambda card: card["mechanism"].update(noise_multiplier="1/2"), "costs more than it says"),
        (lambda card: card["mechanism"].update(delta=1e-3), "delta"),
    ],
    ids=["deviation", "norms", "items", "noise", "delta"],
)
def test_a_forged_card_is_found(workspace: Workspace, change: Any, message: str) -> None:
    # Kills: numbers of the mechanism that are compared with nothing.
    corpus(workspace)
    released(workspace)
    edit_card(workspace.output, change)
    with pytest.raises(qc.InputError, match=message):
        qc.verify(str(workspace.output))


def test_measures_of_counts(workspace: Workspace) -> None:
    # Kills: a closed form of another distance, errors of other counts, words by another order.
    corpus(workspace)
    released(workspace)
    spec = workspace.spec(
        {
            "input": {"path": str(workspace.folder / "input/*.parquet")},
            "output": str(workspace.folder / "again"),
            "mechanism": BLOCK
            | {"vocabulary": {"public": str(workspace.folder / "words.txt")}}
            | {"contributions": {"items": 16}},
        }
    )
    found = qc.evaluate(
        str(workspace.output),
        against=str(workspace.folder / "input/*.parquet"),
        spec=str(spec),
        output=str(workspace.folder / "evaluation"),
        draws=1,
        audits=False,
    )
    means = {(one["measure"], one["subject"]): one["mean"] for one in found["figures"]}
    assert means["histogram-error", "exact"] < 0.03 < means["histogram-error", "release"] < 0.3
    assert 0.5 < means["histogram-recall", "release"] < 1  # 40 of 160 words are listed
    noise = float(Fraction(workspace.card()["mechanism"]["noise_multiplier"]))
    best = float(ndtr(1 / noise / math.sqrt(2)))
    assert means["definition", "guarantee"] == pytest.approx(best, abs=1e-6)
    assert 0.5 < means["definition", "release"] <= means["definition", "guarantee"]


@pytest.mark.parametrize("faulty", [False, True])
def test_canaries_show_half_of_the_noise(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, faulty: bool
) -> None:
    # The fault is noise of a fourth: epsilon 4 and more where 1 is stated. Kills: canaries that
    # show nothing, words of other canaries, users of one name.
    corpus(workspace)
    many = [a + b for a in WORDS for b in "xyzw"]
    (workspace.folder / "words.txt").write_text("\n".join(many))
    if faulty:
        real = ClippedSum.release

        def quiet(self: ClippedSum, sums: Any, stream: Any, addresses: Any) -> Any:
            return sums + (real(self, np.zeros_like(sums), stream, addresses) // 4)

        monkeypatch.setattr(ClippedSum, "release", quiet)
    block = BLOCK | {"epsilon": 1, "contributions": {"items": 4}}
    block |= {"vocabulary": {"public": str(workspace.folder / "words.txt")}}
    spec = {
        "input": {"path": str(workspace.folder / "input/*.parquet")},
        "output": str(workspace.folder / "out"),
        "mechanism": block,
    }
    given = {} if faulty else {"confidence": 1 - 1e-6}
    found = qc.canaries(str(workspace.spec(spec)), canaries=160, **given)
    assert (found["verdict"] == "failed") == faulty
