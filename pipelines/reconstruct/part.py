"""The documents of one data file, and what a worker knows of them, in a folder of its machine.

Both kinds of array have their names only once they are whole, and what is in them follows from the
release alone: whatever a run left behind can be gone on with.
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


class File(Protocol):
    """A data file."""

    @property
    def rows(self) -> int: ...


class Source(Protocol):
    """Where noisy counts come from. It is sent to other processes.

    Attributes:
        files: in their order.
        size: K.
    """

    @property
    def files(self) -> Sequence[File]: ...

    @property
    def size(self) -> int: ...

    def noisy(self, number: int) -> Iterator[npt.NDArray[np.int32]]:
        """Those of a data file, (n, K), some rows at a time."""


class Part:
    """Documents, in the order of their data file.

    Args:
        source: of the noisy counts.
        number: of the data file among the release's.
        folder: of this reconstruction alone.
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
        """What is worked on at once."""
        starts = range(0, self._rows, BATCH)
        return [slice(start, min(start + BATCH, self._rows)) for start in starts]

    @property
    def noisy(self) -> np.ndarray:
        """The noisy counts, int32 (n, K), on disk."""
        return self._array("noisy", np.int32, self._shape)

    def shapes(self, passes: int, starts: int, factors: int) -> np.ndarray:
        """Of the weights' Gamma laws after so many passes, float32 (starts, n, T), on disk."""
        shape = (starts, self._rows, factors)
        return self._array(f"shapes-{passes}", np.float32, shape)

    def has_shapes(self, passes: int) -> bool:
        """Whether this machine knows them."""
        return not self.batches or self._path(f"shapes-{passes}").exists()

    def next_shapes(self, passes: int, starts: int, factors: int) -> np.ndarray:
        """Those of the pass that is under way, of which each batch writes its own."""
        shape = (starts, self._rows, factors)
        return self._unfinished_array(f"shapes-{passes}", np.float32, shape)

    def finish_shapes(self, passes: int) -> None:
        """All batches have written theirs."""
        if not self.batches:
            return
        self._finish(f"shapes-{passes}")
        self._path(f"shapes-{passes - 2}").unlink(missing_ok=True)

    def clear(self) -> None:
        """Nothing is left, of this part or of all."""
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
            with path.open("ab") as file:  # which may be there, with batches that are written
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
    if 0 in shape:  # a file without rows, which cannot be mapped
        return np.zeros(shape, kind)
    return np.memmap(path, kind, mode, shape=shape)
