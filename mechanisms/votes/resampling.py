"""A sample of a stated size by whole-number weights: systematic, and exact in whole numbers.

It is post-processing of released sums. Systematic sampling (Madow and Madow, Annals of Mathematical
Statistics 15, 1944) lays the items one after the other on a line, each as long as its weight, and
takes those at equal steps from a random start. An item's number of copies is then its share of the
rows, rounded down or up, and the share itself on average.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..keystream import Keystream
from ..noise.uniform import uniform

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Resampling:
    """A sample of `rows` items, in random order.

    All strata that have any weight get as many rows, the first ones one more where these do not
    divide evenly. The generator's keyed bits make the same sample wherever it is drawn.
    """

    rows: int

    def draw(self, weights: Whole, stream: Keystream) -> Whole:
        """Draw the numbers of the items, int64 (rows,); none if there is no weight.

        Args:
            weights: int64 (L, m), strata and items, none below zero. An item's number is its place
                among all L * m, row after row.
            stream: the bits of the starts, and of the order.
        """
        raw = [row.astype("<i8").tobytes() for row in weights]
        addresses = stream.addresses("starts", range(len(raw)), raw)
        counts = np.zeros_like(weights)
        for stratum, rows in enumerate(rows_of_strata(weights, self.rows)):
            if rows:
                total = int(weights[stratum].sum())
                (start,) = uniform(total, stream, addresses[stratum : stratum + 1], lane=0)
                counts[stratum] = copies(weights[stratum], rows, int(start))
        drawn = np.repeat(np.arange(counts.size), counts.ravel())
        whole = stream.addresses("order", [0], [b"".join(raw)])
        bits = stream.blocks(whole, -(-len(drawn) // 2), lane=0).view("<u8")[0, : len(drawn)]
        found: Whole = drawn[np.argsort(bits, kind="stable")]
        return found


def rows_of_strata(weights: Whole, rows: int) -> list[int]:
    """Divide the rows among the strata, of weights (L, m), that have any."""
    some = np.flatnonzero(weights.any(axis=1)).tolist()
    found = [0] * len(weights)
    for place, stratum in enumerate(some):
        found[stratum] = rows // len(some) + (place < rows % len(some))
    return found


def copies(weights: Whole, rows: int, start: int) -> Whole:
    """Count the copies of each item, int64 (m,), that begin at `start` of the first step.

    The line is as long as all weights (m,) together, times `rows`; a step is the sum of the
    weights, and `start` one of its whole numbers from zero.
    """
    total = int(weights.sum())
    passed = [(int(end) * rows + total - 1 - start) // total for end in np.cumsum(weights)]
    found: Whole = np.diff(passed, prepend=0).astype(np.int64)
    return found


def are_copies(weights: Whole, found: Whole, rows: int) -> bool:
    """Tell whether some start gives these numbers of copies, int64 (m,), of weights (m,)."""
    if not rows:
        return not found.any()
    total = int(weights.sum())
    # A start u puts K points before the end x of an item if K = ceil((x - u) / total).
    least, most = 0, total - 1
    for end, passed in zip(np.cumsum(weights).tolist(), np.cumsum(found).tolist(), strict=True):
        least = max(least, end * rows - passed * total)
        most = min(most, end * rows - (passed - 1) * total - 1)
    return least <= most
