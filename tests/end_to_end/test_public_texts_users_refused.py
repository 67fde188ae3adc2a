"""Specs and columns of users of which no release of public texts is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from public_pools import Texts, refusal
from users_on_topics import BUDGETS, OF_TEAMS, OF_USERS, corpus

if TYPE_CHECKING:
    from tests.conftest import Workspace


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no such column of users": (
        OF_USERS | {"user": "writer"},
        "mechanism.user: {path} has no column 'writer'; it has 'text', 'author', 'team'",
    ),
    "the text for users": (
        OF_USERS | {"user": "text"},
        "mechanism.user: 'text' is the text; name the column of users",
    ),
    "no number of users": (
        OF_USERS | {"users": ...},
        "mechanism.users: missing; say about how many users there are, a public number",
    ),
    "a number of users, of documents": (
        {"users": 9},
        "mechanism.users: is of users; name their column in `user`, or drop it",
    ),
    "budgets of documents": (
        {"budgets": BUDGETS, "epsilon": ...},
        "mechanism.budgets: is of users; name their column in `user`, or drop it",
    ),
    "no budget": (
        OF_USERS | {"epsilon": ...},
        "mechanism: give exactly one of `epsilon`, which every user has, and `budgets: ",
    ),
    "no budget of documents": ({"epsilon": ...}, "mechanism: give exactly one of `epsilon`"),
    "two budgets": (OF_USERS | {"budgets": BUDGETS}, "mechanism: give exactly one of `epsilon`"),
    "no such column of groups": (
        OF_TEAMS | {"budgets": BUDGETS | {"column": "tier"}},
        "mechanism.budgets.column: {path} has no column 'tier'; ",
    ),
    "the text for groups": (
        OF_TEAMS | {"budgets": BUDGETS | {"column": "text"}},
        "mechanism.budgets.column: 'text' is the text; name the column of their groups",
    ),
    "the users' column for groups": (
        OF_TEAMS | {"budgets": BUDGETS | {"column": OF_TEAMS["user"]}},
        f"mechanism.budgets.column: '{OF_TEAMS['user']}' names the users; name the column of their",
    ),
    "the users' column for labels": (
        OF_USERS | {"strata": {"column": OF_USERS["user"], "labels": ["a"]}},
        f"mechanism.strata.column: '{OF_USERS['user']}' names the users; name the column of labels",
    ),
    "a group without a budget": (
        OF_TEAMS | {"budgets": BUDGETS | {"epsilon": {"gold": 0}}},
        "mechanism.budgets.epsilon.gold: 0 is not allowed",
    ),
    "too little epsilon": (
        OF_USERS | {"epsilon": 0.001},
        "mechanism.epsilon: no noise multiplier up to 64 keeps one sum to epsilon 0.001",
    ),
    "too little epsilon for all groups": (
        OF_TEAMS | {"budgets": BUDGETS | {"epsilon": {"gold": 0.001}}},
        "mechanism.budgets.epsilon: no noise multiplier up to 64 keeps one sum",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_told_in_one_line(
    workspace: Workspace, public_texts: Texts, name: str
) -> None:
    corpus(workspace)
    block, message = BAD[name]
    path = workspace.input / "corpus.parquet"
    assert refusal(workspace, public_texts(**block)).startswith(message.format(path=path))


@pytest.mark.parametrize("column", ["null", "list"])
def test_a_column_that_names_nobody(workspace: Workspace, public_texts: Texts, column: str) -> None:
    # Kills: documents of one user each, or all of one, where nobody says whose they are.
    columns = {"null": pa.nulls(2), "list": pa.array([["a"], ["b"]])}
    workspace.parquet({"text": ["a", "b"], "author": columns[column]})
    message = refusal(workspace, public_texts(**OF_USERS))
    assert message.startswith("mechanism.user: author in ")
    remedy = {"null": "name another column", "list": "name a column of strings or whole numbers"}
    assert message.endswith(f"; {remedy[column]}")
