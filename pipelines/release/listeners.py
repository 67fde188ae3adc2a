"""Listeners to a run, besides its caller, each in a separate thread.

None of them makes a run fail, nor holds it up for more than some seconds at its end.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeAlias

from quietcorpus.transforms.errors import InputError, StageError
from quietcorpus.transforms.outages import outage

from ..card.model import Card
from ..ledger.balances import Balance
from ..schema.spec import Spec
from ..terminal.observer import Numbers
from . import lineage, telemetry
from .summary import RunSummary

_LOGGER = logging.getLogger("quietcorpus.release")
_PATIENCE_SECONDS = 5.0


Accounts: TypeAlias = Callable[[], Sequence[Balance]]
"""A function that reads the accounts of a ledger; it raises what the ledger's place raises."""


class Listener(Protocol):
    """A listener to a run; its methods may raise anything."""

    def began(self, spec: Spec, progress: Numbers) -> None:
        """Take a run whose spec was read; `progress` will have its job's latest numbers."""

    def reserved(self, accounts: Accounts) -> None:
        """Hear that the budget of a release with a ledger is reserved, and ask for its accounts."""

    def ended(self, summary: RunSummary, card: Card | None) -> None:
        """Hear how the run ended; one whose spec could not be read has not begun before."""


_ALL: Mapping[str, tuple[Callable[[], bool], Callable[[str], Listener]]] = {
    "telemetry": (telemetry.is_asked, telemetry.listener),
    "lineage": (lineage.is_asked, lineage.listener),
}
"""By the name of its extra: whether the environment asks for it, and what makes it for a run."""


class Audience:
    """The listeners to one run."""

    def __init__(self) -> None:
        self._progress: dict[str, int] = {}
        self._told: list[_Told] = []

    def gather(self, run: str) -> None:
        """Make all that the environment asks for, to be told of the run of this id."""
        for name, (is_asked, make) in _ALL.items():
            if is_asked():
                self._told.append(_Told(name, partial(make, run)))

    def __bool__(self) -> bool:
        """Return whether there is anybody."""
        return bool(self._told)

    def began(self, spec: Spec) -> None:
        """Tell of a run whose spec was read."""
        for one in self._told:
            one.tell(lambda listener: listener.began(spec, self._progress))

    def reserved(self, accounts: Accounts) -> None:
        """Tell that the budget is reserved; who wants the accounts reads them in its own thread."""
        for one in self._told:
            one.tell(lambda listener: listener.reserved(accounts))

    def progressed(self, numbers: Numbers) -> None:
        """Keep the latest numbers of the job, for listeners that look at them."""
        self._progress.update(numbers)

    def ended(self, summary: RunSummary, card: Card | None) -> None:
        """Tell how the run ended."""
        for one in self._told:
            one.tell(lambda listener: listener.ended(summary, card))

    def dismiss(self) -> None:
        """Wait some seconds until all have heard; warn of those that have not."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        for one in self._told:
            one.close()
        for one in self._told:
            one.wait(deadline)


class _Told:
    """A listener, and the thread that calls it."""

    def __init__(self, name: str, make: Callable[[], Listener]) -> None:
        self._name = name
        self._calls: queue.SimpleQueue[Callable[[Listener], None] | None] = queue.SimpleQueue()
        self._failure: str | None = None
        self._thread: threading.Thread | None = None
        try:  # not in the thread: it imports, and may change the environment for a moment
            listener = make()
        except Exception as error:
            self._failure = self._said(error)
            return
        self._thread = threading.Thread(
            target=self._listen, args=[listener], name=name, daemon=True
        )
        self._thread.start()

    def tell(self, call: Callable[[Listener], None]) -> None:
        """Have the listener called, after all calls before."""
        self._calls.put(call)

    def close(self) -> None:
        """Have no more calls after those so far."""
        self._calls.put(None)

    def wait(self, deadline: float) -> None:
        """Wait until a time for the last call, and warn if one has failed."""
        failure = self._failure
        if self._thread is not None:
            self._thread.join(max(0.0, deadline - time.monotonic()))
            failure = "it does not answer in time" if self._thread.is_alive() else self._failure
        if failure is not None:
            _LOGGER.warning("%s: not all of this run was told: %s", self._name, failure)

    def _listen(self, listener: Listener) -> None:
        while (call := self._calls.get()) is not None:
            try:
                call(listener)
            except Exception as error:
                self._failure = self._said(error)

    def _said(self, error: Exception) -> str:
        if isinstance(error, ModuleNotFoundError):
            return f"{error.name} is not installed; install the extra [{self._name}]"
        if isinstance(error, InputError | StageError):
            return str(error)
        return outage(error) or type(error).__name__  # a message may hold a credential
