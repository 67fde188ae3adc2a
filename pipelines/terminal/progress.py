"""Progress of a run: a bar on a terminal, plain log lines elsewhere and for clusters."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from apache_beam.io.filesystems import FileSystems
from tqdm import tqdm

_LOG_EVERY_SECONDS = 10.0
_LOOK_EVERY_SECONDS = 30.0
_LOGGER = logging.getLogger("quietcorpus.progress")
# Latest stage first: the first here that has begun is shown.
_STAGES = {
    "release": "releasing",
    "gathering": "gathering users",
    "histogram": "counting terms",
    "vocabulary": "counting words",
}


class Observer:
    """A display of the sums of the counters that bundles report.

    `passes` is the number of times that every document is read; `documents` is the number of
    documents, if known.
    """

    def __init__(self, documents: int | None, passes: int, *, quiet: bool) -> None:
        self._totals: dict[str, int] = defaultdict(int)
        self._bundles: dict[str, dict[str, int]] = defaultdict(dict)
        self._lock = threading.Lock()
        self._begun = self._logged = time.monotonic()
        self._bar: tqdm | None = None
        total = documents * passes if documents is not None else None
        if not quiet and sys.stderr.isatty():
            self._bar = tqdm(total=total, unit=" documents", unit_scale=True, file=sys.stderr)
            self._bar.set_description("starting")

    def add(self, grown: Mapping[str, int]) -> None:
        """Add the increases of this process's counters."""
        with self._lock:
            for name, size in grown.items():
                self._totals[name] += size
            self._show()

    def report(self, bundle: str, counters: dict[str, int]) -> None:
        """Set the counters of a bundle in some worker process to these values."""
        with self._lock:
            for name, value in counters.items():
                self._totals[name] += value - self._bundles[bundle].get(name, 0)
            self._bundles[bundle].update(counters)
            self._show()

    def _show(self) -> None:
        read = sum(v for name, v in self._totals.items() if name.endswith("/documents"))
        tokens = sum(v for name, v in self._totals.items() if name.endswith("/tokens"))
        stage = next((s for s in _STAGES if self._totals[f"{s}/documents"]), "starting")
        if self._bar is not None:
            self._bar.set_description(_STAGES.get(stage, stage), refresh=False)
            self._bar.set_postfix_str(f"{tokens:,} tokens", refresh=False)
            self._bar.update(read - self._bar.n)
            return
        now = time.monotonic()
        if now - self._logged >= _LOG_EVERY_SECONDS:
            self._logged = now
            _LOGGER.info(
                "%s: %d documents, %d tokens, %.0f documents/s",
                _STAGES.get(stage, stage),
                read,
                tokens,
                read / (now - self._begun),
            )

    def close(self, *, done: bool) -> None:
        """Close the bar, full if the run is done: a worker's last poll may lag behind its end."""
        if self._bar is not None:
            if done and self._bar.total is not None:
                self._bar.update(self._bar.total - self._bar.n)
            self._bar.close()


@contextmanager
def shards_counted(staging: str, shards: int) -> Iterator[None]:
    """Log how many shards are written: a cluster reports nothing else until its job is done."""
    done = threading.Event()

    def count() -> None:
        while not done.wait(_LOOK_EVERY_SECONDS):
            with suppress(Exception):  # a store that fails now will be asked again
                (found,) = FileSystems.match([f"{staging}/data/part-*"])
                # A shard that was tried twice has two files.
                paths = {metadata.path.rpartition(".")[0] for metadata in found.metadata_list}
                _LOGGER.info("%d of %d shards are written", len(paths), shards)

    threading.Thread(target=count, daemon=True).start()
    try:
        yield
    finally:
        done.set()
