"""The depths of public candidates among the sentences of public documents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quietcorpus.mechanisms.sentences.deep_candidate import Depths, Utility, project

_DEEP = 4  # a candidate counts as deep from a quarter of the largest possible depth on


@dataclass(frozen=True)
class DepthQuality:
    """Means over documents.

    Attributes:
        deepest: the depth of the deepest candidate, as a share of the number of sentences.
        deep: the number of candidates whose depth is at least an eighth of the number of sentences,
            a quarter of the largest possible depth.
    """

    deepest: float
    deep: float


def depth_quality(
    sentences: npt.NDArray[np.float64],
    candidates: npt.NDArray[np.float64],
    offsets: npt.NDArray[np.int64],
    first: int,
    directions: npt.NDArray[np.float64],
) -> DepthQuality:
    """Measure the quality for the documents from number `first` on.

    Args:
        sentences: (total, h), whole numbers.
        candidates: (m, h), whole numbers.
        offsets: int64 (n + 1,), where each document's sentences begin.
        first: the first document that is measured.
        directions: (p, h), whole numbers.
    """
    some = offsets[first:]
    depths = Depths(project(candidates, directions), Utility.DEPTH)
    projected = project(sentences[some[0] : some[-1]], directions)
    found = depths.utilities(projected, some - some[0])
    lengths = np.diff(some)
    deep = found * 2 * _DEEP >= lengths[:, None]
    return DepthQuality(float((found.max(axis=1) / lengths).mean()), float(deep.sum(axis=1).mean()))
