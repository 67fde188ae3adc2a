"""Groups of users, by what each may spend."""

from __future__ import annotations

from fractions import Fraction

from correct_audits import embeddings_spec

from quietcorpus.pipelines.kinds.user_budgets import BudgetedUsers


def test_groups_rise_with_their_budgets() -> None:
    # A user of several groups is in the first. Kills: groups in the order of their names, or of
    # the spec, of which the first may have the largest budget.
    epsilon = {"silver": 1.0, "bronze": 0.5, "gold": 2.0, "amber": 1.0}
    spec = embeddings_spec(epsilon=None, budgets={"column": "team", "epsilon": epsilon})
    users = BudgetedUsers(spec)
    assert users.named_users.groups == ("bronze", "amber", "silver", "gold")
    assert list(users.budgets.values()) == [Fraction(1, 2), Fraction(1), Fraction(1), Fraction(2)]
    assert list(users.norms().most) == list(users.named_users.groups)
