"""A mechanism that is left out, and the computation that `docs/explanation/privacy.md` rests on."""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import quad
from scipy.spatial.distance import cdist
from scipy.special import lambertw

OTHERS = 1_000


def gumbel_of_three(scale: float, most: float) -> float:
    """Return the chance that the third of d + g is least, for d = 0, 1, 1.

    The noises g are of Gumbel's law with this scale, cut off at `most` on both sides.
    """

    def below(value: float) -> float:
        low, high, own = (math.exp(-math.exp(-v / scale)) for v in (-most, most, value))
        return min(1.0, max(0.0, (own - low) / (high - low)))

    whole = math.exp(-math.exp(-most / scale)) - math.exp(-math.exp(most / scale))

    def density(value: float) -> float:
        return math.exp(-value / scale - math.exp(-value / scale)) / (scale * whole)

    def least(value: float) -> float:  # g of the third is `value`; the others have d = 0 and 1
        return density(value) * (1 - below(value + 1)) * (1 - below(value))

    return float(quad(least, -most, most, limit=200)[0])


def test_truncated_gumbel_noise_on_the_nearest_words_has_no_such_bound() -> None:
    # Xu et al. (FLAIRS 2021) draw k, and then noise for each of the k words nearest to the private
    # one. Here w and w' are 1 apart, and x is the third word from w and the 1,003rd from w'. If
    # M(w') = x, then k is 1,003 or more, of a Poisson law of mean ln 1,003. Kills: a claim of the
    # document that the words do not bear out.
    size = OTHERS + 3
    vectors = np.zeros((size, OTHERS + 2))
    near, x = 1, 2  # w' is word 0, at the origin
    vectors[near, 0] = vectors[x, 0] = -1
    vectors[x, 1] = 1
    vectors[3:, 2:] = np.eye(OTHERS)
    apart = cdist(vectors[:3], vectors)
    smallest, largest = 1.0, math.sqrt(3)
    assert apart[0, near] == 1
    assert (apart[near] <= apart[near, x]).sum() == 3  # itself, w' and x
    assert (apart[0] < apart[0, x]).sum() == size - 1
    mean = math.log(size)
    least_epsilon = 2 * (1 + math.log(size)) / smallest  # below, the paper has no noise at all
    for epsilon in (least_epsilon + 4, 100.0, 1_000.0):
        alpha = (epsilon - least_epsilon) / 3
        slowest = min(lambertw(2 * alpha * largest).real, math.log(alpha * smallest))
        chance_of_x = gumbel_of_three(2 * largest / slowest, largest)
        # Under w, from k = 3 alone; under w', Chernoff's bound of the tail. Cutting the law of k
        # off multiplies both by one number.
        of_w = 3 * math.log(mean) - mean - math.log(6) + math.log(chance_of_x)
        of_other = -mean + size * (1 + math.log(mean / size))
        assert of_w - of_other > 3_900 > 3 * epsilon
