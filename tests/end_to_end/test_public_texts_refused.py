"""Specs, columns and pools of which no release of public texts is made."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from documents_on_topics import corpus
from manifests import PRIVATE, edit
from public_pools import INPUT, Texts, refusal

if TYPE_CHECKING:
    from tests.conftest import Workspace


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no pool": ({"pool": ...}, "mechanism.pool: missing"),
    "no such pool": ({"pool": "/nowhere"}, "mechanism.pool: /nowhere is not a pool: it has no "),
    "no delta": ({"delta": ...}, "mechanism.delta: missing"),
    "no delta to speak of": ({"delta": 0}, "mechanism.delta: 0 is not allowed"),
    "too little epsilon": (
        {"epsilon": 0.001},
        "mechanism.epsilon: no noise multiplier up to 64 keeps one sum to epsilon 0.001 at delta "
        "1e-06; take a larger epsilon or delta",
    ),
    "too many votes": ({"nearest": 41}, "mechanism.nearest: 41 is more than the pool's 40 texts; "),
    "far too many votes": ({"nearest": 1001}, "mechanism.nearest: "),
    "no votes": ({"nearest": 0}, "mechanism.nearest: 0 is not allowed"),
    "no labels": ({"strata": {"column": "kind", "labels": []}}, "mechanism.strata.labels: "),
    "an empty label": ({"strata": {"column": "kind", "labels": [""]}}, "mechanism.strata.labels"),
    "too many labels": (
        {"strata": {"column": "kind", "labels": [str(n) for n in range(101)]}},
        "mechanism.strata.labels: 101 are too many; give at most 100",
    ),
    "a label twice": (
        {"strata": {"column": "kind", "labels": ["a", "b", "a"]}},
        "mechanism.strata.labels: a label is given twice",
    ),
    "a label that is a number": (
        {"strata": {"column": "kind", "labels": ["a", 1]}},
        "mechanism.strata.labels.1: ",
    ),
    "no such column": (
        {"strata": {"column": "sort", "labels": ["a"]}},
        "mechanism.strata.column: ",
    ),
    "the text for a label": (
        {"strata": {"column": "text", "labels": ["a"]}},
        "mechanism.strata.column: 'text' is the text; name the column of labels",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_told_in_one_line(
    workspace: Workspace, public_texts: Texts, name: str
) -> None:
    corpus(workspace)
    block, message = BAD[name]
    assert refusal(workspace, public_texts(**block)).startswith(message)


def test_kept_columns_are_refused(workspace: Workspace, public_texts: Texts) -> None:
    corpus(workspace)
    changes = {"input": INPUT["input"] | {"keep": ["kind"]}} | public_texts()
    assert refusal(workspace, changes) == (
        "input.keep: public texts have no rows of documents; drop it"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content.pop("provenance"), "does not say its provenance"),
        (lambda content: content.update(PRIVATE), "was made from private data, and nothing here"),
        (
            lambda content: content["encoder"].update(sha256="1" * 64, name="another"),
            "is not the encoder of the pool (another, 384 dimensions, sha256 111111111111...); "
            "give that one, or build pool with this",
        ),
    ],
    ids=["none", "private", "encoder"],
)
def test_a_pool_that_may_not_be_used(
    workspace: Workspace,
    public_texts: Texts,
    pool: Path,
    change: Callable[[dict[str, Any]], Any],
    message: str,
) -> None:
    corpus(workspace)
    copied = shutil.copytree(pool, workspace.folder / "pool")
    edit(copied, change)
    assert message in refusal(workspace, public_texts(pool=str(copied)))
