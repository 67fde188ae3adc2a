"""Calls in threads, whose results come in order, few at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from quietcorpus.transforms.threads import AHEAD, Temporary, in_turn, one_torch_thread


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


# Changes of the process: made once, and undone once nobody needs them.


def counted() -> tuple[Temporary, list[str]]:
    told: list[str] = []

    def change() -> Callable[[], None]:
        told.append("made")
        return lambda: told.append("undone")

    return Temporary(change), told


def test_a_change_is_undone_once_nobody_needs_it() -> None:
    # Kills: the first to end that undoes what the second still needs, also after an error.
    changed, told = counted()
    first, second = changed(), changed()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert told == ["made"]
    with pytest.raises(KeyError), changed():
        raise KeyError
    assert told == ["made"]
    second.__exit__(None, None, None)
    assert told == ["made", "undone"]
    with changed():
        assert told == ["made", "undone", "made"]
    assert told == ["made", "undone", "made", "undone"]


def test_pytorch_has_one_thread_in_every_thread_and_its_own_afterwards() -> None:
    # Kills: a number that the first to end restores to the one of the second, for good.
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    found: list[int] = []
    inside, free = threading.Event(), threading.Event()

    def work() -> None:
        with one_torch_thread():
            inside.set()
            free.wait(60)
            found.append(torch.get_num_threads())
        found.append(torch.get_num_threads())

    try:
        torch.set_num_threads(3)
        with one_torch_thread():
            worker = threading.Thread(target=work)
            worker.start()
            assert inside.wait(60)
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 3
        free.set()
        worker.join()
        assert found == [1, 3]
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
