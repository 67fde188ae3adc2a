"""Schedules that keep to each group's budget: they are solved, recomputed, and found out."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from dp_events import DELTA, ONE, events, rates
from hypothesis import given, settings
from hypothesis import strategies as st

from quietcorpus.mechanisms.accounting.privacy_loss import (
    Group,
    Schedule,
    epsilon_of,
    noise_multiplier_for,
    papers_epsilon,
    rate_for,
)

STEPS = 1000
BUDGETS = {"high": Fraction(6), "middle": Fraction(2), "low": Fraction(1, 2)}


@cache
def solved() -> Schedule:
    return Schedule.solved(BUDGETS, DELTA, Fraction(1, 50), STEPS)


def step_log(schedule: Schedule, done: int) -> dict[str, list[Fraction]]:
    """Return each group's rate in each step, written down step by step."""
    return {
        group.name: [group.rate if step < group.steps else Fraction(0) for step in range(done)]
        for group in schedule.groups
    }


def recomputed(
    schedule: Schedule, done: int, name: str, spacing: float = 4e-4
) -> tuple[float, float]:
    """Epsilon from the step log, by the library: privacy loss distributions, Renyi divergences."""
    taken = Counter(rate for rate in step_log(schedule, done)[name] if rate)
    accountants = PLDAccountant(value_discretization_interval=spacing), RdpAccountant()
    for accountant in accountants:
        for rate, count in taken.items():
            # In two parts: composition by the library's own product of distributions.
            for part in filter(None, (count // 2, count - count // 2)):
                accountant.compose(events(rate, schedule.noise_multiplier, part))
    delta = float(schedule.delta)
    return accountants[0].get_epsilon(delta), accountants[1].get_epsilon(delta)


def overdrawn(schedule: Schedule) -> list[str]:
    """The groups whose budget the step log passes, by the library's upper bound.

    With losses 4e-4 apart it is up to 1e-3 too high, which is much for a small epsilon, and with
    1e-4 up to 1e-4.
    """
    return [
        group.name
        for group in schedule.groups
        if recomputed(schedule, schedule.steps, group.name, 4e-4 if group.epsilon > 2 else 1e-4)[0]
        > float(group.epsilon) * (1 + 1e-3) + 1e-4
    ]


@pytest.mark.slow
def test_a_solved_schedule() -> None:
    schedule = solved()
    assert schedule.noise_multiplier == noise_multiplier_for(
        BUDGETS["high"], DELTA, Fraction(1, 50), STEPS
    )
    assert [group.name for group in schedule.groups] == list(BUDGETS)
    high, middle, low = schedule.groups
    assert high.rate == Fraction(1, 50) > middle.rate > low.rate > 0
    for group in schedule.groups:
        # Nobody leaves, and every budget is used.
        assert group.epsilon == BUDGETS[group.name]
        assert group.steps == STEPS
        assert group.epsilon * Fraction(99, 100) <= schedule.spent(group, STEPS) <= group.epsilon


@pytest.mark.slow
def test_a_schedule_depends_on_budgets_alone() -> None:
    turned = Schedule.solved(dict(reversed(BUDGETS.items())), DELTA, Fraction(1, 50), STEPS)
    assert set(turned.groups) == set(solved().groups)
    assert turned.noise_multiplier == solved().noise_multiplier
    # Another group takes nothing from the rest, nor does its budget.
    alone = Schedule.solved({"high": BUDGETS["high"]}, DELTA, Fraction(1, 50), STEPS)
    assert alone.groups == solved().groups[:1]


@pytest.mark.slow
@pytest.mark.parametrize("done", [0, 1, 400, STEPS + 1])
def test_no_group_passes_its_epsilon_at_any_step(done: int) -> None:
    schedule = solved()
    for group in schedule.groups:
        spent = schedule.spent(group, done)
        assert spent <= group.epsilon
        by_distributions, by_divergences = recomputed(schedule, min(done, STEPS), group.name)
        assert float(spent) == pytest.approx(by_distributions, rel=1e-3, abs=1e-4)
        assert float(spent) <= by_divergences * (1 + 1e-5) + 1e-9


@pytest.mark.slow
def test_a_group_leaves_before_the_step_that_would_pass_its_budget() -> None:
    # Kills: off by one, a spend that goes on after a group has left.
    noise, rate = Fraction(2), Fraction(1, 20)
    budgets = {"stays": Fraction(20), "leaves": Fraction(2)}
    schedule = Schedule.of(budgets, dict.fromkeys(budgets, rate), noise, DELTA, STEPS)
    stays, leaves = schedule.groups
    assert (stays.rate, stays.steps) == (rate, STEPS)
    assert (leaves.rate, 0 < leaves.steps < STEPS) == (rate, True)
    assert epsilon_of(rate, noise, leaves.steps, DELTA) <= 2
    assert epsilon_of(rate, noise, leaves.steps + 1, DELTA) > 2
    assert schedule.spent(leaves, STEPS) == schedule.spent(leaves, leaves.steps)
    assert schedule.spent(leaves, leaves.steps - 1) < schedule.spent(leaves, leaves.steps)
    assert not overdrawn(schedule)


@pytest.mark.slow
@settings(max_examples=3)
@given(
    epsilons=st.lists(
        st.fractions(Fraction(1, 20), 4, max_denominator=20), min_size=1, max_size=2, unique=True
    ),
    rate=rates,
    noise=st.fractions(Fraction(3, 2), 6, max_denominator=4),
    steps=st.integers(1, 200),
)
def test_any_schedule_keeps_to_its_budgets(
    epsilons: list[Fraction], rate: Fraction, noise: Fraction, steps: int
) -> None:
    budgets = {str(epsilon): epsilon for epsilon in epsilons}
    schedule = Schedule.of(budgets, dict.fromkeys(budgets, rate), noise, DELTA, steps)
    for group in schedule.groups:
        assert schedule.spent(group, steps) <= group.epsilon
        assert 0 <= group.steps <= steps
        if group.steps < steps:
            assert epsilon_of(rate, noise, group.steps + 1, DELTA) > group.epsilon
    assert not overdrawn(schedule)


def ignores_budgets(schedule: Schedule, group: Group) -> Group:
    return dataclasses.replace(group, rate=schedule.groups[0].rate)


def stays_too_long(schedule: Schedule, group: Group) -> Group:
    return dataclasses.replace(group, steps=schedule.steps)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "schedule", "caught"),
    [
        (ignores_budgets, solved, ["middle", "low"]),
        pytest.param(
            stays_too_long,
            lambda: Schedule.of(
                BUDGETS, dict.fromkeys(BUDGETS, Fraction(1, 50)), Fraction(5, 4), DELTA, STEPS
            ),
            ["middle", "low"],
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_schedule_that_ignores_budgets_is_found_out(
    wrong: Callable[[Schedule, Group], Group], schedule: Callable[[], Schedule], caught: list[str]
) -> None:
    # The negative control of the tests above.
    right = schedule()
    assert not overdrawn(right)
    groups = tuple(wrong(right, group) for group in right.groups)
    assert overdrawn(dataclasses.replace(right, groups=groups)) == caught


@pytest.mark.parametrize("none", [Fraction(0), Fraction(1, 10**12)], ids=["zero", "tiny"])
def test_a_budget_for_no_step_is_never_sampled(none: Fraction) -> None:
    budgets, delta = {"some": Fraction(1), "none": none}, Fraction(1, 10**9)
    given_rates = dict.fromkeys(budgets, Fraction(1, 10))
    with_noise = Schedule.of(budgets, given_rates, Fraction(4), delta, 10)
    assert with_noise.groups[1] == Group("none", none, Fraction(0), 0)
    assert with_noise.groups[0].steps > 0 == with_noise.spent(with_noise.groups[1], 10)
    without = Schedule.solved(budgets, Fraction(1, 10**18), Fraction(1, 10), 100)
    assert without.groups[1] == Group("none", none, Fraction(0), 0)
    # A delta that covers sampling by itself buys nothing for an epsilon of 0.
    assert rate_for(Fraction(0), Fraction(1, 2), ONE, 1, ONE) == 0


def test_budgets_that_are_far_apart() -> None:
    # Kills: a quotient that no float holds.
    schedule = Schedule.solved({"": Fraction(4), "no": Fraction(1, 10**320)}, DELTA, ONE, 3)
    # What it buys is what delta alone would: next to no part.
    assert [group.rate < 2 * DELTA for group in schedule.groups] == [False, True]


@pytest.mark.parametrize("power", [301, 400])
def test_a_delta_that_is_next_to_nothing(power: int) -> None:
    with pytest.raises(ValueError, match="delta in "):
        epsilon_of(ONE, ONE, 1, Fraction(1, 10**power))
    smallest = Fraction(1, 10**300)
    assert epsilon_of(ONE, ONE, 1, smallest) > 30
    assert papers_epsilon(ONE, ONE, 1, ONE, smallest) > 30
