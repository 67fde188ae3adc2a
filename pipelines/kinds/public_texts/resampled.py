"""The check of a resampled corpus of public texts, from the weights that it is drawn by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from quietcorpus.mechanisms.votes.resampling import are_copies, rows_of_strata
from quietcorpus.transforms.errors import InputError

from ...storage import files as storage


def check_resampled(
    uri: str,
    texts: pa.Table,
    labels: Sequence[str | None],
    weights: npt.NDArray[np.int64],
    rows: int,
) -> None:
    """Check that a corpus has the released texts as often as some start of the draw gives them.

    Args:
        uri: the corpus.
        texts: the table of released texts, one for each weight above zero, in their order.
        labels: the labels of the strata; None for the one of a release without.
        weights: int64 (L, m), of all texts of the pool in each stratum.
        rows: the number of rows that were asked for.

    Raises InputError.
    """
    row_of = np.full(weights.size, -1)
    row_of[np.flatnonzero(weights)] = np.arange(len(texts))
    counts = np.zeros(weights.size, dtype=np.int64)
    file = pq.ParquetFile(pa.BufferReader(storage.read_bytes(uri)))
    names = [name for name in ("id", "label", "text") if name in texts.column_names]
    fits = all(file.schema_arrow.field(n).type == texts.schema.field(n).type for n in names)
    for batch in file.iter_batches(use_threads=False) if fits else ():
        places = _places(batch, labels, weights.shape)
        found = np.where(places >= 0, row_of[places], -1)
        if (found < 0).any():
            fits = False
            break
        fits = fits and texts["text"].take(pa.array(found)).combine_chunks().equals(batch["text"])
        counts += np.bincount(places, minlength=weights.size)
    divided = rows_of_strata(weights, rows)
    if not (fits and all(map(are_copies, weights, counts.reshape(weights.shape), divided))):
        raise InputError(f"{uri}: not the texts that stand out, as often as their weights say")


def _places(
    batch: pa.RecordBatch, labels: Sequence[str | None], shape: tuple[int, ...]
) -> npt.NDArray[np.int64]:
    """Return the place of each row among all weights, int64 (n,); -1 for one that has none."""
    ids = pc.fill_null(batch["id"], -1).to_numpy()
    strata = np.zeros_like(ids)
    if "label" in batch.schema.names:
        found = pc.index_in(batch["label"], value_set=pa.array(labels, batch["label"].type))
        strata = pc.fill_null(found, -1).to_numpy().astype(np.int64)
    some = (ids >= 0) & (ids < shape[1]) & (strata >= 0)
    return np.where(some, strata * shape[1] + ids, -1)
