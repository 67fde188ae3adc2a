"""The list of a run's files, in its staging area: it tells the launcher what a pipeline wrote."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import apache_beam as beam
import orjson

from quietcorpus.indexes.frequent_words import FrequentCounts
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.pipelines.storage.files import read_bytes, write_bytes
from quietcorpus.transforms.errors import redacted
from quietcorpus.transforms.reading.copies import Copies
from quietcorpus.transforms.reading.documents import Reject
from quietcorpus.transforms.sealed import seal, unseal
from quietcorpus.transforms.shards import Tally, Written
from quietcorpus.transforms.vocabulary import KeySource

_NAME = "manifest.json"
_FILE, _TALLY = b"file ", b"tally "


class WriteRunFiles(beam.PTransform):
    """A transform that gathers `Written` files and `Tally` values into the list.

    The list is sealed, because the noisy size of a private vocabulary is not released yet.
    """

    def __init__(self, staging: str, key: KeySource) -> None:
        super().__init__()
        self._staging = staging
        self._key = key

    def expand(self, parts: tuple[beam.PCollection, ...]) -> beam.PCollection:
        entries = [
            part | f"entries {number}" >> beam.Map(_entry).with_output_types(bytes)
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
    return (_FILE if isinstance(found, Written) else _TALLY) + orjson.dumps(asdict(found))


class _Write(beam.DoFn):
    def __init__(self, uri: str, key: KeySource) -> None:
        self._uri = uri
        self._key = key

    @redacted
    def process(self, entries: list[bytes]) -> Iterator[str]:
        files = [entry.removeprefix(_FILE) for entry in entries if entry.startswith(_FILE)]
        told = (entry.removeprefix(_TALLY) for entry in entries if entry.startswith(_TALLY))
        tally = orjson.dumps(asdict(Tally.total(_tally(orjson.loads(one)) for one in told)))
        content = b'{"files":[%b],"tally":%b}' % (b",".join(files), tally)
        write_bytes(self._uri, seal(content, self._uri, self._key()))
        yield self._uri


def read_run_files(staging: str, key: ReleaseKey) -> tuple[list[Written], Tally]:
    """Read the list: the files that the pipeline wrote, by path, and the tally of what it read."""
    uri = f"{staging}/{_NAME}"
    content = orjson.loads(unseal(read_bytes(uri), uri, key))
    files = sorted((Written(**file) for file in content["files"]), key=lambda file: file.path)
    return files, _tally(content["tally"])


def _tally(fields: dict[str, Any]) -> Tally:
    first, frequent = fields["first"], fields["frequent"]
    return Tally(
        **fields
        | {
            "first": Reject(**first) if first else None,
            "parts": tuple((sys.intern(name), part) for name, part in fields["parts"]),
            "copies": Copies(**fields["copies"]),
            "frequent": FrequentCounts(frequent["words"], tuple(frequent["of_each"])),
        }
    )
