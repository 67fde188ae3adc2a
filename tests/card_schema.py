"""The published schema of releases' cards."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
from machine import ROOT

SCHEMA = ROOT / "docs" / "reference" / "release.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))


def assert_valid(card: dict[str, Any]) -> None:
    """Assert that a card is as the schema says."""
    VALIDATOR.validate(card)
