"""Calls in threads whose results come in order, and of which few wait at a time.

`Executor.map` begins all calls at once, and each that waits takes memory. A corpus may
have hundreds of thousands of files.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
AHEAD = 64
"""The number of calls that are begun before the result of the first is taken, if none is given."""


def in_turn(
    pool: Executor,
    function: Callable[[_Item], _Result],
    items: Iterable[_Item],
    ahead: int = AHEAD,
) -> Iterator[_Result]:
    """Yield a function's results for items, in order, computed by a pool.

    Raises what the function raises, at the turn of its item; what is begun by then runs to its end,
    unless the caller shuts the pool down.
    """
    begun: deque[Future[_Result]] = deque()
    for item in items:
        begun.append(pool.submit(function, item))
        if len(begun) == ahead:
            yield begun.popleft().result()
    while begun:
        yield begun.popleft().result()
