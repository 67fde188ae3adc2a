"""Small made-up corpora, put through a kind's own job, in which only the noise is left out.

What a user or a document changes in the outcome is what the noise must hide. Everything before the
noise is the release's own: reading, users' digests, clipping, sums over shards and over the corpus.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.pvalue import PBegin, PDone

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.reading.sources import plan
from quietcorpus.transforms.run_files import read_run_files
from quietcorpus.transforms.shards import Written, make_shards

from ..jobs.job import Job
from ..jobs.kind import Kind
from ..runners.engine import Engine
from ..schema.mechanism import MechanismSpec
from ..schema.spec import InputSpec, Spec
from ..terminal.progress import Observer, Steps
from .inputs import SOURCE

TEXT = "the text of an audit"
"""The column of texts."""
_FILES = 3
_ROWS_A_SPLIT = 4
_JOBS_AT_ONCE = 16
_USER = "mechanism.user"
_TYPES = pa.int64(), pa.large_string(), pa.float64()
"""Of the column of users, by file; strings have a point, as pandas writes a number."""
_LARGE = 12_345_678_901  # which float64 holds exactly, and Arrow writes with an exponent
_BUNDLES = ("--direct_running_mode=multi_threading", "--direct_num_workers=2")
"""Beam's options for a job in this process whose elements are divided into two bundles."""

Row = Mapping[str, str | None]
"""A document: its text and its other columns, by name."""
Found = TypeVar("Found")
_Sums = dict[bytes, int]

_HEARD: dict[str, _Sums] = {}
"""The exact sums that selections without noise were given, by the name of each."""


@dataclass(frozen=True)
class FixedKey:
    """A source of one key, for corpora whose users' random bits must not differ."""

    key: ReleaseKey

    def __call__(self) -> ReleaseKey:
        return self.key


def silent(mechanism: Any, of: Callable[..., Any]) -> Any:
    """Return the same mechanism, made by `of`: a class of it without what is not audited here."""
    given = {field.name: getattr(mechanism, field.name) for field in fields(mechanism)}
    return of(**given)


def all_of(name: str, terms: Sequence[bytes], sums: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Select every term, and keep the exact sums, which `heard` returns by this name."""
    _HEARD.setdefault(name, {}).update(zip(terms, sums, strict=True))
    return np.ones(len(terms), dtype=np.bool_)


def heard(name: str) -> _Sums:
    """Return the exact sums that the selection of a name was given, and forget them."""
    return _HEARD.pop(name, {})


def built(
    kinds: Sequence[Kind],
    mechanism: MechanismSpec,
    corpora: Sequence[Sequence[Row]],
    read: Callable[[Sequence[Written], ReleaseKey], Found],
) -> Iterator[Found]:
    """Run the job of each kind on its corpus, all under one key; yield what is read of its files.

    A corpus's documents are dealt to several files of several splits, in which numbers that name
    users have several types and spellings, and a job's elements to two bundles: the documents of
    one user are never together.
    """
    key = ReleaseKey.fresh()
    for start in range(0, len(corpora), _JOBS_AT_ONCE):
        with tempfile.TemporaryDirectory() as folder:
            jobs = [
                _job(mechanism, rows, f"{folder}/{number}", key)
                for number, rows in enumerate(corpora[start : start + _JOBS_AT_ONCE])
            ]
            own = list(zip(kinds[start:], jobs, strict=False))
            Engine(_BUNDLES, 1).run(partial(_build, own), Observer(0, Steps(1, bar=False)))
            yield from [read(read_run_files(job.staging, key)[0], key) for job in jobs]


class _Built(beam.PTransform):
    """A transform that adds a kind's whole job to a pipeline, under a separate label."""

    def __init__(self, kind: Kind, job: Job) -> None:
        super().__init__()
        self._kind = kind
        self._job = job

    def expand(self, begin: PBegin) -> PDone:
        self._kind.build(begin.pipeline, self._job)
        return PDone(begin.pipeline)


def _build(jobs: Sequence[tuple[Kind, Job]], pipeline: beam.Pipeline) -> None:
    for number, (kind, job) in enumerate(jobs):
        pipeline | f"corpus {number}" >> _Built(kind, job)


def _job(mechanism: MechanismSpec, rows: Sequence[Row], folder: str, key: ReleaseKey) -> Job:
    spec = Spec(
        release=SOURCE,
        input=InputSpec(path=f"{folder}-in/*.parquet", text=TEXT),
        output=f"{folder}-out",
        mechanism=mechanism,
    )
    _write(rows, f"{folder}-in", spec)
    planned = plan(spec.corpus)
    shards = make_shards(planned.splits, key.stage("shards", 1))
    return Job(spec, planned, shards, FixedKey(key), f"{folder}-staging")


def _write(rows: Sequence[Row], folder: str, spec: Spec) -> None:
    Path(folder).mkdir()
    others = {name: key for key, name in spec.mechanism.columns}
    for number in range(_FILES):
        own = rows[number::_FILES]
        columns = {TEXT: pa.array([row[TEXT] for row in own], pa.large_string())}
        for name, key in others.items():
            kind, values = pa.large_string(), [row.get(name) for row in own]
            if key == _USER:
                kind = _TYPES[number]
                point = ".0" if kind == pa.large_string() else ""
                values = [value and f"{value}{point}" for value in values]
            columns[name] = pa.array(values, pa.large_string()).cast(kind)
        pq.write_table(
            pa.table(columns), f"{folder}/{number}.parquet", row_group_size=_ROWS_A_SPLIT
        )


def user(number: int) -> str:
    """Return the name of a user, a number that its files' types would write in several ways."""
    return str(_LARGE + number)
