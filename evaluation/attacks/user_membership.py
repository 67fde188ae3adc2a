"""Membership inference for users and documents: whether they took part in a training or a sum.

For a training, difficulty calibration (Sablayrolles et al., ICML 2019; Watson et al., ICLR 2022): a
user's score is the fit of the target's vectors to the user's own texts, less the fit of shadow
trainings' vectors (Shokri et al., IEEE S&P 2017), in which the user had no part. The difference
removes what is common to everybody's texts, or hard to fit in some user's.

For noisy sums of votes or counts, all who may have taken part are inferred together, by ridge
regression: it is the best linear estimate of who did, if each did with a chance of one half.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.linalg import lsqr

from quietcorpus.evaluation.attacks.halves import half
from quietcorpus.evaluation.attacks.membership import Membership

_LEAST = 4  # halved twice, one is left
_LEAST_DEVIATION = 0.1  # of a whole number: without noise, sums tell of who is told apart at all
_MOST_ITERATIONS = 500

Numbers = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
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
        if units < _LEAST:
            raise ValueError(f"{units} users cannot be halved twice; give {_LEAST} or more")
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


class UserAttack:
    """An attack on a random half of the users, by an attacker who knows the others.

    The target is trained on a random half of the attacked users, and every shadow on as many of the
    others, by the same mechanism. The attacker thus knows the texts of the attacked users, and how
    many of them take part, but has no shadow in which one of them takes part.
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
        trained = [self._halves.strangers() for _ in range(shadows)]
        self._expected = np.mean([fit(users) for users in trained], axis=0)

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

    The attacker knows the counts of every unit that may have taken part, a random half of all, and
    that half of these did; but not which, so that the counts of all others are noise, too.
    """

    def __init__(
        self,
        units: sp.csr_array,
        release: Callable[[Numbers], Numbers],
        deviation: float,
        generator: np.random.Generator,
    ) -> None:
        """Choose the halves.

        Args:
            units: counts of the n units, (n, V).
            release: adds the noise to sums, int64 (V,).
            deviation: of the noise.
            generator: the generator of the halves.

        Raises:
            ValueError: fewer than four units.
        """
        self._units, self._release = units.tocsr(), release
        self._deviation = max(deviation, _LEAST_DEVIATION)
        self._halves = _Halves(units.shape[0], generator)

    def on_target(self) -> Membership:
        """Attack sums in which half of the attacked units took part."""
        return self._on(self._halves.taking_part)

    def on_strangers(self) -> Membership:
        """Attack sums in which no attacked unit took part: any success is chance."""
        return self._on(self._halves.strangers())

    def _on(self, summed: Numbers) -> Membership:
        noisy = self._release(np.asarray(self._units[summed].sum(axis=0)).ravel())
        own = self._units[self._halves.attacked].astype(np.float64)
        expected = np.asarray(own.sum(axis=0)).ravel() / 2
        # Whether a unit took part has a variance of 1/4.
        found = lsqr(own.T, noisy - expected, damp=2 * self._deviation, iter_lim=_MOST_ITERATIONS)
        return Membership(self._halves.members, found[0])


def fits(vectors: npt.NDArray[np.floating], pairs: Sequence[Pairs]) -> Scores:
    """Compute the weighted mean of the cosines of each user's pairs of words, float64 (n,).

    The cosines of a word whose vector is zero are 0, and so is the score of a user without pairs.

    Args:
        vectors: (V, d), of all words.
        pairs: the pairs of each of n users.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(lengths > 0, lengths, 1)
    scores = np.zeros(len(pairs))
    for user, (one, other, weights) in enumerate(pairs):
        if len(weights):
            cosines = np.einsum("ij,ij->i", unit[one], unit[other])
            scores[user] = np.average(cosines, weights=weights)
    return scores


def _half(count: int, generator: np.random.Generator) -> npt.NDArray[np.bool_]:
    return half(np.zeros(count, np.int64), generator)
