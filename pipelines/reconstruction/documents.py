"""Documents drawn from what is known of each: its noisy counts, its weights, and the factors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mechanisms.bags import Bags
from mechanisms.factors import means
from mechanisms.noisy_counts import draw, relative
from pipelines.reconstruction.fit import Counts, Fitted, Floats, sample
from pipelines.reconstruction.part import Part
from pipelines.reconstruction.workers import Workers
from transforms.bag_of_words import as_lists
from transforms.shards import Written, write_tables


def documents(
    workers: Workers, fitted: Fitted, decay: float, staging: str, seed: int
) -> Iterator[Written]:
    """The data files of the new release, one for each part, with the same rows in the same order.

    Args:
        workers: who have the documents.
        fitted: what is known of them.
        decay: of the noise.
        staging: the folder to write to.
        seed: of the draws.
    """
    stretch = _stretch(workers, fitted, decay, seed)
    return workers.each(_Draw(fitted, decay, stretch, staging, seed))


def _stretch(workers: Workers, fitted: Fitted, decay: float, seed: int) -> np.float32:
    """By how much means must grow for lengths to be the histogram's on average.

    A mean-field law is too sure of itself, and the more so the more noise there is: its documents
    would be too short.
    """
    chosen, stretch = sample(workers.rows, seed), 1.0
    found = list(workers.each(partial(_seen_and_expected, fitted=fitted, chosen=chosen)))
    noisy, own = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    for _ in range(8):
        stretched = own * np.float32(stretch)
        total = float((relative(noisy, stretched, decay) * stretched).sum())
        stretch *= fitted.prior.length * len(noisy) / total
    return np.float32(stretch)


def _seen_and_expected(
    part: Part, fitted: Fitted, chosen: list[npt.NDArray[np.int64]]
) -> tuple[Counts, Floats]:
    rows = chosen[part.number]
    return part.noisy[rows], _means(part, fitted, rows)


def _means(part: Part, fitted: Fitted, rows: slice | npt.NDArray[np.int64]) -> Floats:
    shapes = part.shapes(fitted.passes, len(fitted.fits), fitted.prior.factors)
    return means(shapes[:, rows], fitted.fits, fitted.prior)


@dataclass(frozen=True)
class _Draw:
    """Writes a part's new data file."""

    fitted: Fitted
    decay: float
    stretch: np.float32
    staging: str
    seed: int

    def __call__(self, part: Part) -> Written:
        schema = part.source.schema(part.file)
        return write_tables(self._tables(part, schema), schema, part.file.path, self.staging)

    def _tables(self, part: Part, schema: pa.Schema) -> Iterator[pa.Table]:
        kept = [name for name in schema.names if name not in ("terms", "counts")]
        start = 0
        for batch, table in enumerate(part.source.tables(part.file, kept)):
            generator = np.random.default_rng([self.seed, part.number, batch])
            bags = self._drawn(part, slice(start, start + len(table)), generator)
            columns = dict(zip(table.schema.names, table.columns, strict=True)) | as_lists(bags)
            yield pa.table(columns).select(schema.names)
            start += len(table)

    def _drawn(self, part: Part, rows: slice, generator: np.random.Generator) -> Bags:
        own = _means(part, self.fitted, rows) * self.stretch
        counts = draw(part.noisy[rows], own, self.decay, generator.random(own.shape))
        documents, bins = np.nonzero(counts)
        offsets = np.searchsorted(documents, np.arange(len(counts) + 1)).astype(np.int64)
        bags = Bags(offsets, bins.astype(np.int32), counts[documents, bins])
        return part.source.decompression().expand(
            bags, lambda count: generator.integers(0, 2**64, count, dtype=np.uint64)
        )
