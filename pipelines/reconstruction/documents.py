"""Documents drawn from what is known of each: its noisy counts, its weights, and the factors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mechanisms.bags import Bags
from mechanisms.factors import means
from mechanisms.noisy_counts import draw, relative
from pipelines.card import File
from pipelines.reconstruction.fit import Fitted
from pipelines.reconstruction.noisy_release import NoisyRelease
from pipelines.reconstruction.progress import Told
from transforms.bag_of_words import as_lists
from transforms.shards import Written, write_tables

_LENGTHS_FROM = 8192


class Documents:
    """The rows of the new release, in the order of the old one's.

    Args:
        source: the release.
        noisy: its noisy counts, int32 (n, K).
        found: what was fitted to them.
        seed: of the draws.
    """

    def __init__(
        self,
        source: NoisyRelease,
        noisy: npt.NDArray[np.int32],
        found: Fitted,
        seed: int,
    ) -> None:
        self._source, self._noisy, self._seed = source, noisy, seed
        self._prior, self._factors, self._shapes = found
        self._decompression = source.decompression()
        self._stretch = self._stretched()

    def _stretched(self) -> float:
        """By how much means must grow for lengths to be the histogram's on average.

        A mean-field law is too sure of itself, and the more so the more noise there is: its
        documents would be too short.
        """
        noisy = self._noisy[:_LENGTHS_FROM]
        own, stretch = means(self._shapes[:_LENGTHS_FROM], self._factors, self._prior), 1.0
        for _ in range(8):
            stretched = own * np.float32(stretch)
            total = float((relative(noisy, stretched, self._source.decay) * stretched).sum())
            stretch *= self._prior.length * len(noisy) / total
        return stretch

    def written(self, staging: str, told: Told) -> Iterator[Written]:
        """The data files, one for each of the release's."""
        start = 0
        for number, file in enumerate(self._source.files):
            schema = self._source.schema(file)
            tables = self._tables(file, number, start, told)
            yield write_tables(tables, schema, file.path, staging)
            start += file.rows

    def _tables(self, file: File, number: int, start: int, told: Told) -> Iterator[pa.Table]:
        schema = self._source.schema(file)
        kept = [name for name in schema.names if name not in ("terms", "counts")]
        for batch, table in enumerate(self._source.tables(file, kept)):
            generator = np.random.default_rng([self._seed, number, batch])
            bags = self._drawn(slice(start, start + len(table)), generator)
            columns = dict(zip(table.schema.names, table.columns, strict=True)) | as_lists(bags)
            yield pa.table(columns).select(schema.names)
            start += len(table)
            told(len(table))

    def _drawn(self, rows: slice, generator: np.random.Generator) -> Bags:
        own = means(self._shapes[rows], self._factors, self._prior) * np.float32(self._stretch)
        noisy = np.asarray(self._noisy[rows])
        counts = draw(noisy, own, self._source.decay, generator.random(own.shape))
        documents, bins = np.nonzero(counts)
        offsets = np.searchsorted(documents, np.arange(len(counts) + 1)).astype(np.int64)
        bags = Bags(offsets, bins.astype(np.int32), counts[documents, bins])
        return self._decompression.expand(
            bags, lambda count: generator.integers(0, 2**64, count, dtype=np.uint64)
        )
