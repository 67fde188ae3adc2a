"""Sums of whole numbers in few of many cells, as workers add them up and exchange them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Sums = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Cells, and a number for each, int64 (n,)."""
Packed = tuple[bytes, bytes]
"""The same as bytes."""


def summed(parts: Iterable[Sums]) -> Sums:
    """Add up sums whose cells may repeat; the cells of the result are distinct, and ascend."""
    listed = [(np.empty(0, np.int64), np.empty(0, np.int64)), *parts]
    cells, where = np.unique(np.concatenate([c for c, _ in listed]), return_inverse=True)
    sums = np.zeros(len(cells), dtype=np.int64)
    np.add.at(sums, where, np.concatenate([s for _, s in listed]))
    return cells, sums


def pack(sums: Sums) -> Packed:
    """Return sums as bytes."""
    return sums[0].tobytes(), sums[1].tobytes()


def unpack(packed: Packed) -> Sums:
    """Return sums from their bytes."""
    return np.frombuffer(packed[0], np.int64), np.frombuffer(packed[1], np.int64)
