"""The list of a run's files, in its staging area: it tells the launcher what a pipeline wrote."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import chain
from typing import Any

import apache_beam as beam
import orjson
from apache_beam.transforms.window import GlobalWindows

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.errors import StageError, client_errors, redacted
from quietcorpus.transforms.sealed import seal_pieces, unseal, wide
from quietcorpus.transforms.shards import Tally, Written
from quietcorpus.transforms.vocabulary import KeySource

from ..storage.files import read_bytes, write_bytes

_NAME = "manifest.json"
_FILE, _TALLY = b"file ", b"tally "
_AT_ONCE = 500


class WriteRunFiles(beam.PTransform):
    """A transform that gathers `Written` files and `Tally` values into the list.

    The list is sealed, because the noisy size of a private vocabulary is not released yet. Its
    length tells nothing of a count.
    """

    def __init__(self, staging: str, key: KeySource) -> None:
        super().__init__()
        self._staging = staging
        self._key = key

    def expand(self, parts: tuple[beam.PCollection, ...]) -> beam.PCollection:
        entries = [
            part | f"entries {number}" >> beam.ParDo(_Pack()).with_output_types(bytes)
            for number, part in enumerate(parts)
        ]
        return (
            entries
            | beam.Flatten()
            | beam.CombineGlobally(beam.combiners.ToListCombineFn()).without_defaults()
            | beam.ParDo(_Write(f"{self._staging}/{_NAME}", self._key))
        )


def _entry(found: Written | Tally) -> bytes:
    """Return a file or a tally as JSON: as objects, all of them would take ten times the memory."""
    if isinstance(found, Tally):
        return _TALLY + orjson.dumps(found.encoded())
    return _FILE + orjson.dumps(asdict(found) | {"rows": wide(found.rows)})


class _Pack(beam.DoFn):
    """Compresses entries, a few at a time: Beam holds each one several times between two steps."""

    def start_bundle(self) -> None:
        self._entries: list[bytes] = []

    @redacted
    def process(self, found: Written | Tally) -> Iterator[bytes]:
        self._entries.append(_entry(found))
        if len(self._entries) == _AT_ONCE:
            yield self._packed()

    @redacted
    def finish_bundle(self) -> Iterator[Any]:
        if self._entries:
            yield GlobalWindows.windowed_value(self._packed())

    def _packed(self) -> bytes:
        packed = zlib.compress(b"\n".join(self._entries))
        self._entries.clear()
        return packed


def _unpacked(packed: Iterable[bytes], sort: bytes) -> Iterator[bytes]:
    """Yield the entries of a sort as JSON."""
    for some in packed:
        for entry in zlib.decompress(some).split(b"\n"):
            if entry.startswith(sort):
                yield entry.removeprefix(sort)


class _Write(beam.DoFn):
    def __init__(self, uri: str, key: KeySource) -> None:
        self._uri = uri
        self._key = key

    @redacted
    def process(self, packed: list[bytes]) -> Iterator[str]:
        told = (Tally.decoded(orjson.loads(one)) for one in _unpacked(packed, _TALLY))
        tally = orjson.dumps(Tally.total(told).encoded())
        files = (b"\n" + file for file in _unpacked(packed, _FILE))
        # Line by line: all of them, too, would be held beside what they become.
        write_bytes(self._uri, seal_pieces(chain([tally], files), self._uri, self._key()))
        yield self._uri


def read_run_files(staging: str, key: ReleaseKey) -> tuple[list[Written], Tally]:
    """Read the list: the files that the pipeline wrote, by path, and the tally of what it read.

    Raises StageError if there is none.
    """
    uri = f"{staging}/{_NAME}"
    tally, *files = unseal(_content(uri), uri, key).split(b"\n")
    # One by one, or dictionaries of all of them would be held beside the files.
    written = (_file(orjson.loads(file)) for file in files)
    return sorted(written, key=lambda file: file.path), Tally.decoded(orjson.loads(tally))


def _content(uri: str) -> bytes:
    lost = (
        "is missing: the engine lost every part of the corpus, or the step that lists what it "
        "wrote; run again, on another engine if that repeats"
    )
    with client_errors(uri, lost, StageError):
        return read_bytes(uri)


def _file(fields: dict[str, Any]) -> Written:
    return Written(**fields | {"rows": int(fields["rows"])})
