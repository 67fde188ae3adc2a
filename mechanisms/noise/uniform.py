"""Uniform draws from a finite set, exactly."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..keystream import Addresses, Keystream


def uniform(
    size: int, stream: Keystream, addresses: Addresses, *, lane: int, start: int = 0
) -> npt.NDArray[np.int64]:
    """Draw a uniform integer in 0 .. size - 1 for each address, by rejection; int64 (n,).

    Blocks of the lane are used from number `start` on.
    """
    whole = (1 << 64) // size * size  # below it, every outcome has equally many words
    drawn = np.zeros(len(addresses), dtype=np.uint64)
    rows = np.arange(len(addresses))
    attempt = start
    while len(rows):
        counters = np.full(len(rows), attempt, dtype=np.uint64)
        words = stream.gather(addresses[rows], counters, lane=lane).view("<u8")[:, 0]
        drawn[rows] = words
        rows = rows[words > np.uint64(whole - 1)]  # `whole` itself may be 2^64
        attempt += 1
    return (drawn % np.uint64(size)).astype(np.int64)
