"""Membership inference for users and documents: whether they took part in a training or a sum.

For a training, difficulty calibration (Sablayrolles et al., ICML 2019; Watson et al., ICLR 2022): a
user's score is the fit of the target's vectors to the user's own texts, less the fit of shadow
trainings' vectors (Shokri et al., IEEE S&P 2017), in half of which the user took part. The
difference removes what is common to all users' texts, or hard to fit in some user's.

For noisy sums of votes or counts, all units that may have taken part are inferred together, by
expectation propagation (Minka, UAI 2001; for units that are in or out, Cespedes et al., IEEE Trans.
Commun. 2014): normal distributions stand for what each unit's prior and each term's noise tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import erfcx, expit, log_ndtr

from quietcorpus.compiled import compiled

from .membership import Membership, half

_LEAST_UNITS = 4  # halved twice, one is left
_LEAST_DEVIATION = 0.1  # of a whole number: without noise, sums reveal all users they differ in
_MOST_ATTACKED = 1_000  # the time grows with the third power
_ROUNDS, _STEP, _SLACK = 10, 0.6, 10
_LEAST = 1e-9
_AT_ONCE = 1 << 16

Numbers = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
Factor = tuple[Scores, Scores]
"""Two numbers of normal distributions: precisions and these times means, or variances and means."""
Pairs = tuple[Numbers, Numbers, Scores]
"""Pairs of words of a user's texts, int64 (m,) both, and their weights, float64 (m,), positive."""

Fit = Callable[[Numbers], Scores]
"""Training, from users' numbers, int64 (m,), to the fit of the result to the texts of each of all n
users, float64 (n,)."""


