"""The list of a run's files, in its staging area: it tells the launcher what a pipeline wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

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


class WriteRunFiles(beam.PTransform):
    """A transform that gathers `Written` files and `Tally` values into the list.

    The list is sealed, because the noisy size of a private vocabulary is not released yet.
    """

    def __init__(self, staging: str, key: KeySource) -> None:
        super().__init__()
        self._staging = staging
        self._key = key

    def expand(self, parts: tuple[beam.PCollection, ...]) -> beam.PCollection:
        return (
            parts
            | beam.Flatten()
            | beam.CombineGlobally(beam.combiners.ToListCombineFn()).without_defaults()
            | beam.ParDo(_Write(f"{self._staging}/{_NAME}", self._key))
        )


class _Write(beam.DoFn):
    def __init__(self, uri: str, key: KeySource) -> None:
        self._uri = uri
        self._key = key

    @redacted
    def process(self, entries: list[Written | Tally]) -> Iterator[str]:
        files = sorted((e for e in entries if isinstance(e, Written)), key=lambda e: e.path)
        tally = Tally.total(e for e in entries if isinstance(e, Tally))
        content = orjson.dumps({"files": [asdict(f) for f in files], "tally": asdict(tally)})
        write_bytes(self._uri, seal(content, self._uri, self._key()))
        yield self._uri


def read_run_files(staging: str, key: ReleaseKey) -> tuple[list[Written], Tally]:
    """Read the list: the files that the pipeline wrote, and the tally of what it read."""
    uri = f"{staging}/{_NAME}"
    content = orjson.loads(unseal(read_bytes(uri), uri, key))
    tally = content["tally"]
    tally["first"] = Reject(**tally["first"]) if tally["first"] else None
    tally["parts"] = tuple((name, part) for name, part in tally["parts"])
    tally["copies"] = Copies(**tally["copies"])
    frequent = tally["frequent"]
    tally["frequent"] = FrequentCounts(frequent["words"], tuple(frequent["of_each"]))
    return [Written(**file) for file in content["files"]], Tally(**tally)
