"""The log on a terminal, as text and as JSON."""

from __future__ import annotations

import json
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from quietcorpus.pipelines.terminal import logs
from quietcorpus.pipelines.terminal.logs import guarded
from quietcorpus.transforms.errors import InputError

SECRET = "the patient's name"


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = [*root.handlers], root.level
    monkeypatch.setattr(logs, "_about", {})
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    yield
    logging.captureWarnings(False)
    root.handlers[:], root.level = handlers, level


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(("level", "told"), [("INFO", 0), ("DEBUG", 1)])
def test_a_warning_of_pythons_is_no_bare_line(
    capsys: pytest.CaptureFixture[str], level: str, told: int
) -> None:
    # Kills: lines among those in JSON that no collector of logs reads, and that may quote a value.
    logs.configure_logging(level, "json")
    with warnings.catch_warnings():  # pytest's own handling comes before
        logging.captureWarnings(False)
        logging.captureWarnings(True)
        warnings.simplefilter("always")
        warnings.warn(SECRET, DeprecationWarning, stacklevel=1)
    found = [json.loads(line) for line in lines(capsys)]
    assert [SECRET in one["event"] for one in found] == [True] * told


def test_json_lines_name_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    # Kills: a line of another logger's; fields of an earlier step; local time; a traceback, or a
    # message of several lines, that breaks the line.
    logs.configure_logging("INFO", "json")
    logs.about(release="weekly", run="ab12")
    logs.about(stage="preparing")
    logs.about(stage="releasing")
    logging.getLogger("apache_beam").error(SECRET)
    try:
        raise ValueError(SECRET)
    except ValueError:
        logging.getLogger("quietcorpus.release").warning("not\n%s", "protected", exc_info=True)
    (line,) = lines(capsys)
    found = json.loads(line)
    time = datetime.fromisoformat(found.pop("time"))
    assert (time.utcoffset(), datetime.now(UTC) - time < timedelta(minutes=1)) == (
        timedelta(0),
        True,
    )
    assert found == {
        "level": "WARNING",
        "event": "not\nprotected",
        "release": "weekly",
        "run": "ab12",
        "stage": "releasing",
    }


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_failure_is_a_line_of_the_log(
    capsys: pytest.CaptureFixture[str], form: logs.Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a line that is no JSON among those that are; a failure in the log twice.
    monkeypatch.setattr(sys, "exit", lambda code: None)

    def fail() -> None:
        raise InputError("spec: is empty")

    logs.configure_logging("INFO", form)
    guarded(fail)
    (line,) = lines(capsys)
    if form == "text":
        assert line == "quietcorpus: error: spec: is empty"
    else:
        found = json.loads(line)
        assert (found["level"], found["event"]) == ("ERROR", "spec: is empty")


def test_a_package_that_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    # Kills: "unexpected ModuleNotFoundError", by which nobody knows what to install.
    def fail() -> None:
        raise ModuleNotFoundError(SECRET, name="flint")

    with pytest.raises(SystemExit) as ended:
        guarded(fail)
    assert ended.value.code == 1
    (line,) = lines(capsys)
    assert line.startswith("quietcorpus: error: python-flint is not installed; install ")
    assert SECRET not in line
