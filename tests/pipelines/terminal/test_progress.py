"""The progress of a run: a bar, or lines of the log."""

from __future__ import annotations

import logging

import pytest

from quietcorpus.pipelines.terminal import progress


def test_without_a_bar_the_log_tells(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    # Kills: a bar that nobody asked for, a line for every step, a rate that counts earlier steps.
    clock = iter([0.0, 1.0, 20.0, 21.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with (
        caplog.at_level(logging.INFO, logger="quietcorpus"),
        progress.Display(
            "waiting", 9, "steps", bar=False, done=2, note=lambda done: f"note {done}"
        ) as display,
    ):
        display.advance(1)
        display.show(6, "working")
        display.advance(1)
    assert caplog.messages == ["working: 6 of 9 steps, 0.2/s, note 6"]
    assert capfd.readouterr() == ("", "")


def test_a_bar_is_shown_to_who_asks_for_one(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    # Where there is no terminal, too: a notebook is none. Kills: `isatty` asked down here.
    with caplog.at_level(logging.INFO, logger="quietcorpus"):
        assert list(progress.shown(iter("ab"), 2, "working", "draws", bar=True)) == ["a", "b"]
    out, err = capfd.readouterr()
    assert out == ""
    assert "working" in err
    assert "0/2" in err
    assert caplog.messages == []


def test_counters_are_added_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Kills: a bundle's counters added at each report, an earlier stage's name shown.
    monkeypatch.setattr(progress, "_TELL_EVERY_SECONDS", 0.0)
    told: list[progress.Numbers] = []
    with (
        caplog.at_level(logging.INFO, logger="quietcorpus"),
        progress.Observer(30, 2, bar=False, on_progress=told.append) as observer,
    ):
        observer.add({"histogram/documents": 10, "histogram/tokens": 70})
        for documents in (5, 20):
            observer.report("one", {"release/documents": documents, "release/tokens": 1000})
    assert [line.split(",", 1)[0] for line in caplog.messages] == [
        "counting terms: 10 of 60 documents",
        "releasing: 15 of 60 documents",
        "releasing: 30 of 60 documents",
    ]
    assert caplog.messages[-1].endswith("1,070 tokens")
    assert told == [{"documents": 10}, {"documents": 15}, {"documents": 30}]
