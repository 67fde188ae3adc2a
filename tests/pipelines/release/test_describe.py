"""The summary of a run: its schema. `test_recorder.py` has its content."""

from __future__ import annotations

import json

from machine import ROOT

from quietcorpus.pipelines.release.describe import RunSummary, schema


def test_the_schema_is_the_documented_one() -> None:
    # Kills: a schema that was not written again after a change.
    path = ROOT / "docs" / "reference" / "summary.schema.json"
    assert path.read_text() == schema()
    assert set(json.loads(schema())["properties"]) == set(RunSummary.model_fields)
