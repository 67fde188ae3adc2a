"""The log on a terminal. Imported before Beam, which logs while it is imported."""

from __future__ import annotations

import json
import logging
import sys
import threading
from datetime import UTC, datetime
from typing import Literal, TextIO

Format = Literal["text", "json"]

PROGRESS = "quietcorpus.progress"
"""The logger of lines about the progress of work."""
_TELLS_SETTINGS = ("openlineage", "opentelemetry")
"""Libraries that log a setting that they cannot parse, which may be a credential."""
_about: dict[str, str] = {}


def configure_logging(level: str, form: Format = "text", *, progress: bool = True) -> None:
    """Send log lines to standard error; Beam's own only at DEBUG, since it logs failures twice.

    Without `progress`, lines about the progress of work are left out.
    """
    logging.basicConfig(
        level=level, format="%(levelname)s %(message)s", force=True, handlers=[_AboveBars()]
    )
    for handler in logging.getLogger().handlers:
        if not progress:
            handler.addFilter(_is_no_progress)
        if form == "json":
            handler.setFormatter(_Json())
        handler.addFilter(_is_ours if level != "DEBUG" else _tells_no_setting)
    if level != "DEBUG":
        # A thread of Beam's that fails passes its error to the main thread, which reports it.
        threading.excepthook = _unseen


def about(**fields: str) -> None:
    """Set fields, such as the release's id, that each JSON line has from now on."""
    _about.update(fields)


def is_json() -> bool:
    """Return whether the log's lines are JSON."""
    return any(isinstance(one.formatter, _Json) for one in logging.getLogger().handlers)


class _AboveBars(logging.StreamHandler[TextIO]):
    """A handler whose lines do not run into a progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        bars = sys.modules.get("tqdm.std")  # not imported for this
        if bars is None or not bars.tqdm._instances:
            super().emit(record)
            return
        with bars.tqdm.external_write_mode(file=self.stream):
            super().emit(record)


class _Json(logging.Formatter):
    """A formatter that makes a JSON object of a record, without tracebacks: they may quote text."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": time, "level": record.levelname, "event": record.getMessage()}
        return json.dumps(line | _about)


def _unseen(_: threading.ExceptHookArgs) -> None:
    """Print nothing: a traceback may quote private text."""


def _is_ours(record: logging.LogRecord) -> bool:
    return record.name.startswith("quietcorpus")


def _is_no_progress(record: logging.LogRecord) -> bool:
    return record.name != PROGRESS


def _tells_no_setting(record: logging.LogRecord) -> bool:
    return not record.name.startswith(_TELLS_SETTINGS)
