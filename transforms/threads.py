"""Work in threads: results in order, and changes of the whole process while it lasts.

Calls in threads whose results come in order, and of which few wait at a time.

`Executor.map` begins all calls at once, and each that waits takes memory. A corpus may
have hundreds of thousands of files.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
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


class Temporary:
    """A change of the process: the first work makes it, and the last to end undoes it.

    A change of each work's own would be undone while another thread still needs it, or restored to
    what that thread had made of it.
    """

    def __init__(self, change: Callable[[], Callable[[], None]]) -> None:
        """Take the function that makes the change and returns the function that undoes it."""
        self._change = change
        self._lock = threading.Lock()
        self._needed = 0
        self._undo: Callable[[], None]

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Keep the change within the context."""
        with self._lock:
            if not self._needed:
                self._undo = self._change()
            self._needed += 1
        try:
            yield
        finally:
            with self._lock:
                self._needed -= 1
                if not self._needed:
                    self._undo()


_torch = threading.Lock()
_torch_threads: list[int] = []  # one for each context that is open: the number before the first


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Give PyTorch one thread within the context, and then as many as it had.

    PyTorch keeps the number for each thread that calls it, so each sets and restores it.
    """
    import torch

    with _torch:
        # A thread that has not asked takes the process's number at its first computation.
        threads = torch.get_num_threads()
        _torch_threads.append(_torch_threads[0] if _torch_threads else threads)
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _torch:
            torch.set_num_threads(_torch_threads.pop())
