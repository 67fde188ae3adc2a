"""Documents drawn from their noisy counts, their weights, and the factors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.mechanisms.accounting.factors import means
from quietcorpus.mechanisms.bags.bags import Bags
from quietcorpus.mechanisms.bags.decompression import Decompression
from quietcorpus.mechanisms.noise.noisy_counts import draw, relative
from quietcorpus.transforms.privatizers.bags import as_lists
from quietcorpus.transforms.shards import Written, write_tables

from ....card.model import File
from .fit import Counts, Fitted, Floats, sample
from .noisy_release import NoisyRelease
from .part import FilePart
from .workers import Workers


def documents(
    workers: Workers, source: NoisyRelease, fitted: Fitted, staging: str, seed: int
) -> Iterator[Written]:
    """Write the data files of the new release, one for each part, with the same rows in order.

    Args:
        workers: the workers that hold the documents.
        source: the release.
        fitted: the fitted model.
        staging: the folder to write to.
        seed: the seed of the draws.
    """
    stretch = stretch_of(workers, fitted, source.decay, seed)
    return workers.each(_Write(source, fitted, stretch, staging, seed))


def stretch_of(workers: Workers, fitted: Fitted, decay: float, seed: int) -> np.float32:
    """Compute the factor on means that gives documents the histogram's mean length.

    A mean-field law is overconfident, the more so the more noise there is. Without the factor, its
    documents would be too short.
    """
    chosen, stretch = sample(workers.rows, seed), 1.0
    found = list(workers.each(partial(_seen_and_expected, fitted=fitted, chosen=chosen)))
    noisy, own = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    # A fixed point, since the expected lengths depend on the factor.
    for _ in range(8):
        stretched = own * np.float32(stretch)
        total = float((relative(noisy, stretched, decay) * stretched).sum())
        stretch *= fitted.prior.length * len(noisy) / total
    return np.float32(stretch)


def drawn(
    part: FilePart,
    rows: slice,
    fitted: Fitted,
    decay: float,
    stretch: np.float32,
    decompression: Decompression,
    generator: np.random.Generator,
) -> Bags:
    """Draw the terms of some documents of a part."""
    own = _means(part, fitted, rows) * stretch
    counts = draw(part.noisy[rows], own, decay, generator.random(own.shape))
    documents, bins = np.nonzero(counts)
    offsets = np.searchsorted(documents, np.arange(len(counts) + 1)).astype(np.int64)
    bags = Bags(offsets, bins.astype(np.int32), counts[documents, bins])
    return decompression.expand(
        bags, lambda count: generator.integers(0, 2**64, count, dtype=np.uint64)
    )


def _seen_and_expected(
    part: FilePart, fitted: Fitted, chosen: list[npt.NDArray[np.int64]]
) -> tuple[Counts, Floats]:
    rows = chosen[part.number]
    return part.noisy[rows], _means(part, fitted, rows)


def _means(part: FilePart, fitted: Fitted, rows: slice | npt.NDArray[np.int64]) -> Floats:
    shapes = part.shapes(fitted.passes, len(fitted.fits), fitted.prior.factors)
    return means(shapes[:, rows], fitted.fits, fitted.prior)


@dataclass(frozen=True)
class _Write:
    """The writer of a part's new data file."""

    source: NoisyRelease
    fitted: Fitted
    stretch: np.float32
    staging: str
    seed: int

    def __call__(self, part: FilePart) -> Written:
        file = self.source.files[part.number]
        schema = self.source.schema(file)
        return write_tables(self._tables(part, file, schema), schema, file.path, self.staging, None)

    def _tables(self, part: FilePart, file: File, schema: pa.Schema) -> Iterator[pa.Table]:
        kept = [name for name in schema.names if name not in ("terms", "counts")]
        decompression, start = self.source.decompression(), 0
        for batch, table in enumerate(self.source.tables(file, kept)):
            rows = slice(start, start + len(table))
            generator = np.random.default_rng([self.seed, part.number, batch])
            bags = drawn(
                part, rows, self.fitted, self.source.decay, self.stretch, decompression, generator
            )
            columns = dict(zip(table.schema.names, table.columns, strict=True)) | as_lists(bags)
            yield pa.table(columns).select(schema.names)
            start = rows.stop
