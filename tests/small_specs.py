"""The content of a small spec, of a corpus and a vocabulary in a workspace's folder."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

WEAK = [
    *("unchanged-words", "large-epsilon", "large-delta", "kept-addresses", "kept-text"),
    "documents-without-user",
]
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


def changed(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The content of that spec but for `changes` by dotted key (... removes)."""
    content = spec_of()
    for dotted, value in changes.items():
        *parents, last = dotted.split(".")
        place = content
        for parent in parents:
            place = place.setdefault(parent, {})
        if value is ...:
            place.pop(last, None)
        else:
            place[last] = copy.deepcopy(value)
    return content


def block(whole: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The change that makes a spec one of a mechanism, but for `changes` of its block."""
    given = {**whole, **changes}
    return {"mechanism": {key: value for key, value in given.items() if value is not ...}}
