"""The content of a small spec, of a corpus and a vocabulary in a workspace's folder."""

from __future__ import annotations

from typing import Any

WEAK = ["unchanged-words", "large-epsilon", "large-delta", "kept-addresses", "kept-text"]
"""All that a spec may accept. Tests' corpora are small, so that no delta of theirs is, and much of
their noise is little, so that outputs can be told; tests of refusals leave these out."""


def spec_of(**changes: Any) -> dict[str, Any]:
    """A release of bags of words, with these keys in place of its own."""
    return {
        "release": "test",
        "input": {"path": "input/corpus.jsonl"},
        "output": "released/out",
        "mechanism": {
            "kind": "bag-of-words",
            "precision": 2,
            "epsilon": 4,
            "vocabulary": {"public": "vocabulary.txt"},
            "compression": {"method": "none"},
        },
        "accept": list(WEAK),
    } | changes
