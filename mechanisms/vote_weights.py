"""The weights of public texts, from the noisy sums of the votes for them.

Whoever checks a release computes them too, without the accountant that `Votes` needs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def weights(noisy: npt.NDArray[np.int64], chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Return the weight of each chosen sum among those of its stratum, float64; others have 0.

    `noisy` and `chosen` are (L, m): strata and items.
    The chosen sums must be above zero. All strata that have any weigh the same. Weights are 1 on
    average, as those of documents without any are: a loss that adds up weighted terms stays in
    proportion to a penalty beside it.
    """
    votes = np.where(chosen, noisy, 0)
    totals = votes.sum(axis=1, keepdims=True)
    each = chosen.sum() / max(1, chosen.any(axis=1).sum())
    found: npt.NDArray[np.float64] = votes / np.maximum(1, totals) * each
    return found
