"""The progress of a command: a bar, or lines of the log."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator

import pytest
from machine import wait_until

from quietcorpus.pipelines.terminal import progress
from quietcorpus.pipelines.terminal.progress import (
    Display,
    Observer,
    Pace,
    Steps,
    duration,
    rate,
    table,
)


class Clock:
    """A clock that stands until it is moved."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="quietcorpus")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    monkeypatch.setattr(progress, "_PULSE_SECONDS", 3600.0)
    return made


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.01, "1 second"),
        (119.4, "119 seconds"),
        (120, "2 minutes"),
        (7199, "120 minutes"),
        (7200, "2 hours"),
        (2 * 86_400, "2 days"),
    ],
)
def test_times_are_in_the_largest_unit_of_which_there_are_two(seconds: float, said: str) -> None:
    # Kills: "1 minute" for 119 seconds, "0 seconds".
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("a_second", "said"),
    [
        (12_345.6, "12,346/s"),
        (100, "100/s"),
        (85.4, "85/s"),
        (1, "1/s"),
        (0.99, "59/min"),
        (1 / 60, "1/min"),
        (0.01, "36/h"),
        (0.0001, "0.36/h"),
    ],
)
def test_rates_are_one_or_more_where_they_can_be(a_second: float, said: str) -> None:
    # Kills: "0.0167/s".
    assert rate(a_second) == said


def test_a_line_is_written_every_half_minute_and_at_the_end(
    clock: Clock, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    # Kills: a bar that nobody asked for, a line for every unit, a rate that counts what was done
    # before, a time left that forgets it.
    steps = Steps(2, bar=False)
    with steps.step(
        "waiting", 1000, "files", done=100, note=lambda done: f"note {done}"
    ) as display:
        for seconds, files in ((29.9, 50), (0.1, 10), (1, 40), (28.9, 50), (0.2, 50)):
            clock.now += seconds
            display.advance(files)
    with steps.step("thinking") as display:
        clock.now += 30
        display.tick()
    assert caplog.messages == [
        "step 1 of 2: waiting: 160 of 1,000 files, 2/s, 7 minutes left, note 160",
        "step 1 of 2: waiting: 300 of 1,000 files, 3.3/s, 4 minutes left, note 300",
        "step 1 of 2: waiting: 300 files in 60 seconds",
        "step 2 of 2: thinking: for 30 seconds",
        "step 2 of 2: thinking: took 30 seconds",
    ]
    assert capfd.readouterr() == ("", "")


def test_a_pace_is_that_of_the_units(clock: Clock) -> None:
    # On a cluster, the last shards are written long after all was read. Kills: a pace that falls
    # while nothing is left to do.
    pace = Pace(1000)
    clock.now += 10
    assert pace.said(500) == "50/s, 10 seconds left"
    clock.now += 10
    assert pace.said(1000) == "50/s"
    clock.now += 80
    assert pace.said(1000) == "50/s"


def test_what_an_earlier_run_kept_has_no_pace(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    # Kills: a resumed run that is told to end in seconds, since it "made" in one what was kept.
    observer = Observer(1000, Steps(1, bar=False))
    with observer.shown():
        observer.add({"release/kept": 900})
        clock.now += 50
        observer.add({"release/documents": 50})
    assert "950 of 1,000 documents, 1/s, 50 seconds left" in caplog.text


def test_what_is_quick_says_nothing(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    # Kills: lines for work of a moment, and none for short steps of long work.
    steps = Steps(3, bar=False)
    for _ in range(3):
        with steps.step("trying", 4, "files") as display:
            clock.now += 2
            display.show(4)
    assert caplog.messages == ["step 3 of 3: trying: 4 files in 2 seconds"]


def test_time_passes_where_no_unit_ends(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Kills: silence for as long as one unit takes; a thread that goes on afterwards.
    monkeypatch.setattr(progress, "_PULSE_SECONDS", 0.01)
    monkeypatch.setattr(progress, "TELL_EVERY_SECONDS", 0.02)
    with Display("thinking", 3, "files", bar=False):
        wait_until(lambda: len(caplog.messages) >= 2, 60)
    assert set(caplog.messages) == {"thinking: 0 of 3 files"}
    said = len(caplog.messages)
    time.sleep(0.05)
    assert len(caplog.messages) == said


def test_a_step_that_fails_has_not_ended(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    # Kills: "1,000 files in 10 seconds" of a step that failed.
    def fail() -> None:
        with Display("trying", bar=False):
            clock.now += 10
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert caplog.messages == []


def test_what_a_step_consists_of_is_hidden(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    # A draw of an evaluation makes a release. Kills: steps within a step, and steps after one that
    # stay hidden.
    with Steps(2, bar=False).step("outside"):
        inner = Steps(1, bar=True)
        inner.expect(60, "nothing")
        with inner.step("within"):
            clock.now += 60
    with Display("after", bar=False):
        clock.now += 60
    assert caplog.messages == ["step 1 of 2: outside: took 60 seconds", "after: took 60 seconds"]


def test_a_bar_is_shown_to_who_asks_for_one(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    # Where there is no terminal, too: a notebook is none. Kills: `isatty` asked down here.
    steps = Steps(7, bar=True)

    def working() -> Iterator[str]:
        yield "a"
        yield "b"

    assert list(steps.each(working(), 2, "working", "draws")) == ["a", "b"]
    assert steps.number == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "step 1 of 7: working: 0 of 2 draws |" in err
    assert caplog.messages == []


def test_more_than_was_expected_is_told_without_a_total(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    # Kills: "5 of 4 trials".
    with Display("trying", 4, "trials", bar=False) as display:
        clock.now += 30
        display.show(5)
    assert caplog.messages == ["trying: 5 trials, 10/min", "trying: 5 trials in 30 seconds"]


def test_an_estimate_is_told(caplog: pytest.LogCaptureFixture) -> None:
    Steps(1, bar=False).expect(7200.0, "a few draws")
    assert caplog.messages == ["this will take about 2 hours, by the time of a few draws"]


def test_a_table_has_numbers_at_the_right_and_a_dash_for_none() -> None:
    # Kills: a column that is cut, text at the right, NaN, a lost column, spaces at the end.
    rows = [(0.5, "on", 1200, "", "best"), (math.nan, "other", None, "all", "")]
    assert list(table(("epsilon:g", "pool", "texts:,", "x:>", ""), rows)) == [
        "epsilon  pool   texts    x",
        "    0.5  on     1,200       best",
        "      -  other      -  all",
    ]
    assert list(table(("only", "a header"), [])) == ["only  a header"]
