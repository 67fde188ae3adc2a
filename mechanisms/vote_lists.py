"""The lists of texts that a released histogram of votes is about: post-processing of it.

A list is a set of texts of the public pool. The noise of its texts' sums, all independent, grows
with the root of their number, and their votes with their number: what a corpus is about shows in
its lists where no single text of them stands out.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from .ballots import Sums
from .votes import STANDS_OUT


def stand_out(
    noisy: Sums, sizes: npt.NDArray[np.int64], deviation: Fraction
) -> npt.NDArray[np.bool_]:
    """Tell which lists' noisy votes, of all strata together, stand out of their noise, bool (K,).

    They do if their sum reaches `STANDS_OUT` standard deviations of the noise in it. The arithmetic
    is exact.

    Args:
        noisy: int64 (L, m), the noisy sums.
        sizes: int64 (K,), the numbers of the lists' texts, which stand list by list, m in all.
        deviation: the standard deviation of the noise of one sum.

    Raises:
        ValueError: the lists are of another number of texts.
    """
    if sizes.sum() != noisy.shape[1]:
        raise ValueError(f"lists of {sizes.sum()} texts, and sums of {noisy.shape[1]}")
    ends = np.cumsum(sizes)
    before = np.concatenate([[0], np.cumsum(noisy.sum(axis=0))])
    totals = (before[ends] - before[ends - sizes]).tolist()
    least = STANDS_OUT**2 * deviation**2 * len(noisy)
    return np.array(
        [
            size > 0 and total > 0 and total**2 >= least * size
            for total, size in zip(totals, sizes.tolist(), strict=True)
        ]
    )
