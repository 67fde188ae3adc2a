"""Epsilons at which two embeddings do the same to words.

Feyisetan, Balle, Diethe and Drake (PrivateNLP 2020), section 5, for GloVe and fastText.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def telling(values: npt.NDArray[np.number], least: float, most: float) -> bool:
    """Return whether at least half of the words lie between the ends of what can be measured.

    Where most words are at an end, the mean says how many are, and little of what the words do.
    """
    inside = (values > least) & (values < most)
    return bool(2 * inside.sum() >= inside.size)


def epsilon_of(value: float, epsilons: Sequence[float], means: Sequence[float]) -> float | None:
    """Find the smallest epsilon at which means have a value, linear between log epsilons.

    Args:
        value: the value that is sought.
        epsilons: ascending, above zero.
        means: the mean at each; where it does not lie between two neighbours, None is returned.
    """
    for place in range(len(epsilons) - 1):
        here, there = means[place] - value, means[place + 1] - value
        if here * there <= 0 and here != there:
            low, high = math.log(epsilons[place]), math.log(epsilons[place + 1])
            return math.exp(low + (high - low) * here / (here - there))
    return None
