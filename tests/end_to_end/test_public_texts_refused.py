"""Columns, pools and budgets of which no release of public texts is made."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from documents_on_topics import corpus
from manifests import PRIVATE, edit
from public_pools import Texts, refusal
from users_on_topics import BUDGETS, OF_TEAMS, OF_USERS
from users_on_topics import corpus as users

if TYPE_CHECKING:
    from tests.conftest import Workspace


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no such pool": ({"pool": "/nowhere"}, "mechanism.pool: /nowhere is not a pool: it has no "),
    "too little epsilon": (
        {"epsilon": 0.001},
        "mechanism.epsilon: no noise multiplier up to 64 keeps one sum to epsilon 0.001 at delta "
        "1e-06; take a larger epsilon or delta",
    ),
    "too many votes": ({"nearest": 41}, "mechanism.nearest: 41 is more than the pool's 40 texts; "),
    "no such column": (
        {"strata": {"column": "sort", "labels": ["a"]}},
        "mechanism.strata.column: ",
    ),
    "no such column of users": (
        OF_USERS | {"user": "writer"},
        "mechanism.user: {path} has no column 'writer'; it has 'text', 'author', 'team'",
    ),
    "no such column of groups": (
        OF_TEAMS | {"budgets": BUDGETS | {"column": "tier"}},
        "mechanism.budgets.column: {path} has no column 'tier'; ",
    ),
    "too little epsilon of users": (
        OF_USERS | {"epsilon": 0.001},
        "mechanism.epsilon: no noise multiplier up to 64 keeps one sum to epsilon 0.001",
    ),
    "too little epsilon for all groups": (
        OF_TEAMS | {"budgets": BUDGETS | {"epsilon": {"gold": 0.001}}},
        "mechanism.budgets.epsilon: no noise multiplier up to 64 keeps one sum",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_the_release_finds(workspace: Workspace, public_texts: Texts, name: str) -> None:
    # What the spec's model finds is in tests/pipelines/schema/test_spec_kinds.py.
    block, message = BAD[name]
    (users if "user" in block else corpus)(workspace)
    path = workspace.input / "corpus.parquet"
    assert refusal(workspace, public_texts(**block)).startswith(message.format(path=path))


@pytest.mark.parametrize("column", ["null", "list"])
def test_a_column_that_names_no_users(
    workspace: Workspace, public_texts: Texts, column: str
) -> None:
    # Kills: documents of one user each, or all of one, where no column states whose they are.
    columns = {"null": pa.nulls(2), "list": pa.array([["a"], ["b"]])}
    workspace.parquet({"text": ["a", "b"], "author": columns[column]})
    message = refusal(workspace, public_texts(**OF_USERS))
    assert message.startswith("mechanism.user: author in ")
    remedy = {"null": "name another column", "list": "name a column of strings or whole numbers"}
    assert message.endswith(f"; {remedy[column]}")


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
