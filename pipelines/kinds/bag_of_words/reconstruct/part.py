"""The documents of one data file, with a worker's arrays of them in a folder on its machine.

The arrays are noisy counts and shapes. An array gets its name only once it is complete, and its
content follows from the release alone. A run can therefore use all that an earlier one left behind.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from quietcorpus.transforms.errors import InputError

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
