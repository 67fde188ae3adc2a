"""The users of a release and their budgets, as the blocks of all kinds for users spell them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from quietcorpus.mechanisms.accounting.guarantees import ceiling
from quietcorpus.transforms.errors import shown
from quietcorpus.transforms.names import look_alike

from .values import (
    Column,
    Epsilon,
    Name,
    Strict,
    of_key,
    of_value,
    one_of,
)

MOST_USERS = 10**12
MOST_GROUPS = 100  # each takes a second or so to solve for its rate or norm
_NAMED = {
    "mechanism.user": "users",
    "mechanism.budgets.column": "their groups",
    "mechanism.strata.column": "labels",
}


def _by_group(value: object) -> object:
    if not isinstance(value, dict):
        raise of_value("is not a mapping; give an epsilon for each GROUP")
    if not 0 < len(value) <= MOST_GROUPS:
        if value:
            raise of_key("", f"has more than {MOST_GROUPS} groups; give fewer")
        raise of_value("is not allowed; give at least one group")
    return value


class GroupBudgets(Strict):
    """The budget of each group of users, by the group's name or by the numbers of a column."""

    model_config = one_of("epsilon", "levels")

    column: Annotated[Column, Field(description="the column that names a document's group")]
    epsilon: Annotated[
        Annotated[dict[Name, Epsilon], BeforeValidator(_by_group)] | None,
        Field(description="the budget of each group, by its name; others have no part"),
    ] = None
    levels: Annotated[
        Annotated[list[Epsilon], Field(min_length=1, max_length=MOST_GROUPS)] | None,
        Field(
            description="public budgets, for a column of numbers: a user has the largest that is "
            "not above any of the user's numbers"
        ),
    ] = None

    @model_validator(mode="after")
    def _one_kind(self) -> GroupBudgets:
        if (self.epsilon is None) == (self.levels is None):
            raise of_key(
                "",
                "give exactly one of `epsilon: {GROUP: NUMBER}`, for a column of names, and "
                "`levels: [NUMBER, ...]`, for a column of numbers",
            )
        if self.epsilon and look_alike(self.epsilon):
            raise of_key("epsilon", "two groups have names that look alike; rename one")
        if self.levels and len({ceiling(level) for level in self.levels}) < len(self.levels):
            raise of_key("levels", "two of them are the same in six digits; drop one")
        return self

    @property
    def of_groups(self) -> dict[str, Fraction]:
        """Return the budget of each group; a level's group is named by its number."""
        return self.epsilon or {ceiling(level): level for level in self.levels or ()}


def require_one_budget(epsilon: Fraction | None, budgets: GroupBudgets | None) -> None:
    """Raise PydanticCustomError unless a block gives either `epsilon` or `budgets`."""
    if (epsilon is None) == (budgets is None):
        raise of_key(
            "",
            "give exactly one of `epsilon`, which every user has, and `budgets: {column, "
            "epsilon: {GROUP: NUMBER}}`",
        )


def budgets_key(budgets: GroupBudgets | None) -> str:
    """Return the key of the budgets in a block."""
    if budgets is None:
        return "epsilon"
    return "budgets.epsilon" if budgets.epsilon else "budgets.levels"


def user_columns(user: str, budgets: GroupBudgets | None) -> list[tuple[str, str]]:
    """Return the columns of users, and of their groups if they have any, each with its key."""
    groups = [("mechanism.budgets.column", budgets.column)] if budgets else []
    return [("mechanism.user", user), *groups]


def refuse_text(columns: Sequence[tuple[str, str]], text: str) -> None:
    """Raise PydanticCustomError if a column that a mechanism reads by a key is the text.

    The users' column names neither groups nor labels.
    """
    taken = {text: "is the text"}
    for key, column in columns:
        if column in taken:
            raise of_key(key, f"{shown(column)} {taken[column]}; name the column of {_NAMED[key]}")
        if key == "mechanism.user":
            taken[column] = "names the users"
