"""The log on a terminal. Imported before Beam, which logs while it is imported."""

from __future__ import annotations

import logging
import threading


def configure_logging(level: str) -> None:
    """Send log lines to standard error; Beam's own only at DEBUG, since it logs failures twice."""
    logging.basicConfig(level=level, format="%(levelname)s %(message)s", force=True)
    if level != "DEBUG":
        # A thread of Beam's that fails passes its error to the main thread, which reports it.
        threading.excepthook = _unseen
        for handler in logging.getLogger().handlers:
            handler.addFilter(_is_ours)


def _unseen(_: threading.ExceptHookArgs) -> None:
    """Print nothing: a traceback may quote private text."""


def _is_ours(record: logging.LogRecord) -> bool:
    return record.name.startswith("quietcorpus")
