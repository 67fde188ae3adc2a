"""The parts of a card that the kinds for users share: the lines on what is not protected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from quietcorpus.mechanisms.accounting.guarantees import UserPrivacy
from quietcorpus.transforms.errors import InputError

from ..schema.users import GroupBudgets
from .parameters import UserParameters, exacts

OF_NAMES = (
    "what a person writes under several names: each name is a user of its own",
    "what other users write about a person",
)
"""The limits of a guarantee for users whom a column of the corpus names."""


def budget_limits(named: bool | None) -> list[str]:
    """Return what a reader may learn where only who has a budget takes part.

    `named`, if groups are names and not levels; None if users have no budgets of their own.
    """
    if named is None:
        return []
    none = "names no listed group" if named else "has no number, or one below the least level,"
    return [
        f"who has no budget: users any of whose documents {none} have no part in the "
        "release; a user of several groups has the least budget of them"
    ]


def are_named(budgets: Mapping[str, Any] | None) -> bool | None:
    """Return whether a card's budgets are of groups by name; None if it has none."""
    return None if budgets is None else bool(budgets.get("epsilon"))


def spendable(
    epsilon: float, budgets: Mapping[str, Any] | None, before: Fraction = Fraction(0)
) -> Iterator[dict[str, Fraction]]:
    """Yield what each group's users may spend after `before`, in the order of a release.

    A card's decimals are those of two numbers of a spec at most: the shortest ones come first.
    `epsilon` is that of users without budgets, who form one group, called "".
    """
    given = (
        {"": epsilon}
        if budgets is None
        else {k: float(v) for k, v in GroupBudgets.model_validate(budgets).of_groups.items()}
    )
    found = {name: exacts(number) for name, number in given.items()}
    for place in (0, -1) if all(found.values()) else ():
        left = {name: numbers[place] - before for name, numbers in found.items()}
        yield dict(sorted(left.items(), key=lambda item: (item[1], item[0])))


def promised(
    spent: Mapping[str, Fraction], delta: Fraction, budgets: Mapping[str, Any] | None
) -> UserPrivacy:
    """Return the guarantee of a stage that costs each group's users so much."""
    groups = () if budgets is None else tuple(spent.items())
    return UserPrivacy(max(spent.values()), delta, groups)


def check_budgets(uri: str, total: UserParameters, budgets: Mapping[str, Any] | None) -> None:
    """Check that each group of users spends no more than its budget; raises InputError."""
    given = {} if budgets is None else GroupBudgets.model_validate(budgets).of_groups
    spent = {group.name: Fraction(group.epsilon_exact) for group in total.groups}
    if given.keys() != spent.keys() or any(spent[name] > given[name] for name in spent):
        raise InputError(f"{uri}: mechanism: budgets are not those of the guarantee's groups")
