"""Progress of a local run: a bar on a terminal, plain log lines elsewhere."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import defaultdict

from tqdm import tqdm

_LOG_EVERY_SECONDS = 10.0
_LOGGER = logging.getLogger("quietcorpus.progress")
_STAGES = {"vocabulary": "vocabulary", "histogram": "counting", "release": "releasing"}


class Observer:
    """Adds up the counters that bundles report, and shows them.

    `passes` is how often every document is read; `documents` how many there are, if known.
    """

    def __init__(self, documents: int | None, passes: int, *, quiet: bool) -> None:
        self._bundles: dict[str, dict[str, int]] = defaultdict(dict)
        self._lock = threading.Lock()
        self._begun = self._logged = time.monotonic()
        self._bar: tqdm | None = None
        total = documents * passes if documents is not None else None
        if not quiet and sys.stderr.isatty():
            self._bar = tqdm(total=total, unit=" documents", unit_scale=True, file=sys.stderr)

    def update(self, bundle: str, counters: dict[str, int]) -> None:
        """Take the latest counters of a bundle."""
        with self._lock:
            self._bundles[bundle].update(counters)
            totals: dict[str, int] = defaultdict(int)
            for counted in self._bundles.values():
                for name, value in counted.items():
                    totals[name] += value
            self._show(totals)

    def _show(self, totals: dict[str, int]) -> None:
        read = sum(v for name, v in totals.items() if name.endswith("/documents"))
        tokens = sum(v for name, v in totals.items() if name.endswith("/tokens"))
        stage = next(
            (text for name, text in reversed(_STAGES.items()) if f"{name}/documents" in totals),
            "starting",
        )
        if self._bar is not None:
            self._bar.set_description(stage, refresh=False)
            self._bar.set_postfix_str(f"{tokens:,} tokens", refresh=False)
            self._bar.update(max(0, read - self._bar.n))
            self._bar.refresh()
            return
        now = time.monotonic()
        if now - self._logged >= _LOG_EVERY_SECONDS:
            self._logged = now
            rate = read / (now - self._begun)
            _LOGGER.info(
                "%s: %d documents read, %d tokens, %.0f documents/s", stage, read, tokens, rate
            )

    def close(self) -> None:
        """Leave the terminal clean."""
        if self._bar is not None:
            if self._bar.total is not None and self._bar.n < self._bar.total:
                self._bar.update(self._bar.total - self._bar.n)
            self._bar.close()
