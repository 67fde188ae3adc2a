"""The record of a run: what is noted while it goes on, and its summary once it has ended."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from quietcorpus.transforms.errors import (
    CapReached,
    ClaimHeld,
    DeadlinePassed,
    InputError,
    NoisyOutcome,
    StoreUnavailable,
    Unavailable,
)
from quietcorpus.transforms.outages import Requests, outage

from ..card.model import Card
from ..ledger.balances import Balance, balances
from ..runners.engine import GraphIsValid
from ..schema.spec import Spec
from ..storage import files as storage
from ..storage.output import Output
from ..storage.places import inside
from ..terminal.failures import exit_code
from ..terminal.logs import about
from ..terminal.observer import Numbers
from .listeners import Audience
from .summary import Outcome, Reason, RunSummary, Step

_LOGGER = logging.getLogger("quietcorpus.release")
_PATIENCE_SECONDS = 30.0
_T = TypeVar("_T")
_REASONS: tuple[tuple[type[BaseException], Reason], ...] = (  # the first that fits
    (CapReached, "cap_reached"),
    (NoisyOutcome, "noisy_outcome"),
    (InputError, "bad_input"),
    (ClaimHeld, "claimed"),
    (DeadlinePassed, "deadline"),
    (StoreUnavailable, "store_unavailable"),
    (Unavailable, "unavailable"),
    (KeyboardInterrupt, "interrupted"),
)
_IN_HASTE = ("deadline", "interrupted", "store_unavailable")
"""Reasons of a run that reads nothing more: it is to end now, or the ledger may not answer."""


class Recorder:
    """The facts about a run, noted while it goes on."""

    def __init__(self, place: str | None) -> None:
        """Take the place of the summary; None writes none."""
        self._place = place
        self._run = uuid.uuid4().hex
        about(run=self._run)
        self._began, self._clock = datetime.now(UTC), time.monotonic()
        self._repeated = Requests.repeated
        self._of_workers: dict[str, int] = {}
        self._audience = Audience()
        self._spec: Spec | None = None
        self._card: Card | None = None
        self._card_sha256: str | None = None
        self._outcome: Outcome = "failed"
        self._steps: dict[Step, float] = {}
        self._step: Step | None = None
        self.step("preparing")

    def gather(self) -> None:
        """Gather those who are to be told of the run, if the environment asks for any."""
        self._audience.gather(self._run)

    def step(self, name: Step) -> None:
        """Note that the step before is over, and which one begins."""
        self._end_step()
        self._step, self._step_clock = name, time.monotonic()
        about(stage=name)
        spec = self._spec
        if name == "releasing" and spec is not None and spec.ledger is not None:
            self._audience.reserved(partial(balances, spec.ledger.path, spec.release))

    def _end_step(self) -> None:
        if self._step is not None:
            self._steps[self._step] = round(time.monotonic() - self._step_clock, 3)

    def describe(self, spec: Spec) -> None:
        """Note the spec; raises InputError if the summary would lie in the release."""
        self._spec = spec
        about(release=spec.release)
        self._audience.began(spec)
        if self._place is not None and inside(self._place, spec.output):
            place, self._place = self._place, None
            raise InputError(f"summary: {place} lies in the output, {spec.output}; name another")

    def progress(self, numbers: Numbers) -> None:
        """Note the state of the job."""
        self._of_workers.update(numbers)
        self._audience.progressed(numbers)

    def publishing(self, on_publishing: Callable[[], None]) -> Callable[[], None]:
        """Return a function that notes that the release may exist from now on."""

        def noted() -> None:
            self.step("publishing")
            on_publishing()

        return noted

    def published(self, card: Card) -> None:
        """Note the card of a release that this run has published."""
        self._outcome, self._card = "published", card
        self._card_sha256 = hashlib.sha256(card.to_json().encode()).hexdigest()

    def existed(self, card: Card, output: str) -> None:
        """Note the card of a release that was complete before."""
        self._outcome, self._card = "existed", card
        self._card_sha256 = hashlib.sha256(storage.read_bytes(Output(output).card)).hexdigest()

    def end(self, error: BaseException | None) -> None:
        """Write the summary of a run that ends now, by an error or without one, and pass it on.

        A run ends as it does whether or not anybody can be told.
        """
        if self._place is None and not self._audience:
            return
        summary = self._summary(error)
        self._audience.ended(summary, self._card)
        if self._place is not None:
            self._write(self._place, summary.to_json())
        self._audience.dismiss()

    def _write(self, place: str, text: str) -> None:
        def write() -> bool:
            storage.write_whole(place, text.encode())
            return True

        if not _in_time(write):
            _LOGGER.warning("summary: %s could not be written", place)

    def _summary(self, error: BaseException | None) -> RunSummary:
        self._end_step()
        seconds = round(time.monotonic() - self._clock, 3)
        failed = error is not None and not isinstance(error, GraphIsValid)
        code = exit_code(error) if error is not None and failed else 0
        reason = self._reason(error) if error is not None and failed else None
        card = self._card
        counts = card.counts if card else None
        return RunSummary(
            run=self._run,
            release=self._spec.release if self._spec else None,
            outcome=self._ended(error),
            exit_code=code,
            reason=reason,
            began=self._began.isoformat(timespec="seconds"),
            seconds=seconds,
            steps=self._steps,
            documents=counts.documents if counts else None,
            rejects=counts.rejected if counts else None,
            retries=Requests.repeated - self._repeated + self._of_workers.get("requests", 0),
            repeated_parts=self._of_workers.get("repeated", 0),
            cost=card.budget.total if card else None,
            ledger=card.ledger if card else None,
            accounts=None if reason in _IN_HASTE else self._accounts(),
            card_sha256=self._card_sha256,
        )

    def _accounts(self) -> list[Balance] | None:
        spec = self._spec
        if spec is None or spec.ledger is None:
            return None
        place, release = spec.ledger.path, spec.release
        return _in_time(lambda: balances(place, release))

    def _ended(self, error: BaseException | None) -> Outcome:
        if error is None:
            return self._outcome
        if isinstance(error, GraphIsValid):
            return "valid"
        if self._step == "publishing":
            return "unknown"
        if isinstance(error, KeyboardInterrupt):
            return "interrupted"
        return "refused" if isinstance(error, InputError) else "failed"

    def _reason(self, error: BaseException) -> Reason:
        found = next((reason for kind, reason in _REASONS if isinstance(error, kind)), None)
        if found == "bad_input" and self._spec is None:
            return "bad_spec"
        if found is None and outage(error):
            return "store_unavailable"
        return found or "failure"


def _in_time(work: Callable[[], _T]) -> _T | None:
    """Return what some work on a store returns; None if it fails, or takes too long.

    It is done in the background, because a store that is out of order may be what ended the run.
    """
    done: list[_T] = []

    def run() -> None:
        try:
            done.append(work())
        except Exception as error:  # every object store's client has its own
            _LOGGER.debug("at the end of the run: %s", type(error).__name__)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(_PATIENCE_SECONDS)
    return done[0] if done else None


@contextmanager
def recorded(place: str | None) -> Iterator[Recorder]:
    """Write a summary to a place, if there is one, however the run within the context ends."""
    recorder = Recorder(place)
    try:
        recorder.gather()
        yield recorder
    except BaseException as error:
        recorder.end(error)
        raise
    recorder.end(None)
