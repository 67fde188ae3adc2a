"""Draws of a mechanism on the sampled documents: the release itself, and fresh ones like it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quietcorpus.transforms.errors import InputError, cut
from quietcorpus.transforms.privatizers.rows import Privatizer
from quietcorpus.transforms.reading.documents import Documents
from quietcorpus.transforms.reading.spelling import as_text

from ..card.model import Card
from ..storage import files as storage
from .corpus import Columns, Sample, Strings, strings
from .definition import Stage


@dataclass(frozen=True)
class Bins:
    """A compression map, and what each stage of the release that has it cost.

    Attributes:
        of: each term's bin, int32 (V,).
        size: the number of bins.
        stages: of the release.
    """

    of: npt.NDArray[np.int32]
    size: int
    stages: Sequence[Stage]


@dataclass(frozen=True)
class Draw:
    """The released rows of one draw.

    Attributes:
        rows: the kind's columns, n rows.
        placed: whether row i belongs to the sample's document i; otherwise its document is unknown.
        labels: (n,), where they are known.
        law: the attacker's knowledge of the mechanism, where it is not the release's own.
    """

    rows: pa.Table
    placed: bool
    labels: Strings | None
    law: Any = None


def drawn(
    privatizer: Privatizer, sample: Sample, numbers: npt.NDArray[np.int64] | None = None
) -> Draw:
    """Draw fresh rows for all sampled documents, or those of some numbers, in their order."""
    documents = sample.documents if numbers is None else _some(sample.documents, numbers)
    parts = documents.parts(privatizer.documents_at_once)
    rows = pa.concat_tables([privatizer.release(part).rows for part in parts])
    labels = sample.labels if numbers is None or sample.labels is None else sample.labels[numbers]
    return Draw(rows, True, labels)


def _some(documents: Documents, numbers: npt.NDArray[np.int64]) -> Documents:
    return Documents(
        documents.source,
        documents.rows[numbers],
        documents.texts.take(numbers),
        documents.columns.take(numbers),
    )


def released(output: str, card: Card, columns: Columns, sample: Sample, seed: int) -> Draw:
    """Read the release's own rows: the sampled documents' by id, or else as many at random.

    Raises InputError for a release of another corpus.
    """
    rows = pa.concat_tables(_tables(output, card))
    if columns.id in card.kept and sample.ids is not None:
        released_as = "id" if columns.id == card.id_column else columns.id
        ids = as_text(rows[released_as]).combine_chunks()
        return Draw(rows.take(_places(columns.id, ids, sample.ids)), True, sample.labels)
    count = min(len(sample), len(rows))
    chosen = np.sort(np.random.default_rng(seed).choice(len(rows), count, replace=False))
    rows = rows.take(pa.array(chosen))
    return Draw(rows, False, _strings(rows, columns.label))


def alone(output: str, card: Card) -> dict[str, float]:
    """Return, by kept column but the ids, the share of rows with a value that no other row has."""
    names = [name for name in card.columns if name != "id"]
    if not names:
        return {}
    rows = pa.concat_tables([table.select(names) for table in _tables(output, card)])
    shares = {}
    for name in names:
        counts = pc.value_counts(rows[name].combine_chunks()).field("counts")
        shares[name] = pc.sum(pc.equal(counts, 1)).as_py() / max(1, len(rows))
    return shares


def _strings(rows: pa.Table, name: str | None) -> Strings | None:
    if name is None or name not in rows.column_names:
        return None
    return strings(as_text(rows[name]).to_pylist())


def _tables(output: str, card: Card) -> Iterator[pa.Table]:
    for file in card.files:
        if posixpath.dirname(file.path) == "data":
            yield storage.read_table(f"{output}/{file.path}")


def _places(name: str, found: pa.Array, ids: Strings) -> pa.Array:
    """Return the release's rows of the sampled documents; `found` are the ids of its rows."""
    if len(set(ids.tolist())) < len(ids):
        raise InputError(f"id: the column {cut(name)} repeats values; name one that does not")
    places = pc.index_in(pa.array(ids.tolist(), pa.large_string()), value_set=found)
    if places.null_count:
        raise InputError(
            f"against: {places.null_count:,} of {len(ids):,} sampled documents have no row in "
            f"the release by their {cut(name)}; give the corpus that the release was made of"
        )
    return places
