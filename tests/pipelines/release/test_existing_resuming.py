"""Tries of a job: how many there are, of which failures, and what each finds of those before."""

from __future__ import annotations

import logging

import pytest

from quietcorpus.pipelines.release.existing import TRIES, persistently
from quietcorpus.pipelines.terminal.progress import Steps
from quietcorpus.transforms.errors import (
    InputError,
    NoisyOutcome,
    StageError,
    StoreUnavailable,
    Unavailable,
    WorkerLost,
)


class Attempts:
    """Attempts that fail so many times, each after a step."""

    def __init__(self, failure: Exception, failures: int) -> None:
        self.numbers: list[int] = []
        self.steps = Steps(3, bar=False)
        self.steps.next("before")
        self._failure, self._failures = failure, failures

    def __call__(self, number: int) -> str:
        self.numbers.append(number)
        self.last = self.steps.next("a pass")
        if len(self.numbers) <= self._failures:
            raise self._failure
        return "made"


@pytest.mark.parametrize("failure", [WorkerLost("x"), StoreUnavailable("x")])
def test_what_may_pass_is_tried_again(failure: Exception, caplog: pytest.LogCaptureFixture) -> None:
    # Kills: a run that a lost worker or a store ends; steps that are counted on with every try; and
    # a repetition of which nobody hears.
    attempts = Attempts(failure, TRIES - 1)
    with caplog.at_level(logging.WARNING, "quietcorpus"):
        assert persistently(attempts, attempts.steps) == "made"
    assert attempts.numbers == list(range(TRIES))
    assert attempts.last == "step 2 of 3: a pass"
    assert [line.split(", ")[1] for line in caplog.messages] == [
        "try 2 of 4",
        "try 3 of 4",
        "try 4 of 4",
    ]


def test_there_is_a_last_try() -> None:
    # Kills: a job that is run for ever, or on a cluster, which repeats by itself.
    for tries in (TRIES, 1):
        attempts = Attempts(WorkerLost("x"), TRIES)
        with pytest.raises(WorkerLost):
            persistently(attempts, attempts.steps, tries)
        assert attempts.numbers == list(range(tries))


@pytest.mark.parametrize("kind", [InputError, NoisyOutcome, StageError, Unavailable, ValueError])
def test_no_other_failure_is_tried_again(kind: type[Exception]) -> None:
    # Kills: a noisy outcome that is drawn twice; a refusal that takes four times as long.
    attempts = Attempts(kind("x"), 1)
    with pytest.raises(kind):
        persistently(attempts, attempts.steps)
    assert attempts.numbers == [0]
