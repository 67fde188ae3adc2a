"""The budget facet: its schema. `tests/end_to_end/test_observed.py` has what is in it."""

from __future__ import annotations

from machine import ROOT

from quietcorpus.pipelines.release.lineage import schema


def test_the_schema_is_the_documented_one() -> None:
    # Kills: a schema that was not written again after a change.
    path = ROOT / "docs" / "reference" / "budget-facet.schema.json"
    assert path.read_text() == schema()
