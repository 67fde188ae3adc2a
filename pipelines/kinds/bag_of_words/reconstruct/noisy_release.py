"""The input of a reconstruction: a release that holds its noisy bins, and a file's documents.

The documents of one data file, with a worker's arrays of them in a folder on its machine.

The arrays are noisy counts and shapes. An array gets its name only once it is complete, and its
content follows from the release alone. A run can therefore use all that an earlier one left behind.
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Protocol

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


BATCH = 1024


class Rows(Protocol):
    """A data file, of which the number of rows matters."""

    @property
    def rows(self) -> int: ...


class Source(Protocol):
    """The source of noisy counts. It is sent to other processes.

    Attributes:
        files: the data files, in order.
        size: the number of bins, K.
    """

    @property
    def files(self) -> Sequence[Rows]: ...

    @property
    def size(self) -> int: ...

    def noisy(self, number: int) -> Iterator[npt.NDArray[np.int32]]:
        """Yield the noisy counts of a data file, (n, K), some rows at a time."""


class FilePart:
    """Documents, in the order of their data file.

    Args:
        source: the source of the noisy counts.
        number: the number of the data file among the release's.
        folder: the folder of this reconstruction alone.
    """

    def __init__(self, source: Source, number: int, folder: Path) -> None:
        self.number, self._rows = number, source.files[number].rows
        self._shape = self._rows, source.size
        self._folder = folder / f"part-{number}"
        self._folder.mkdir(exist_ok=True)
        if not self._path("noisy").exists():
            self._read(source)

    def _read(self, source: Source) -> None:
        noisy, start = self._unfinished_array("noisy", np.int32, self._shape), 0
        for rows in source.noisy(self.number):
            noisy[start : start + len(rows)] = rows
            start += len(rows)
        self._finish("noisy")

    @property
    def batches(self) -> list[slice]:
        """Return the slices of rows that are worked on at once."""
        starts = range(0, self._rows, BATCH)
        return [slice(start, min(start + BATCH, self._rows)) for start in starts]

    @property
    def noisy(self) -> np.ndarray:
        """Return the noisy counts, int32 (n, K), mapped from disk."""
        return self._array("noisy", np.int32, self._shape)

    def shapes(self, passes: int, starts: int, factors: int) -> np.ndarray:
        """Return the shapes of the weights' Gamma laws after `passes` passes.

        They are float32 (starts, n, T), mapped from disk.
        """
        shape = (starts, self._rows, factors)
        return self._array(f"shapes-{passes}", np.float32, shape)

    def has_shapes(self, passes: int) -> bool:
        """Return whether this machine has the shapes after `passes` passes."""
        return not self.batches or self._path(f"shapes-{passes}").exists()

    def next_shapes(self, passes: int, starts: int, factors: int) -> np.ndarray:
        """Return the shapes of the pass under way, to which each batch writes its own rows."""
        shape = (starts, self._rows, factors)
        return self._unfinished_array(f"shapes-{passes}", np.float32, shape)

    def finish_shapes(self, passes: int) -> None:
        """Name the shapes of a pass, once all batches have written theirs."""
        if not self.batches:
            return
        self._finish(f"shapes-{passes}")
        # The shapes of the pass before stay: a run that is stopped before the factors of this pass
        # are saved goes on from them.
        self._path(f"shapes-{passes - 2}").unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove this part's folder, and the reconstruction's if nothing else is in it."""
        shutil.rmtree(self._folder, ignore_errors=True)
        with suppress(OSError):
            self._folder.parent.rmdir()

    def _path(self, name: str) -> Path:
        return self._folder / name

    def _unfinished(self, name: str) -> Path:
        return self._folder / f"{name}.unfinished"

    def _finish(self, name: str) -> None:
        os.replace(self._unfinished(name), self._path(name))

    def _array(self, name: str, kind: type[np.number], shape: tuple[int, ...]) -> np.ndarray:
        return _mapped(self._path(name), kind, shape, "r")

    def _unfinished_array(
        self, name: str, kind: type[np.number], shape: tuple[int, ...]
    ) -> np.ndarray:
        path, size = self._unfinished(name), math.prod(shape) * np.dtype(kind).itemsize
        try:
            with path.open("ab") as file:  # keeps what a stopped run wrote
                if size > path.stat().st_size:
                    os.posix_fallocate(file.fileno(), 0, size)
        except OSError:
            raise InputError(
                f"{self._folder}: has no room for {size / 1e9:,.1f} GB; make some, or set TMPDIR "
                "to another place"
            ) from None
        return _mapped(path, kind, shape, "r+")


def _mapped(
    path: Path, kind: type[np.number], shape: tuple[int, ...], mode: Literal["r", "r+"]
) -> np.ndarray:
    if 0 in shape:  # an empty file cannot be mapped
        return np.zeros(shape, kind)
    return np.memmap(path, kind, mode, shape=shape)