class _Halves:
    """A random half of the units, which is attacked, and the half of these that takes part.

    Attributes:
        attacked: int64, the numbers of the units under attack.
        members: bool, whether each of them takes part.
    """

    def __init__(self, units: int, generator: np.random.Generator) -> None:
        if units < _LEAST_UNITS:
            raise ValueError(f"{units} users cannot be halved twice; give {_LEAST_UNITS} or more")
        self._generator = generator
        chosen = _half(units, generator)
        self.attacked, self._others = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        self.members = _half(len(self.attacked), generator)

    @property
    def taking_part(self) -> Numbers:
        """Return the units that take part in what is attacked."""
        return self.attacked[self.members]

    def strangers(self) -> Numbers:
        """Draw as many units that are not under attack."""
        count = int(self.members.sum())
        return np.sort(self._generator.permutation(self._others)[:count])

    def worlds(self, count: int) -> list[Numbers]:
        """Draw `count` halves of the units under attack, each with its other half before the next.

        So each unit is in half of them, and what the units have in common stays the same.
        """
        halves = [_half(len(self.attacked), self._generator) for _ in range(-(-count // 2))]
        both = [self.attacked[one] for own in halves for one in (own, ~own)]
        return both[:count]


class UserAttack:
    """An attack on a random half of the users, whose texts the attacker knows.

    The target is trained on a random half of the attacked users, and so is every shadow, by the
    same mechanism. The attacker knows how many of them take part, but not which.
    """

    def __init__(self, fit: Fit, users: int, shadows: int, generator: np.random.Generator) -> None:
        """Train the shadows.

        Args:
            fit: trains; called once for each shadow, and then once for each attack.
            users: the number of all users.
            shadows: the number of shadow trainings.
            generator: the generator of the halves.

        Raises:
            ValueError: there is no shadow, or fewer than four users.
        """
        if shadows < 1:
            raise ValueError(f"{shadows} shadow trainings calibrate nothing; make one or more")
        self._fit, self._halves = fit, _Halves(users, generator)
        self._expected = np.mean([fit(users) for users in self._halves.worlds(shadows)], axis=0)

    def on_target(self) -> Membership:
        """Attack a training in which half of the attacked users took part."""
        return self._on(self._halves.taking_part)

    def on_strangers(self) -> Membership:
        """Attack a training in which no attacked user took part: any success is chance."""
        return self._on(self._halves.strangers())

    def _on(self, trained: Numbers) -> Membership:
        scores = self._fit(trained) - self._expected
        return Membership(self._halves.members, scores[self._halves.attacked])


class SumsAttack:
    """An attack on noisy sums of the counts of a random half of the units under attack.

    The attacker knows the counts of every unit that may have taken part, a random half of all or
    1,000 of these, and that half of them did; but not which: the counts of all others are noise,
    too.
    """

    def __init__(
        self,
        units: sp.csr_array,
        release: Callable[[Numbers], Numbers],
        deviation: float,
        generator: np.random.Generator,
        rate: float | None = None,
    ) -> None:
        """Choose the halves.

        Args:
            units: counts of the n units, (n, V).
            release: adds the noise to sums, int64 (V,).
            deviation: of the noise.
            generator: the generator of the halves.
            rate: of two-sided geometric noise; None for Gaussian noise.

        Raises:
            ValueError: fewer than four units.
        """
        some = np.sort(generator.permutation(units.shape[0])[: 2 * _MOST_ATTACKED])
        self._units, self._release = units.tocsr()[some], release
        self._deviation, self._rate = max(deviation, _LEAST_DEVIATION), rate
        self._halves = _Halves(len(some), generator)

    def on_target(self) -> Membership:
        """Attack sums in which half of the attacked units took part."""
        return self._on(self._halves.taking_part)

    def on_strangers(self) -> Membership:
        """Attack sums in which no attacked unit took part: any success is chance."""
        return self._on(self._halves.strangers())

    def _on(self, summed: Numbers) -> Membership:
        noisy = self._release(np.asarray(self._units[summed].sum(axis=0)).ravel())
        own = self._units[self._halves.attacked]
        return Membership(self._halves.members, log_odds(own, noisy, self._deviation, self._rate))


def log_odds(
    units: sp.csr_array, noisy: Numbers, deviation: float, rate: float | None = None
) -> Scores:
    """Infer which units took part in noisy sums, each of which did with a chance of one half.

    Args:
        units: counts of the n units, (n, V).
        noisy: the sums of those that took part, and noise, (V,).
        deviation: of the noise, positive.
        rate: of two-sided geometric noise; None for Gaussian noise.

    Returns:
        The approximate log-odds that each unit took part, float64 (n,).
    """
    columns = units.tocsc().astype(np.float64)
    columns.sort_indices()
    some = np.flatnonzero(np.diff(columns.indptr))
    columns, noisy = columns[:, some], noisy[some]
    inner = columns.indptr, columns.indices, columns.data
    # Normal factors by their precisions, and these times their means. A unit: 1/2, variance 1/4.
    prior = np.full(len(noisy), deviation**-2.0), noisy / deviation**2
    own = np.full(units.shape[0], 4.0), np.full(units.shape[0], 2.0)
    best, found = -np.inf, own[0]
    for _ in range(_ROUNDS):
        precision = np.diag(own[0])
        _add_outer(*inner, prior[0], precision)
        covariance = np.linalg.inv(precision)
        means = covariance @ (columns @ prior[1] + own[1])
        variance, mean, proper = _without(covariance.diagonal(), means, own)
        odds = (mean - 1 / 2) / variance
        chance = expit(odds)
        # Where the noise is slight, later rounds may diverge: the sums tell by much.
        spread = columns.power(2).T @ (chance * (1 - chance)) + deviation**2
        fit = -((noisy - columns.T @ chance) ** 2 / spread + np.log(spread)).sum()
        if fit > best - _SLACK:
            best, found = max(best, fit), odds
        own = _factor(own, (variance, mean), (chance * (1 - chance), chance), proper)
        if rate is not None:
            sums = _quadratic(*inner, covariance), columns.T @ means
            variance, mean, proper = _without(*sums, prior)
            moments = _geometric_moments(variance, mean, noisy, rate)
            proper &= moments[0] < variance
            prior = _factor(prior, (variance, mean), moments, proper)
    return found


def _without(
    variances: Scores, means: Scores, factor: Factor
) -> tuple[Scores, Scores, npt.NDArray[np.bool_]]:
    """Divide normal marginals by a factor; return variances, means, and where these exist."""
    precisions = 1 / np.maximum(variances, _LEAST) - factor[0]
    proper = precisions > _LEAST * factor[0]
    found = 1 / np.where(proper, precisions, 1)
    return found, found * (means / np.maximum(variances, _LEAST) - factor[1]), proper


def _factor(old: Factor, without: Factor, found: Factor, proper: npt.NDArray[np.bool_]) -> Factor:
    """Step towards the factor that turns variances and means into those that were found."""
    variances = np.maximum(found[0], _LEAST)
    precisions = 1 / variances - 1 / without[0]
    # A factor that would make the distribution wider tells nothing.
    shifts = np.where(precisions > 0, found[1] / variances - without[1] / without[0], 0)
    steps = np.where(proper, _STEP, 0)
    return (
        old[0] + steps * (np.maximum(precisions, 0) - old[0]),
        old[1] + steps * (shifts - old[1]),
    )


def _geometric_moments(variances: Scores, means: Scores, noisy: Numbers, rate: float) -> Factor:
    """Compute the variances and means of normal sums, given what they are under the noise.

    The density of a sum s is proportional to a normal one times exp(-rate |noisy - s|): a mixture
    of two normal ones, each cut at the noisy sum.
    """
    deviations, gaps = np.sqrt(variances), means - noisy
    found = []
    for sign in (1, -1):
        shifted = (sign * gaps - rate * variances) / deviations
        hazard = np.sqrt(2 / np.pi) / erfcx(-shifted / np.sqrt(2))
        found.append(
            (
                log_ndtr(shifted) - sign * rate * gaps,
                sign * deviations * (shifted + hazard),
                variances * np.maximum(1 - hazard * (shifted + hazard), 0),
            )
        )
    (weight, above, spread_above), (other, below, spread_below) = found
    share = expit(weight - other)
    spread = share * spread_above + (1 - share) * spread_below
    return (
        spread + share * (1 - share) * (above - below) ** 2,
        noisy + share * above + (1 - share) * below,
    )


@compiled
def _add_outer(offsets, units, counts, weights, matrix):  # type: ignore[no-untyped-def]
    """Add each column's outer product with itself, times its weight."""
    for column in range(len(weights)):
        for i in range(offsets[column], offsets[column + 1]):
            for j in range(offsets[column], offsets[column + 1]):
                matrix[units[i], units[j]] += weights[column] * counts[i] * counts[j]


@compiled
def _quadratic(offsets, units, counts, matrix):  # type: ignore[no-untyped-def]
    """Compute each column's quadratic form of a matrix."""
    found = np.zeros(len(offsets) - 1)
    for column in range(len(found)):
        for i in range(offsets[column], offsets[column + 1]):
            for j in range(offsets[column], offsets[column + 1]):
                found[column] += matrix[units[i], units[j]] * counts[i] * counts[j]
    return found


class PairFit:
    """The fit of words' vectors to the pairs of words in the texts of each of n users.

    It is linear in the products of two words' vectors, so that what shadows do not learn from a
    user is taken off pair by pair. A pair counts for less, the more users have it: of the vectors
    of pairs that many share, one user moves little.
    """

    def __init__(self, pairs: Sequence[Pairs], share: float) -> None:
        """Join the pairs of the users, of whom this share takes part in a training."""
        nothing = np.empty(0, np.int64)
        words = np.array(
            [np.concatenate([nothing, *(user[side] for user in pairs)]) for side in (0, 1)]
        )
        self._words, where = np.unique(words, axis=1, return_inverse=True)
        weights = [user[2] / max(_LEAST, float(np.linalg.norm(user[2]))) for user in pairs]
        offsets = np.cumsum([0, *(len(own) for own in weights)])
        found = np.concatenate([np.empty(0), *weights]), where.ravel(), offsets
        users = sp.csr_array(found, (len(pairs), self._words.shape[1]))
        expected = share * np.asarray(users.sum(axis=0)).ravel()
        self._users = users @ sp.diags_array(1 / (expected + 1))

    def __call__(self, vectors: npt.NDArray[np.floating]) -> Scores:
        """Compute the fit of the vectors of all words, (V, d), to each user, float64 (n,)."""
        one, other = self._words
        products = np.zeros(len(one))
        for start in range(0, len(one), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            products[part] = np.einsum("ij,ij->i", vectors[one[part]], vectors[other[part]])
        return np.asarray(self._users @ products)


def _half(count: int, generator: np.random.Generator) -> npt.NDArray[np.bool_]:
    return half(np.zeros(count, np.int64), generator)
