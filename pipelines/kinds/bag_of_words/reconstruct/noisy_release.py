"""A release that holds its noisy bins, as the input of a reconstruction."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.mechanisms.bags.decompression import Decompression
from quietcorpus.mechanisms.noise.noisy_counts import decay_of
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import BATCH_DOCUMENTS
from quietcorpus.transforms.reading.parquet_files import open_file
from quietcorpus.transforms.shards import Written, write_tables

from ....card.model import Card, File
from ....card.verify import verify
from ....storage import files as storage
from ....storage import layout
from ....storage.places import absolute
from ..card import BagOfWordsMechanism

BINS = "bins"
_MOST_BINS = 20_000


@dataclass(frozen=True)
class NoisyRelease:
    """A release with noisy bins, which determines its reconstruction.

    Attributes:
        output: the place of the release, absolute.
        card: its card.
        mechanism: the card's block of the mechanism.
        digest: the SHA-256 of `release.json`, which fixes all that is in the release.
        of: int32 (V,), the bin of each term.
        weights: int64 (V,), the private histogram; None if there is none.
    """

    output: str
    card: Card
    mechanism: BagOfWordsMechanism
    digest: str
    of: npt.NDArray[np.int32]
    weights: npt.NDArray[np.int64] | None

    @classmethod
    def open(cls, path: str) -> NoisyRelease:
        """Open a release and check every file; raises InputError if it cannot be reconstructed."""
        card = verify(path)
        mechanism = card.mechanism
        if not (isinstance(mechanism, BagOfWordsMechanism) and mechanism.includes_bins):
            raise InputError(
                f"{path}: holds no noisy bins, and clipped counts cannot be improved; "
                "release with `include: [bins]` in a mechanism of the kind bag-of-words"
            )
        if card.documents == 0:
            raise InputError(f"{path}: holds no documents, so that there is nothing to reconstruct")
        try:
            found = cls._read(card, mechanism, absolute(path))
            broken = not found._is_whole()
        except (ArithmeticError, KeyError, TypeError, ValueError):  # Arrow's errors are ValueErrors
            broken = True
        if broken:
            raise InputError(
                f"{path}: its noise, map or vocabulary is not as quietcorpus writes them"
            )
        if found.size > _MOST_BINS:
            raise InputError(
                f"{path}: has {found.size:,} bins, and more than {_MOST_BINS:,} cannot be worked "
                "with; release with fewer"
            )
        return found

    @classmethod
    def _read(cls, card: Card, mechanism: BagOfWordsMechanism, output: str) -> NoisyRelease:
        digest = hashlib.sha256(storage.read_bytes(f"{output}/{layout.CARD}")).hexdigest()
        vocabulary = storage.read_table(f"{output}/{layout.VOCABULARY}")
        weights = vocabulary["weight"]
        compressed = any(file.path == layout.COMPRESSION for file in card.files)
        of = (
            storage.read_table(f"{output}/{layout.COMPRESSION}")["bin"].to_numpy()
            if compressed
            else np.arange(len(vocabulary))
        )
        known = weights.null_count == 0  # else all are null
        return cls(
            output,
            card,
            mechanism,
            digest,
            of.astype(np.int32),
            weights.to_numpy() if known else None,
        )

    def _is_whole(self) -> bool:
        return (
            self.rate > 0
            and self.size > 0
            and len(self.of) > 0
            and bool((self.of >= 0).all() and (self.of < self.size).all())
            and (self.weights is None or len(self.weights) == len(self.of))
            and sum(file.rows for file in self.files) == self.documents
        )

    @property
    def seed(self) -> int:
        """Return the seed of the draws: the same for the same data, whenever it was released."""
        contents = sorted((file.path, file.sha256) for file in self.card.files)
        return int(hashlib.sha256(repr((self.rate, contents)).encode()).hexdigest(), 16)

    @property
    def size(self) -> int:
        """Return K, the number of bins."""
        return self.mechanism.bins

    @property
    def rate(self) -> Fraction:
        """Return the rate of the noise: its law's decay is exp(-rate)."""
        return Fraction(self.mechanism.noise_rate)

    @property
    def decay(self) -> float:
        """Return the decay exp(-rate), kept in the range that floats can work with."""
        return decay_of(float(self.rate))

    @property
    def documents(self) -> int:
        """Return the number of documents."""
        return self.card.documents

    @property
    def files(self) -> list[File]:
        """Return the data files, in the card's order."""
        return [file for file in self.card.files if file.path.startswith("data/")]

    def decompression(self) -> Decompression:
        """Return the decompression of bins to terms."""
        weights = np.ones(len(self.of), np.int64) if self.weights is None else self.weights
        return Decompression(self.of, weights, self.size)

    def histogram(self) -> npt.NDArray[np.float64] | None:
        """Return the noisy private histogram over bins, float64 (K,); None without one."""
        if self.weights is None:
            return None
        return np.bincount(self.of, self.weights, self.size).astype(np.float64)

    def schema(self, file: File) -> pa.Schema:
        """Return the columns of a data file, except the noisy bins."""
        with open_file(f"{self.output}/{file.path}") as parquet:
            schema = parquet.schema_arrow
        return pa.schema([field for field in schema if field.name != BINS])

    def tables_of_terms(self, staging: str) -> Iterator[Written]:
        """Copy the vocabulary, and the map if there is one, unchanged."""
        for file in self.card.files:
            if file.path in (layout.VOCABULARY, layout.COMPRESSION):
                table = storage.read_table(f"{self.output}/{file.path}")
                yield write_tables([table], table.schema, file.path, staging, None)

    def tables(self, file: File, columns: list[str]) -> Iterator[pa.Table]:
        """Yield the rows of a data file, some at a time."""
        with open_file(f"{self.output}/{file.path}") as parquet:
            for batch in parquet.iter_batches(BATCH_DOCUMENTS, columns=columns, use_threads=False):
                yield pa.Table.from_batches([batch])

    def noisy(self, number: int) -> Iterator[npt.NDArray[np.int32]]:
        """Yield the noisy counts of a data file, int32 (n, K), some rows at a time."""
        file = self.files[number]
        for table in self.tables(file, [BINS]):
            column = table[BINS].combine_chunks()
            if column.type != pa.list_(pa.int32()):
                raise InputError(f"{self.output}/{file.path}: its bins are not lists of int32")
            lengths: Any = np.diff(column.offsets.to_numpy())
            if (lengths != self.size).any() or column.values.null_count:
                raise InputError(
                    f"{self.output}/{file.path}: a row does not have one count for each of the "
                    f"{self.size} bins"
                )
            yield column.values.to_numpy()[column.offsets[0].as_py() :].reshape(-1, self.size)
