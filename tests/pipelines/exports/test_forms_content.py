"""Sentences of cards and exports about files, stages and numbers are of that release alone."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from golden_releases import KINDS

import quietcorpus as qc
from quietcorpus.pipelines.card.verify import read_card
from quietcorpus.pipelines.storage import layout

if TYPE_CHECKING:
    from tests.conftest import Workspace

FILES = (
    *(layout.VOCABULARY, layout.COMPRESSION, layout.TEXTS, layout.VOTES, layout.RESAMPLED),
    *(layout.TABLE, layout.TEXT, layout.BINARY),
)
ASKED: dict[str, Any] = {
    **{"curator": "Bureau", "curator_type": "Government", "use": "research", "region": "EU"},
}
COUNTED = re.compile(r"the (\w+)(?: and the (\w+))? (?:is|are) made from exact counts")
DELTA = re.compile(r"delta(?:</th>.*?>|: | = |`: |_)([0-9][0-9.e-]*)")


def texts(release: Path) -> dict[str, str]:
    """What people read of a release, by the name of the form."""
    found = {name: (release / name).read_text() for name in (layout.README, layout.PAGE)}
    forms: tuple[Any, ...] = ("registry", "croissant", "sp800-226", "datasheet")
    return found | {form: qc.export_card(release, form, **ASKED) for form in forms}


def assert_of_the_release(release: Path, delta: Fraction | None = None) -> None:
    card = read_card(str(release))
    there = {layout.described(file.path) for file in card.files}
    stages = {stage.stage for stage in card.budget.stages}
    for form, text in texts(release).items():
        named = {name for name in FILES if name in text}
        assert named <= there, form
        counted = {name for found in COUNTED.findall(text) for name in found if name}
        assert counted <= stages, form
        assert ("a row's counts" in text) <= (layout.DATA in there), form
        if form not in ("registry", "croissant"):  # which hold numbers for machines
            assert not re.search(r"[0-9]\.[0-9]{10}", text.replace("/", "")), form
        for number in DELTA.findall(text) if delta is not None else ():
            assert Fraction(number.rstrip(".")) >= delta, form


@pytest.mark.parametrize("name", KINDS)
def test_what_is_said_is_there(golden: Path, name: str) -> None:
    # Kills: a sentence about a file or a stage of other releases of the kind.
    given = [Fraction(one) for one in re.findall(r"'delta': ([0-9.e-]+)", str(KINDS[name]))]
    assert_of_the_release(golden / f"out-{name}", min(given, default=None))


def test_a_release_of_the_fewest_files(workspace: Workspace) -> None:
    # Kills: a datasheet that lists compression.parquet, and a card that speaks of a histogram's
    # counts, where there is neither.
    workspace.json_lines(["hello quiet world"] * 30)
    workspace.release()
    assert {file.path.split("/")[0] for file in read_card(str(workspace.output)).files} == {
        "data",
        layout.VOCABULARY,
    }
    assert_of_the_release(workspace.output)
    assert "compression.parquet" not in qc.export_card(workspace.output, "datasheet")
    said = read_card(str(workspace.output)).guarantee.not_protected
    assert [one for one in said if "histogram" in one and "accepted by name" not in one] == []


def test_a_small_delta_is_written_in_few_digits(workspace: Workspace) -> None:
    # Kills: 1.0000000000000002e-06 for a millionth, and any number below it.
    workspace.json_lines(["hello quiet world", "alpha beta"] * 300)
    private = {"private": {"epsilon": 4, "delta": 1e-6}}
    histogram = {"mechanism.kind": "histogram", "mechanism.compression": ...}
    workspace.release(histogram | {"mechanism.vocabulary": private})
    assert_of_the_release(workspace.output, Fraction(1, 10**6))
    assert "delta: 0.000001" in qc.export_card(workspace.output, "datasheet") or (
        "delta: 1e-6" in qc.export_card(workspace.output, "datasheet")
    )
