"""Calls in threads, whose results come in order, few at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from quietcorpus.transforms.threads import AHEAD, in_turn


def test_results_come_in_order_and_few_calls_wait() -> None:
    # Kills: all calls begun at once; results in the order of their ends; those at the end lost.
    items = iter(range(3 * AHEAD + 1))
    with ThreadPoolExecutor(4) as pool:
        results = in_turn(pool, lambda number: -number, items)
        assert next(results) == 0
        assert next(items) == AHEAD
        expected = [-number for number in range(1, 3 * AHEAD + 1) if number != AHEAD]
        assert list(results) == expected


def test_an_error_is_raised_at_its_turn() -> None:
    # Kills: an error that is lost, or raised before the results ahead of it.
    with ThreadPoolExecutor(4) as pool:
        results = in_turn(pool, lambda number: 1 // number, [1, 1, 0, 1])
        assert (next(results), next(results)) == (1, 1)
        with pytest.raises(ZeroDivisionError):
            next(results)
