"""Weights of words, such as frequencies, from a public file."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quietcorpus.transforms.errors import InputError

from ..storage import files as storage


def read_weights(key: str, path: str, terms: pa.Array) -> npt.NDArray[np.float64]:
    """Read the weights of terms from Parquet with the columns `term` and `weight`.

    A release's `vocabulary.parquet` is one possible file. Negative noisy counts, and words that the
    file lacks, count as zero. Raises InputError for any other file.
    """
    try:
        table = storage.read_table(path)
        listed, weights = (table[name].combine_chunks() for name in ("term", "weight"))
        places = pc.index_in(terms, value_set=listed.cast(pa.large_string()))
        values = weights.cast(pa.float64()).take(places).fill_null(0).to_numpy()
    except (OSError, KeyError, pa.ArrowException):
        raise InputError(
            f"{key}: {path} is not a Parquet file with the columns term and weight (numbers)"
        ) from None
    if not np.isfinite(values).all() or not (values > 0).any():
        raise InputError(f"{key}: {path} gives no word of the index a positive, finite weight")
    positive: npt.NDArray[np.float64] = np.maximum(values, 0)
    return positive
