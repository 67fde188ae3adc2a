"""Specs of word embeddings that make no sense: each is refused with one line that names the key."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from embedding_releases import BUDGETS, embeddings
from sentence_releases import refusal

if TYPE_CHECKING:
    from tests.conftest import Workspace

ONE = "give exactly one of `epsilon`, which every user has, and `budgets: {column, epsilon: "
POSITIVE = "is not allowed; give a positive, finite number"
NUMBER = "is not a number; give a positive number"
WHOLE = "is not allowed; give a positive whole number"


def of_silver(epsilon: object) -> dict[str, Any]:
    return {"budgets": {"column": "team", "epsilon": {"gold": 3, "silver": epsilon}}}


def private(**changes: object) -> dict[str, Any]:
    return {"vocabulary": {"private": {"epsilon": 1, "delta": 1e-6} | changes}}


FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    # What is changed, the key that the message names, and what it says of it.
    "no budget": ({"epsilon": ...}, "", ONE),
    "two budgets": ({"both": True}, "", ONE),
    "negative": ({"epsilon": -4}, "epsilon", f"-4 {POSITIVE}"),
    "zero": ({"epsilon": 0}, "epsilon", f"0 {POSITIVE}"),
    "infinite": ({"epsilon": math.inf}, "epsilon", f"inf {POSITIVE}"),
    "not a number": ({"epsilon": math.nan}, "epsilon", f"nan {POSITIVE}"),
    "a string": ({"epsilon": "4"}, "epsilon", f"'4' {NUMBER}"),
    "a negative budget": (of_silver(-4), "budgets.epsilon.silver", f"-4 {POSITIVE}"),
    "a budget of zero": (of_silver(0), "budgets.epsilon.silver", f"0 {POSITIVE}"),
    "an infinite budget": (of_silver(math.inf), "budgets.epsilon.silver", f"inf {POSITIVE}"),
    "a budget of nan": (of_silver(math.nan), "budgets.epsilon.silver", f"nan {POSITIVE}"),
    "a string as budget": (of_silver("4"), "budgets.epsilon.silver", f"'4' {NUMBER}"),
    "no group": (
        {"budgets": {"column": "team", "epsilon": {}}},
        "budgets.epsilon",
        "{} is not allowed; give at least one group",
    ),
    "a list of budgets": (
        {"budgets": {"column": "team", "epsilon": [3, 4]}},
        "budgets.epsilon",
        "list is not a mapping; give an epsilon for each GROUP",
    ),
    "a number as group": (
        {"budgets": {"column": "team", "epsilon": {1: 3}}},
        "budgets.epsilon",
        "1 is not a string; put it in quotes",
    ),
    "budgets of no column": ({"budgets": {"epsilon": {"gold": 3}}}, "budgets.column", "missing; "),
    "budgets alone": (
        {"budgets": {"gold": 3, "silver": 4}},
        "budgets.gold",
        "unknown key; allowed here: column, epsilon",
    ),
    "no delta": ({"delta": ...}, "delta", "missing; give it a value"),
    "a delta of zero": ({"delta": 0}, "delta", f"0 {POSITIVE}"),
    "a delta of one": ({"delta": 1}, "delta", "1 is not allowed; give a number between 0 and 1"),
    "no users": ({"users": 0}, "users", f"0 {WHOLE}"),
    "no tokens": ({"tokens": 0}, "tokens", f"0 {WHOLE}"),
    "no dimensions": ({"dimensions": 0}, "dimensions", f"0 {WHOLE}"),
    "no user": ({"user": ...}, "user", "missing; give it a value"),
    "the text as user": ({"user": "text"}, "user", "'text' is the text; name the column of users"),
    "a large window": ({"window": 21}, "window", "21 is not allowed: "),
    "no steps": ({"training": {"steps": 0}}, "training.steps", f"0 {WHOLE}"),
    "a large lot": (
        {"training": {"lot": 301}},
        "training.lot",
        "301 is more than the 300 users; ",
    ),
    "an end after the last step": (
        {"training": {"steps": 3, "stop_after": 4}},
        "training.stop_after",
        "4 is more than the 3 steps; ",
    ),
    "no clip": ({"training": {"clip": 0}}, "training.clip", "0 is not allowed: "),
    "clipping at nan": ({"training": {"clip": math.nan}}, "training.clip", "nan is not allowed: "),
    "an endless rate": (
        {"training": {"learning_rate": math.inf}},
        "training.learning_rate",
        "inf is not allowed: ",
    ),
    "another method": ({"method": "glove"}, "method", "'glove' is not allowed: "),
    "no vocabulary": ({"vocabulary": {}}, "vocabulary", "give exactly one of `public: PATH` and"),
    "no words": (private(words=0), "vocabulary.private.words", f"0 {WHOLE}"),
    "a vocabulary of the whole epsilon": (
        private(epsilon=8),
        "epsilon",
        "8 is not more than the 8 that the private vocabulary costs; raise it, or lower ",
    ),
    "a vocabulary of a group's whole epsilon": (
        private(epsilon=2) | of_silver(1),
        "budgets.epsilon.silver",
        "1 is not more than the 2 that the private vocabulary costs; raise it, or lower ",
    ),
    "a vocabulary of the whole delta": (
        private(delta=2e-5),
        "delta",
        "2e-05 is not more than the 2e-05 that the private vocabulary costs; raise it, or lower ",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_spec_of_no_sense(workspace: Workspace, fault: str) -> None:
    # Kills: a value that is converted, or taken for another; a message that leaves a person to
    # guess which of many numbers it is about, or what to do.
    block, key, said = FAULTS[fault]
    if block.get("both"):
        changes = embeddings(workspace, "sgd")
        changes["mechanism"]["budgets"] = BUDGETS
    else:
        changes = embeddings(workspace, "sgd", **block)
    message = refusal(workspace, changes)
    expected = f"{workspace.folder}/spec.yaml: mechanism{'.' if key else ''}{key}: {said}"
    assert message.startswith(expected)


OF_THE_OTHER: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "training": ({"training": {"steps": 3}}, {}, "mechanism.training: is for `method: sgd` alone"),
    "checkpoints": (
        {},
        {"checkpoints": "checkpoints"},
        "checkpoints: is for word embeddings with `method: sgd` alone",
    ),
    "keep": (
        {},
        {"input": {"path": "input/*", "keep": ["team"]}},
        "input.keep: word embeddings have no rows of documents; drop it",
    ),
}


@pytest.mark.parametrize("name", OF_THE_OTHER)
def test_a_key_that_is_of_no_use(workspace: Workspace, name: str) -> None:
    # Kills: a key that is read and then forgotten.
    block, outer, said = OF_THE_OTHER[name]
    changes = embeddings(workspace, "cooccurrence", **block) | outer
    assert said in refusal(workspace, changes)


def test_checkpoints_of_another_kind(workspace: Workspace) -> None:
    # Kills: a key that is read and then forgotten.
    message = workspace.refused({"checkpoints": "checkpoints"})
    assert message.endswith(OF_THE_OTHER["checkpoints"][2])
