"""Releases of words that are drawn by their distances: what is released, and what cards say."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from card_schema import assert_valid
from machine import SURE
from scipy.spatial.distance import cdist

from quietcorpus.indexes.tokens.tokenizer import tokenize
from quietcorpus.indexes.words.word_index import open_index
from quietcorpus.mechanisms.words.tem import radius_of
from quietcorpus.pipelines.card.verify import verify
from quietcorpus.transforms.errors import InputError

if TYPE_CHECKING:
    from tests.conftest import Workspace

DEVIATIONS = 4.9  # of a normal, for 1e-6
EPSILON = 20


@pytest.fixture(scope="module", params=["tem", "exponential"])
def release(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    new_workspace: Callable[[Path], Workspace],
    words: Callable[..., dict[str, Any]],
    lee_texts: list[str],
) -> Workspace:
    """A release of the Lee corpus by each mechanism."""
    workspace = new_workspace(tmp_path_factory.mktemp(request.param))
    workspace.parquet({"text": lee_texts, "article": range(len(lee_texts))}, row_group_size=64)
    given = {"path": "input/*.parquet", "keep": ["article"]}
    workspace.release({"input": given} | words(mechanism=request.param, epsilon=EPSILON))
    return workspace


@pytest.mark.slow
def test_words_come_back_as_often_as_the_law_says(
    release: Workspace, word_index: Path, lee_texts: list[str]
) -> None:
    # Kills: the other mechanism, another epsilon (a tenth more is told apart), gamma that is not
    # the card's, words of other documents.
    index = open_index(str(word_index))
    mechanism = release.card()["mechanism"]
    texts = [row["text"] for row in sorted(release.rows(), key=lambda row: row["article"])]
    (offsets, before), (others, after) = (
        index.vocabulary.look_up(tokenize(pa.array(some))) for some in (lee_texts, texts)
    )
    assert offsets.tolist() == others.tolist()
    apart = cdist(index.vectors.astype(np.float64), index.vectors.astype(np.float64))
    far = float(Fraction(mechanism["gamma_exact"])) if "gamma" in mechanism else math.inf
    seen = (before == after).sum()
    for epsilon, alike in ((EPSILON, True), (1.1 * EPSILON, False)):
        weights = np.exp(-epsilon / 2 * np.minimum(apart, far))
        chances = (weights.diagonal() / weights.sum(axis=1))[before]
        deviation = math.sqrt((chances * (1 - chances)).sum())
        assert (abs(seen - chances.sum()) < DEVIATIONS * deviation) == alike


def test_the_card_says_what_no_word_exceeds(release: Workspace) -> None:
    # Kills: gamma of another epsilon or vocabulary, documents' losses without gamma.
    card = release.card()
    assert_valid(card)
    mechanism, meaning = card["mechanism"], card["meaning"]
    losses, readme = meaning["document_losses"], (release.output / "README.md").read_text()
    assert card["guarantee"]["parameters"]["metric"] == "Euclidean distance of the words' vectors"
    assert any("time the run" in line for line in card["guarantee"]["not_protected"])
    counted = losses["largest"]
    if mechanism["mechanism"] == "tem":
        gamma = radius_of(Fraction(EPSILON), mechanism["words"])
        assert Fraction(mechanism["gamma_exact"]) == gamma
        assert counted == mechanism["gamma"] == pytest.approx(float(gamma), rel=1e-12)
        (told,) = re.findall(r"the loss of a word is ([\d.]+) at most", readme)
        assert 0 <= Fraction(told) - Fraction(EPSILON) * Fraction(counted) < Fraction("0.0001")
    else:
        assert counted == pytest.approx(meaning["maximum_distance"], rel=1e-12)
        assert "gamma" not in mechanism
    most = EPSILON * min(counted, meaning["maximum_distance"])
    for row in losses["documents"]:
        assert row["worst"] == pytest.approx(most * row["words"])
        assert row["epsilon_at_mean"] <= row["epsilon_at_maximum"] <= row["worst"]


def test_a_card_with_another_gamma_is_refused(release: Workspace) -> None:
    # Kills: a gamma that is stated and not the one that losses are counted to.
    file = release.output / "release.json"
    kept = file.read_bytes()
    content = json.loads(kept)
    changes = [lambda c: c["meaning"]["document_losses"].pop("largest")]
    if content["mechanism"]["mechanism"] == "tem":
        changes += [
            lambda c: c["mechanism"].update(gamma=0.5, gamma_exact="1/2"),
            lambda c: c["mechanism"].update(gamma=0.5),
        ]
    for change in changes:
        changed = json.loads(kept)
        change(changed)
        file.write_text(json.dumps(changed, indent=2) + "\n")
        try:
            with pytest.raises(InputError, match=r"release.json: (meaning|mechanism): "):
                verify(str(release.output))
        finally:
            file.write_bytes(kept)
    verify(str(release.output))


@pytest.mark.slow
def test_commands_take_the_mechanism(
    release: Workspace, words: Callable[..., dict[str, Any]], word_index: Path
) -> None:
    mechanism = release.card()["mechanism"]["mechanism"]
    spec = str(release.folder / "spec.yaml")
    audited = release.run("audit", spec, "--draws", "4000", "--confidence", str(SURE))
    assert audited.returncode == 0, audited.stderr
    assert re.search("words: the laws of all pairs, a unit of distance +exact", audited.stdout)
    refused = release.run(
        *("calibrate", "words", str(word_index), "--mechanism", "brr", "--epsilons", "1"),
        *("--truncation", "2", "--output", "nothing"),
    )
    assert refused.returncode != 0
    assert "truncation: only tem takes it" in refused.stderr
    done = release.run(
        *("calibrate", "words", str(word_index), "--mechanism", mechanism, "--epsilons", "20"),
        *("--words", "64", "--draws", "100", "--output", "calibrated"),
    )
    assert done.returncode == 0, done.stderr
    # Kills: a key of the spec that the card has otherwise.
    studied = release.run(
        *("evaluate", "released/out", "--against", "input/*.parquet", "--spec", spec),
        *("--draws", "1", "--output", "private"),
    )
    assert studied.returncode == 0, studied.stderr
