"""Numbers, intervals and names in the words of the report."""

from __future__ import annotations

import math
from typing import Any

import pytest
from report_content import figure

from quietcorpus.evaluation.report.wording import (
    cell,
    direction,
    first,
    interval,
    mean,
    number,
    setting,
    stated,
)

MINUS = "\N{MINUS SIGN}"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.000"),
        (0.3124, "0.312"),
        (9.9996, "10.000"),
        (12.34, "12.3"),
        (12345.6, "12,346"),
        (-0.5, MINUS + "0.500"),
        (0.00012, "0.00012"),
        (3e-9, f"3e{MINUS}09"),
        (None, "— (not measured)"),
        (math.nan, "— (not a number)"),
        (-math.inf, "— (infinite)"),
    ],
)
def test_a_number_is_shown_or_a_dash_says_why_not(value: float | None, shown: str) -> None:
    assert number(value) == shown


@pytest.mark.parametrize(
    ("low", "high", "draws", "shown"),
    [
        (0.1, 0.2, 5, "0.100 to 0.200"),
        (0.1, 0.2, 1, "0.100 to 0.200"),  # an interval over documents needs one draw alone
        (None, None, 1, "one draw"),
        (None, None, 5, "— (draws equal)"),
        (0.1, None, 5, "— (draws equal)"),
        (-math.inf, math.inf, 2, "— (unbounded)"),
        (0.1, math.nan, 2, "— (unbounded)"),
    ],
)
def test_an_interval_is_shown_or_why_there_is_none(
    low: float | None, high: float | None, draws: int, shown: str
) -> None:
    assert interval({"low": low, "high": high, "draws": draws}) == shown


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [(0.1, 0.2, "0.100 to 0.200"), (None, None, ""), (0.1, None, ""), (math.nan, 0.2, "")],
)
def test_a_first_draw_is_shown_with_the_interval_that_it_has(
    low: float | None, high: float | None, shown: str
) -> None:
    one = figure("any", "release", 0.5, 0.1, first=(0.15, low, high))
    assert first(one) == ("0.150", shown)
    assert mean(one) == ("0.500", "0.400 to 0.600")


@pytest.mark.parametrize(
    ("part", "better", "said"),
    [
        ("utility", "higher", "Higher is better."),
        ("utility", "lower", "Lower is better."),
        ("utility", "one", "Best at one."),
        ("utility", "none", ""),
        ("utility", "sideways", ""),
        ("attack", "higher", "Lower is more private."),
        ("divination", "higher", ""),
    ],
)
def test_what_is_good_for_the_release_is_said(part: str, better: str, said: str) -> None:
    assert direction({"part": part, "better": better}) == said


def test_a_setting_is_in_the_fields_own_letters() -> None:
    assert setting({"epsilon": "5", "size": "100"}) == "ε = 5, size = 100"
    assert setting({"compare": "dense", "epsilon": "5"}) == "dense, ε = 5"
    assert setting({"compare": "dense", "at": "5"}) == "dense, at 5"
    assert setting({"epsilon": "5", "size": "100"}, leave_out="epsilon") == "size = 100"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "—"),
        ("7/2", "7/2"),
        (200_000, "200,000"),
        (9.8765432, "9.87654"),
        (-1.5, MINUS + "1.5"),
        (math.inf, "— (infinite)"),
    ],
)
def test_what_an_audit_holds_is_shown(value: Any, shown: str) -> None:
    assert cell(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1 / 3, "0.333334"), (math.nextafter(1e-6, 1), "1e-6"), ("8.4", "8.4"), (None, "—")],
)
def test_what_is_stated_is_never_understated(value: Any, shown: str) -> None:
    # Kills: an epsilon that is rounded to the nearest.
    assert stated(value) == shown
