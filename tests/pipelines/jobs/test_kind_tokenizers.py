"""A kind tells a run's identity, and a ledger, which rule finds words."""

from __future__ import annotations

from typing import Any

import pytest

from quietcorpus.indexes.tokens.segmentation import icu_version
from quietcorpus.pipelines.jobs.kind import prepare
from quietcorpus.pipelines.schema.loading import as_spec

pytest.importorskip("icu4py")

VOCABULARY = {"private": {"epsilon": 1, "delta": 1e-8}}
KINDS: dict[str, dict[str, Any]] = {
    "histogram": {},
    "bag-of-words": {"compression": {"method": "none"}},
}


@pytest.mark.parametrize("kind", KINDS)
def test_identity_and_account_follow_the_rule(kind: str) -> None:
    # Kills: a run that another ICU may finish; words of two rules in one account; and a rule that
    # renames the runs and the accounts of the first one.
    found = []
    for rule in ("unicode-words-v2", {"name": "icu-words-v2", "language": "th"}):
        common = {"kind": kind, "precision": 10, "epsilon": 1, "vocabulary": VOCABULARY}
        spec = as_spec(
            {
                "release": "r",
                "input": {"path": "corpus/*.parquet"},
                "output": "released",
                "mechanism": common | KINDS[kind] | {"tokenizer": rule},
            }
        )
        made = prepare(spec)
        found.append((made.computing, made.unit_scope))
    assert found == [
        ("", "tokens of unicode-words-v2"),
        (f"ICU {icu_version()}", "tokens of icu-words-v2 th"),
    ]
