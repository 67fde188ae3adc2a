"""The counters that every stage keeps, and the reports of how far workers are.

Reports of how far workers are, which they leave in the staging area for the launcher.

Beam's portable runners give the launcher no counters while a job runs, and repeat failed work in
silence. So each worker process keeps one small file there, with the parts of the corpus that it has
begun to read. Parts have numbers, so that the launcher recognises a part that is read twice, and
counts it once.

A report holds numbers alone. It is sealed, since the number of documents may be protected.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.metrics import Metrics

from quietcorpus.mechanisms.keystream import ReleaseKey

from .errors import StageError
from .outages import Requests
from .reading.documents import Corpus, Documents, Split
from .reading.sources import read
from .sealed import seal, unseal, wide

_EVERY_SECONDS = 10.0
_FEW_PARTS = 100
"""With more, a report is written no oftener than that: each time, it holds all of its parts."""
_FIELDS = ("begun", "documents", "rejected", "kept")


@dataclass(frozen=True)
class Reports:
    """The place of the reports of a run.

    Attributes:
        folder: where they lie.
        key: fetches the release key, under which they are sealed.
    """

    folder: str
    key: Callable[[], ReleaseKey]

    def begin(self, stage: str, part: int) -> None:
        """Report that this process begins to read a part of the corpus, from its beginning."""
        _report_of(self).begin(stage, part)

    def add(self, stage: str, part: int, sizes: Mapping[str, int]) -> None:
        """Count what was read of a part; report it now and then."""
        _report_of(self).add(stage, part, sizes)

    def end(self) -> None:
        """Report what this process has done so far."""
        _report_of(self).tell()


@dataclass(frozen=True)
class Work:
    """The work that the workers of a run have reported.

    Attributes:
        documents, rejected: the numbers of documents and of unreadable records, by stage. The ones
            of a part that was read twice are those of the reading that came further.
        repeated: how often a part was read again.
        requests: how many requests to stores were repeated.
        kept: the number of documents that an earlier try has released, which this try did not read
            again.
    """

    documents: Mapping[str, int]
    rejected: Mapping[str, int]
    repeated: int
    requests: int
    kept: int = 0


class Reader:
    """A reader of the reports of a run, which reads again only those that have changed."""

    def __init__(self, folder: str, key: ReleaseKey) -> None:
        self._folder, self._key = folder, key
        self._found: dict[str, tuple[object, dict[str, Any]]] = {}

    def work(self) -> Work:
        """Return what is reported so far; raises what the store raises."""
        (found,) = FileSystems.match([f"{self._folder}/*"])
        for metadata in found.metadata_list:
            state = metadata.size_in_bytes, metadata.last_updated_in_seconds
            if metadata.path not in self._found or self._found[metadata.path][0] != state:
                self._read(metadata.path, state)
        return _added([report for _, report in self._found.values()])

    def _read(self, uri: str, state: object) -> None:
        with FileSystems.open(uri, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
            content = stream.read()
        with suppress(StageError):  # on a disk, a worker may be writing it
            self._found[uri] = state, orjson.loads(unseal(content, uri, self._key))


reports_to: ContextVar[Reports | None] = ContextVar("reports", default=None)
"""Where the transforms that are made in this context report."""


@contextmanager
def reporting(reports: Reports | None) -> Iterator[None]:
    """Have the transforms that are made within the context report there."""
    token = reports_to.set(reports)
    try:
        yield
    finally:
        reports_to.reset(token)


class _Report:
    """The report of this process on its work for one run."""

    def __init__(self, reports: Reports) -> None:
        self._uri = f"{reports.folder}/{uuid.uuid4().hex}"
        self._key = reports.key
        self._parts: dict[tuple[str, int], dict[str, int]] = defaultdict(
            lambda: dict.fromkeys(_FIELDS, 0)
        )
        self._written, self._failed = 0.0, False
        self._lock = threading.Lock()  # bundles run in threads

    def begin(self, stage: str, part: int) -> None:
        with self._lock:
            found = self._parts[stage, part]
            found.update(begun=found["begun"] + 1, documents=0, rejected=0, kept=0)
        self.tell()

    def add(self, stage: str, part: int, sizes: Mapping[str, int]) -> None:
        with self._lock:
            found = self._parts[stage, part]
            for name in _FIELDS:
                found[name] += sizes.get(name, 0)
        self.write(_EVERY_SECONDS)

    def tell(self) -> None:
        """Write the report now, if that is no more work than a part of the corpus is."""
        self.write(0.0 if len(self._parts) <= _FEW_PARTS else _EVERY_SECONDS)

    def write(self, seconds: float) -> None:
        """Write the report, if the last one is at least `seconds` old."""
        with self._lock:
            if time.monotonic() - self._written >= seconds:
                self._write()

    def _write(self) -> None:
        """Write the report, unless that has failed before: a job does not wait for its reports."""
        if self._failed:
            return
        parts = [
            [stage, *map(wide, (part, *found.values()))]
            for (stage, part), found in self._parts.items()
        ]
        content = orjson.dumps({"parts": parts, "requests": wide(Requests.repeated)})
        try:
            sealed = seal(content, self._uri, self._key())
            with FileSystems.create(
                self._uri, compression_type=CompressionTypes.UNCOMPRESSED
            ) as stream:
                stream.write(sealed)
        except Exception:  # the work itself will say what is wrong with the store or the key
            self._failed = True
        self._written = time.monotonic()


_reports: dict[str, _Report] = {}
_making = threading.Lock()


def _report_of(reports: Reports) -> _Report:
    with _making:
        if reports.folder not in _reports:
            _reports[reports.folder] = _Report(reports)
        return _reports[reports.folder]


def _added(reports: list[dict[str, Any]]) -> Work:
    begun: dict[tuple[str, int], int] = defaultdict(int)
    documents: dict[tuple[str, int], int] = defaultdict(int)
    rejected: dict[tuple[str, int], int] = defaultdict(int)
    kept: dict[tuple[str, int], int] = defaultdict(int)
    requests = 0
    for report in reports:
        requests += int(report["requests"])
        for stage, *numbers in report["parts"]:
            part, times, read, refused, found = map(int, numbers)
            begun[stage, part] += times
            documents[stage, part] = max(documents[stage, part], read)
            rejected[stage, part] = max(rejected[stage, part], refused)
            kept[stage, part] = max(kept[stage, part], found)
    again = sum(max(0, times - 1) for times in begun.values())  # what is kept is never begun
    return Work(_by_stage(documents), _by_stage(rejected), again, requests, sum(kept.values()))


def _by_stage(numbers: Mapping[tuple[str, int], int]) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for (stage, _), number in numbers.items():
        found[stage] += number
    return dict(found)


_T = TypeVar("_T")
NAMESPACE = "quietcorpus"

Watcher = Callable[[Mapping[str, int]], None]
"""A callback that takes the increases of counters, by name."""

_watchers: list[Watcher] = []


class Progress:
    """The counters of one stage; numbers only, never content."""

    def __init__(self, stage: str) -> None:
        """Take the stage's name; it reports where transforms report that are made now."""
        self._stage, self._reports, self._part = stage, reports_to.get(), 0
        self._counters = {
            name: Metrics.counter(NAMESPACE, f"{stage}/{name}")
            for name in ("documents", "tokens", "rejected", "bytes", "kept")
        }

    def read(self, split: Split, corpus: Corpus) -> Iterator[Documents]:
        """Read the documents of a split; counts made meanwhile belong to that split."""
        return self.of(split, read(split, corpus))

    def of(self, split: Split, work: Iterable[_T]) -> Iterator[_T]:
        """Yield from the work on a split; counts made meanwhile belong to that split."""
        self._part = split.number
        if self._reports:
            self._reports.begin(self._stage, self._part)
        yield from work
        self.end()

    def end(self) -> None:
        """Report that some work is done, if reports are sent before the job ends."""
        if self._reports:
            self._reports.end()

    def count(self, documents: Documents, tokens: int) -> None:
        """Add one batch."""
        self._add(
            documents=len(documents.texts),
            tokens=tokens,
            rejected=len(documents.rejects),
            bytes=documents.texts.nbytes,
        )

    def count_rejects(self, documents: Documents) -> None:
        """Add a batch's rejects; its documents are counted in parts, which have no rejects."""
        self._add(rejected=len(documents.rejects))

    def count_kept(self, split: Split, documents: int) -> None:
        """Add documents that an earlier try has read; they are reported of this split."""
        self._part = split.number
        self._add(kept=documents)

    def _add(self, **sizes: int) -> None:
        for name, size in sizes.items():
            self._counters[name].inc(size)
        grown = {self._counters[name].metric_name.name: size for name, size in sizes.items()}
        for watcher in _watchers:
            watcher(grown)
        if self._reports:
            self._reports.add(self._stage, self._part, sizes)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Report this process's counters to `watcher`; the in-process engine reports no others."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)
