"""Releases by Vickrey's choice: what cards say, and that every command takes the mechanism."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from card_schema import assert_valid
from machine import SURE

from quietcorpus.pipelines.card.verify import verify

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.fixture(scope="module")
def release(
    tmp_path_factory: pytest.TempPathFactory,
    new_workspace: Callable[[Path], Workspace],
    words: Callable[..., dict[str, Any]],
    lee_texts: list[str],
) -> Workspace:
    """A release of a part of the Lee corpus."""
    workspace = new_workspace(tmp_path_factory.mktemp("vickrey"))
    workspace.parquet({"text": lee_texts[:60]})
    given = words(mechanism="vickrey", epsilon=9, tuning=0.25)
    workspace.release({"input.path": "input/*.parquet"} | given)
    return workspace


@pytest.mark.slow
def test_the_card_says_how_words_were_chosen(release: Workspace) -> None:
    # Kills: a t that the card does not state, another law of the losses than Madlib's.
    card, readme = release.card(), (release.output / "README.md").read_text()
    assert_valid(card)
    verify(str(release.output))
    assert (card["mechanism"]["mechanism"], card["mechanism"]["tuning"]) == ("vickrey", 0.25)
    assert "(1 - t) d2 / (t d1 + (1 - t) d2), for t = 0.25, and else the second" in readme
    assert card["guarantee"]["parameters"]["metric"] == "Euclidean distance of the words' vectors"
    assert any("floating-point" in line for line in card["guarantee"]["not_protected"])
    assert card["meaning"]["document_losses"]["dimensions"] == 10
    (typical,) = card["meaning"]["typical"]
    assert 0 < typical["unchanged"]["median"] < 1


@pytest.mark.slow
def test_commands_take_the_mechanism(release: Workspace, word_index: Path) -> None:
    spec = str(release.folder / "spec.yaml")
    audited = release.run("audit", spec, "--draws", "4000", "--confidence", str(SURE))
    assert audited.returncode == 0, audited.stderr
    assert "documents: a word of four on a line" in audited.stdout
    options = ("--mechanism", "vickrey", "--epsilons", "9", "--words", "64", "--draws", "100")
    calibrated = release.run(
        *("calibrate", "words", str(word_index), *options, "--tuning", "0.25"),
        *("--document-epsilon", "9", "--document-delta", "1e-6", "--document-words", "20"),
        *("--output", "calibrated"),
    )
    assert calibrated.returncode == 0, calibrated.stderr
    assert calibrated.stdout.startswith("Vickrey on 1,225 words (10 dimensions)")
    refused = release.run("calibrate", "words", str(word_index), *options, "--output", "nothing")
    assert "tuning: only vickrey takes it, and needs it" in refused.stderr
    evaluated = release.run(
        *("evaluate", str(release.output), "--against", "input/corpus.parquet", "--spec", spec),
        *("--output", "evaluated"),
    )
    assert evaluated.returncode == 0, evaluated.stderr
    assert "inversion-bayes" in (release.folder / "evaluated" / "evaluation.json").read_text()
