"""Faults in what is made of a user's documents before any noise, and the audits that tell.

They are planted in what all kinds that protect users share; each kind's own are in its module.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import correct_audits
from correct_audits import NORMS, Patch

import quietcorpus.transforms.users.users
from quietcorpus.pipelines.jobs.user_budgets import BudgetedUsers
from quietcorpus.transforms.users.users import Users


def named_as_spelt(patch: Patch) -> None:
    """Users named by text, which is another for the same number with a point."""
    patch.setattr(quietcorpus.transforms.users.users, "_name", lambda value: value)


def as_if_named(patch: Patch) -> None:
    """All documents without a user are those of one."""
    real = Users.digests

    def named(self: Users, documents: Any, key: Any) -> Any:
        return [own or bytes(16) for own in real(self, documents, key)]

    patch.setattr(Users, "digests", named)


def apart_by_file(patch: Patch) -> None:
    """A user of two files is two users."""
    real = Users.digests

    def named(self: Users, documents: Any, key: Any) -> Any:
        file = documents.source.rpartition("/")[2].encode()[:1]
        return [own and own[:15] + file for own in real(self, documents, key)]

    patch.setattr(Users, "digests", named)


def apart_by_group(patch: Patch) -> None:
    """A user of two groups is two users."""
    real = Users.digests

    def named(self: Users, documents: Any, key: Any) -> Any:
        return [
            own and own[:15] + bytes([group % 256])
            for own, group in zip(real(self, documents, key), self.numbers(documents), strict=True)
        ]

    patch.setattr(Users, "digests", named)


def groups_by_name(patch: Patch) -> None:
    """Groups in the order of their names, so that a user of several may have a large budget."""
    given = BudgetedUsers.budgets.func  # type: ignore[attr-defined]
    patch.setattr(
        BudgetedUsers, "budgets", property(lambda self: dict(sorted(given(self).items())))
    )
    patch.setattr(correct_audits, "NORMS", replace(NORMS, most=dict(sorted(NORMS.most.items()))))
