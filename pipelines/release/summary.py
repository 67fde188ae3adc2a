"""The summary of a run, for the machines that schedule it: how it ended, and what it cost.

It holds nothing of the corpus but the numbers of records, and no message of an error.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Literal

from pydantic import Field

from quietcorpus.pipelines.card.model import Card, LedgerEntry
from quietcorpus.pipelines.card.parameters import Parameters, Part
from quietcorpus.pipelines.engine.engine import GraphIsValid
from quietcorpus.pipelines.spec.spec import Spec
from quietcorpus.pipelines.storage import files as storage
from quietcorpus.pipelines.storage.output import Output
from quietcorpus.pipelines.storage.places import inside
from quietcorpus.pipelines.terminal.failures import exit_code
from quietcorpus.pipelines.terminal.logs import about
from quietcorpus.transforms.errors import (
    CapReached,
    ClaimHeld,
    DeadlinePassed,
    InputError,
    NoisyOutcome,
    StoreUnavailable,
    Unavailable,
)
from quietcorpus.transforms.outages import outage

_LOGGER = logging.getLogger("quietcorpus.release")
_PATIENCE_SECONDS = 30.0

Outcome = Literal["published", "existed", "valid", "refused", "failed", "interrupted", "unknown"]
Reason = Literal[
    "bad_spec",
    "bad_input",
    "cap_reached",
    "noisy_outcome",
    "claimed",
    "deadline",
    "store_unavailable",
    "unavailable",
    "failure",
    "interrupted",
]
Step = Literal["preparing", "comparing ids", "releasing", "checking", "publishing"]
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


class RunSummary(Part):
    """The end of one run of a release."""

    schema_version: Literal[1] = 1
    run: str = Field(description="an id of this run alone")
    release: str | None = Field(None, description="its id; absent if the spec cannot be read")
    outcome: Outcome = Field(
        description="existed: complete already, and nothing was done; valid: a dry run; unknown: "
        "it ended while it published, and the release may exist"
    )
    exit_code: int = Field(description="of the command")
    reason: Reason | None = Field(None, description="absent if the exit code is 0")
    began: str = Field(description="UTC, ISO 8601")
    seconds: float = Field(ge=0)
    steps: dict[Step, float] = Field(description="seconds of each step that the run came to")
    documents: int | None = Field(None, ge=0, description="of the release")
    rejects: int | None = Field(None, ge=0, description="records that could not be read")
    cost: Parameters | None = Field(None, description="of the release, in all")
    ledger: LedgerEntry | None = Field(None, description="its entry there")
    card_sha256: str | None = Field(
        None, pattern=r"^[0-9a-f]{64}$", description="of the release's release.json"
    )

    def to_json(self) -> str:
        """Return the text of the summary."""
        return json.dumps(self.model_dump(mode="json", exclude_none=True), indent=2) + "\n"


class Recorder:
    """The facts about a run, noted while it goes on."""

    def __init__(self, place: str | None) -> None:
        """Take the place of the summary; None writes none."""
        self._place = place
        self._run = uuid.uuid4().hex
        about(run=self._run)
        self._began, self._clock = datetime.now(UTC), time.monotonic()
        self._spec: Spec | None = None
        self._card: Card | None = None
        self._card_sha256: str | None = None
        self._outcome: Outcome = "failed"
        self._steps: dict[Step, float] = {}
        self._step: Step | None = None
        self.step("preparing")

    def step(self, name: Step) -> None:
        """Note that the step before is over, and which one begins."""
        self._end_step()
        self._step, self._step_clock = name, time.monotonic()
        about(stage=name)

    def _end_step(self) -> None:
        if self._step is not None:
            self._steps[self._step] = round(time.monotonic() - self._step_clock, 3)

    def describe(self, spec: Spec) -> None:
        """Note the spec; raises InputError if the summary would lie in the release."""
        self._spec = spec
        about(release=spec.release)
        if self._place is not None and inside(self._place, spec.output):
            place, self._place = self._place, None
            raise InputError(f"summary: {place} lies in the output, {spec.output}; name another")

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

    def write(self, error: BaseException | None) -> None:
        """Write the summary of a run that ends now, by an error or without one.

        A run ends as it does whether or not its summary can be written.
        """
        if self._place is None:
            return
        text = self._summary(error).to_json()
        written = threading.Event()

        def write() -> None:
            try:
                storage.write_whole(str(self._place), text.encode())
                written.set()
            except Exception:  # every object store's client has its own
                _LOGGER.debug("the summary was not written")

        # In the background, because a store that is out of order may be what ended the run.
        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        thread.join(_PATIENCE_SECONDS)
        if not written.is_set():
            _LOGGER.warning("summary: %s could not be written", self._place)

    def _summary(self, error: BaseException | None) -> RunSummary:
        self._end_step()
        failed = error is not None and not isinstance(error, GraphIsValid)
        card = self._card
        counts = card.counts if card else None
        return RunSummary(
            run=self._run,
            release=self._spec.release if self._spec else None,
            outcome=self._ended(error),
            exit_code=exit_code(error) if error is not None and failed else 0,
            reason=self._reason(error) if error is not None and failed else None,
            began=self._began.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - self._clock, 3),
            steps=self._steps,
            documents=counts.documents if counts else None,
            rejects=counts.rejected if counts else None,
            cost=card.budget.total if card else None,
            ledger=card.ledger if card else None,
            card_sha256=self._card_sha256,
        )

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


@contextmanager
def recorded(place: str | None) -> Iterator[Recorder]:
    """Write a summary to a place, if there is one, however the run within the context ends."""
    recorder = Recorder(place)
    try:
        yield recorder
    except BaseException as error:
        recorder.write(error)
        raise
    recorder.write(None)


def schema() -> str:
    """Return the JSON Schema of a summary."""
    content = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(content | RunSummary.model_json_schema(), indent=2) + "\n"
