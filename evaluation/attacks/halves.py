"""A random half of documents that holds half of every class."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def half(labels: npt.NDArray[Any], generator: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Draw a random half of the documents, bool (n,), from their classes (n,).

    Every document is in it with probability 1/2. It has half of each class and half of all n
    documents, rounded up or down.
    """
    order = generator.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    chosen = np.zeros(len(labels), dtype=np.bool_)
    chosen[order[generator.integers(2) :: 2]] = True
    return chosen
