"""Progress of a command: a bar, or lines of the log where there is no terminal."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import TypeVar

from tqdm.auto import tqdm  # a widget in a notebook

from .duration import duration, rate
from .logs import PROGRESS

TELL_EVERY_SECONDS = 30.0
_QUICK_SECONDS = 5.0  # work that ends sooner logs nothing
_PULSE_SECONDS = 1.0
_BAR, _NO_BAR = "{desc} |{bar}|", "{desc}"
_LOGGER = logging.getLogger(PROGRESS)
_T = TypeVar("_T")
within: ContextVar[bool] = ContextVar("within a display", default=False)
"""True where this thread shows a display, within which others are hidden."""


class Pace:
    """The pace of some work that is counted in units."""

    def __init__(self, total: int | None, done: int = 0) -> None:
        """Begin now; `total` units, if known, of which `done` were done before."""
        self.total, self._first, self._begun = total, done, time.monotonic()
        self._took: float | None = None

    @property
    def seconds(self) -> float:
        """Return the time since the beginning."""
        return time.monotonic() - self._begun

    def said(self, done: int) -> str:
        """Say how fast units are done, and how long the others will take; empty before the first.

        Time is foreseen by the mean pace since the beginning. It stays as it was once all are done,
        whatever the work waits for then.
        """
        own, seconds = done - self._first, self.seconds
        if own <= 0 or seconds <= 0:
            return ""
        if self.total is None:
            return rate(own / seconds)
        if done >= self.total:
            self._took = self._took or seconds
            return rate(own / self._took)
        return f"{rate(own / seconds)}, {duration((self.total - done) * seconds / own)} left"


class Display:
    """A display of one step: a bar, or a log line every half minute and one at the end.

    A step without units shows its time alone.
    """

    def __init__(
        self,
        title: str,
        total: int | None = None,
        unit: str = "",
        *,
        bar: bool,
        done: int = 0,
        note: Callable[[int], str] | None = None,
        begun: float | None = None,
        hidden: bool | None = None,
    ) -> None:
        """Begin a display, which goes on until its context ends.

        It is hidden within the context of another one: a step tells of what it does itself.

        Args:
            title: the name of the step, in plain words.
            total: the number of units, if known.
            unit: the name of a unit, in the plural; empty if nothing is counted.
            bar: whether to show a bar, on standard error or in a notebook.
            done: the number of units that are done already.
            note: describes the state after a number of units; called every half minute.
            begun: the beginning of all steps of this work, as of `time.monotonic`.
            hidden: whether nothing is shown; by default, where another display is.
        """
        self.title, self._unit, self._note, self._done = title, unit, note, done
        self._outer = within.get()
        self._hidden = self._outer if hidden is None else hidden
        self._pace = Pace(total, done)
        self._told = time.monotonic()
        self._begun = self._told if begun is None else begun
        self._lock, self._ended = threading.RLock(), threading.Event()
        self._said, self._logs = "", not bar and not self._hidden
        self._bar = tqdm(
            desc=self._line(),
            total=total,
            initial=done,
            bar_format=_BAR if total is not None else _NO_BAR,
            dynamic_ncols=True,
            leave=False,
            disable=not bar or self._hidden,
        )
        self._bar.set_description_str(self._line())  # tqdm has added a colon
        self._pulse = threading.Thread(target=self._beat, name="progress", daemon=True)

    def __enter__(self) -> Display:
        within.set(True)
        self._pulse.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        within.set(self._outer)
        self._ended.set()
        self._pulse.join()
        with self._lock:
            self._bar.refresh()  # the last units may not be drawn yet
            self._bar.close()
            if kind is None and self._logs and time.monotonic() - self._begun >= _QUICK_SECONDS:
                took = duration(self._pace.seconds)
                counted = f"{self._done:,} {self._unit} in {took}" if self._unit else f"took {took}"
                _LOGGER.info("%s: %s", self.title, counted)

    def advance(self, units: int = 1) -> None:
        """Show that `units` more units are done."""
        self.show(self._done + units)

    def show(self, done: int, *, title: str | None = None) -> None:
        """Show that `done` units are done in all; take another title, if one is given."""
        with self._lock:
            self.title = title or self.title
            if self._pace.total is not None and done > self._pace.total:  # a wrong number
                self._pace.total = self._bar.total = None
                self._bar.bar_format = _NO_BAR
            more, self._done = done - self._done, done
            self.tick()
            self._bar.set_description_str(self._line(), refresh=False)
            self._bar.update(more)

    def tick(self) -> None:
        """Look at the note, and log a line, if that was half a minute ago."""
        now = time.monotonic()
        if self._hidden or now - self._told < TELL_EVERY_SECONDS:
            return
        self._told = now
        self._said = self._note(self._done) if self._note else ""
        if self._logs:
            _LOGGER.info("%s", self._line())

    def _beat(self) -> None:
        """Show the time as it passes, also while no unit ends."""
        while not self._ended.wait(_PULSE_SECONDS):
            with self._lock:
                self.tick()
                self._bar.set_description_str(self._line())

    def _line(self) -> str:
        if not self._unit:
            state = f"for {duration(self._pace.seconds)}"
        elif self._pace.total is None:
            state = f"{self._done:,} {self._unit}"
        else:
            state = f"{self._done:,} of {self._pace.total:,} {self._unit}"
        return f"{self.title}: " + ", ".join(
            filter(None, (state, self._pace.said(self._done), self._said))
        )


class Steps:
    """The steps of a command, of which each says its place among all of them.

    Attributes:
        total: the number of steps that are announced.
        number: the number of steps that have begun.
        bar: whether each shows a bar.
    """

    def __init__(self, total: int, *, bar: bool) -> None:
        """Announce `total` steps."""
        self.total, self.number, self.bar = total, 0, bar
        self._begun, self._hidden = time.monotonic(), within.get()

    def next(self, name: str) -> str:
        """Return the title of the next step, such as `step 2 of 5: encoding`."""
        self.number += 1
        return self.titled(name)

    def titled(self, name: str) -> str:
        """Return the title of the step that has begun last, under this name."""
        return f"step {self.number} of {self.total}: {name}"

    def again(self, number: int) -> None:
        """Go back to the point where `number` steps had begun: later steps are done once more."""
        self.number = number

    def step(
        self,
        name: str,
        total: int | None = None,
        unit: str = "",
        *,
        done: int = 0,
        note: Callable[[int], str] | None = None,
    ) -> Display:
        """Begin the next step, see `Display`."""
        return Display(
            self.next(name),
            total,
            unit,
            bar=self.bar,
            done=done,
            note=note,
            begun=self._begun,
            hidden=self._hidden,
        )

    def each(self, results: Iterable[_T], total: int, name: str, unit: str) -> Iterator[_T]:
        """Yield the results of the next step's units, one each, and show how many are done."""
        with self.step(name, total, unit) as display:
            for one in results:
                yield one
                display.advance()

    def expect(self, seconds: float, of: str) -> None:
        """Say how long all steps may take, by a timed piece of this."""
        if not self._hidden:
            _LOGGER.info("this will take about %s, by the time of %s", duration(seconds), of)
