"""How a pipeline tells its launcher what it wrote: one small file in the staging area."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import apache_beam as beam
import orjson

from pipelines.storage import read_bytes, write_bytes
from transforms.documents import Reject
from transforms.errors import redacted
from transforms.shards import Tally, Written

_NAME = "manifest.json"


class WriteManifest(beam.PTransform):
    """Gathers `Written` files and `Tally` values into the manifest."""

    def __init__(self, staging: str) -> None:
        super().__init__()
        self._staging = staging

    def expand(self, parts: tuple[beam.PCollection, ...]) -> beam.PCollection:
        return (
            parts
            | beam.Flatten()
            | beam.CombineGlobally(beam.combiners.ToListCombineFn()).without_defaults()
            | beam.ParDo(_Write(f"{self._staging}/{_NAME}"))
        )


class _Write(beam.DoFn):
    def __init__(self, uri: str) -> None:
        self._uri = uri

    @redacted
    def process(self, entries: list[Written | Tally]) -> Iterator[str]:
        files = sorted((e for e in entries if isinstance(e, Written)), key=lambda e: e.path)
        tally = sum((e for e in entries if isinstance(e, Tally)), start=Tally())
        write_bytes(
            self._uri,
            orjson.dumps({"files": [asdict(f) for f in files], "tally": asdict(tally)}),
        )
        yield self._uri


def read_manifest(staging: str) -> tuple[list[Written], Tally]:
    """What the pipeline wrote, and how many records it read."""
    content = orjson.loads(read_bytes(f"{staging}/{_NAME}"))
    tally = content["tally"]
    first = Reject(**tally.pop("first")) if tally["first"] else tally.pop("first")
    files = [Written(**file) for file in content["files"]]
    return files, Tally(**tally, first=first)
