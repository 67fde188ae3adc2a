"""The time and size of a release, from releases of a few generated documents.

The documents are made of public words, and of no text of the corpus; only the sizes of its files
and their numbers of documents are looked at. They are released by the same kind, into a temporary
folder that is deleted, at growing numbers: the cost of a document is the slope over these numbers.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.errors import InputError, StageError
from quietcorpus.transforms.reading.documents import Plan
from quietcorpus.transforms.reading.parquet_files import text_bytes
from quietcorpus.transforms.reading.sources import plan
from quietcorpus.transforms.shards import make_shards

from ..environment.keys import WorkerKey, master_key
from ..jobs.job import Job
from ..jobs.kind import Kind
from ..runners.engine import Engine
from ..schema.spec import Spec
from ..terminal.observer import Observer

_GROWTH = 8
_ENOUGH = 2.0  # times as long as the first run: most of the time is then the documents'
_MOST_SECONDS = 5.0
_MOST_BYTES = 1 << 16  # of a document; a sample of longer ones would not be small
_DEFAULT_BYTES = 1_000  # of a document, where files do not state how many they hold
_SENTENCE_WORDS = 12


@dataclass(frozen=True)
class Sample:
    """The time and size of documents, by a sample, in one process on this machine.

    Attributes:
        document_bytes: the size of a generated document.
        exact: whether the documents took most of the time; else `seconds` is the most they took.
        fixed_seconds: the time that a release takes besides its documents'.
        seconds: the time of a document.
        fixed_bytes: the size of a release without its documents.
        bytes: the size of a document in the release.
    """

    document_bytes: int
    exact: bool
    fixed_seconds: float
    seconds: float
    fixed_bytes: float
    bytes: float

    def of(self, documents: int) -> tuple[float, float]:
        """Return the seconds and the bytes of a release of this number of documents."""
        seconds = self.fixed_seconds + documents * self.seconds
        return seconds, self.fixed_bytes + documents * self.bytes


@dataclass(frozen=True)
class Unsampled:
    """The reason for which no sample is taken."""

    reason: str


@dataclass(frozen=True)
class _Run:
    """A release of some generated documents: its time in seconds, its size in bytes."""

    documents: int
    seconds: float
    bytes: int


def timed(spec: Spec, kind: Kind, planned: Plan, engine: Engine) -> Sample | Unsampled:
    """Release a few generated documents of the corpus's mean size; keep nothing of them."""
    words = kind.sample_words
    if not words:
        return Unsampled("generated text would not show it for this kind of release")
    size = _document_bytes(spec, planned)
    if size > _MOST_BYTES:
        return Unsampled("documents are too long for a small sample")
    try:
        return _measured(size, lambda documents: _run(spec, kind, words, size, documents, engine))
    except (InputError, StageError) as error:
        return Unsampled(f"a sample failed: {error}")


def _measured(size: int, run: Callable[[int], _Run]) -> Sample:
    """Release ever more documents, until these take most of the time, or it is used up."""
    cold = run(1)  # loads and compiles what later runs find
    begun = time.monotonic()
    first = run(1)
    last = run(_GROWTH)
    while not (enough := last.seconds >= _ENOUGH * first.seconds):
        more = _GROWTH * last.documents
        longer = (more - last.documents) * (last.seconds - first.seconds) / (last.documents - 1)
        if time.monotonic() - begun + last.seconds + longer > _MOST_SECONDS:
            break
        last = run(more)
    added = last.documents - first.documents
    seconds = (last.seconds - first.seconds) / added if enough else last.seconds / last.documents
    taken = (last.bytes - first.bytes) / added
    return Sample(
        document_bytes=size,
        exact=enough,
        fixed_seconds=cold.seconds,
        seconds=seconds,
        fixed_bytes=first.bytes - taken,
        bytes=taken,
    )


def _run(
    spec: Spec, kind: Kind, words: Sequence[str], size: int, documents: int, engine: Engine
) -> _Run:
    texts = _texts(words, size, documents)
    with tempfile.TemporaryDirectory() as folder, master_key(local=True) as master:
        source, staging = f"{folder}/sample.parquet", f"{folder}/staging"
        pq.write_table(pa.table({"text": texts}), source)
        given = spec.input.model_copy(update={"path": source, "text": "text", "id": None})
        alone = {"input": given.model_copy(update={"keep": ()}), "rejects": None, "ledger": None}
        sample = spec.model_copy(update=alone)
        planned = plan(sample.corpus)
        corpus = planned.corpus_digest(sample.corpus)
        key = ReleaseKey.derive(master, sample.release, corpus)
        shards = make_shards(planned.splits, key.stage("shards", 1))
        job = Job(
            sample, planned, shards, WorkerKey(sample.release, corpus, key.fingerprint), staging
        )
        begun = time.monotonic()
        engine.run(lambda pipeline: kind.build(pipeline, job), Observer(documents, job.steps))
        seconds = time.monotonic() - begun
        written = sum(path.stat().st_size for path in Path(staging).rglob("*") if path.is_file())
        return _Run(documents, seconds, written)


def _texts(words: Sequence[str], size: int, documents: int) -> list[str]:
    """Return documents of about `size` bytes, in sentences of public words."""
    length = sum(len(word.encode()) + 1 for word in words) / len(words)
    count = max(1, round(size / length))
    drawn = np.random.default_rng(1).integers(len(words), size=(documents, count))
    return [_text([words[number] for number in row]) for row in drawn]


def _text(words: Sequence[str]) -> str:
    starts = range(0, len(words), _SENTENCE_WORDS)
    return " ".join(f"{' '.join(words[at : at + _SENTENCE_WORDS]).capitalize()}." for at in starts)


def _document_bytes(spec: Spec, planned: Plan) -> int:
    """Return the mean size of a document, from the sizes that files state.

    Parquet alone states how many documents it holds, and the size of a column.
    """
    if not planned.documents:
        return _DEFAULT_BYTES
    files = sorted({split.uri for split in planned.splits})
    total = sum(text_bytes(uri, spec.input.text) for uri in files)
    return max(1, math.ceil(total / planned.documents))
