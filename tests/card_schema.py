"""The published schema of releases' cards."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
from machine import ROOT

SCHEMA = json.loads((ROOT / "docs" / "reference" / "release.schema.json").read_text())


def assert_valid(card: dict[str, Any]) -> None:
    """Assert that a card is as the schema says."""
    jsonschema.validate(card, SCHEMA)
