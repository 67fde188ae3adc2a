"""Membership inference for users: whether word vectors were learnt from a user's texts too.

Difficulty calibration (Sablayrolles et al., ICML 2019; Watson et al., ICLR 2022): a user's score is
the fit of the target's vectors to the user's own texts, less the fit of shadow trainings' vectors
(Shokri et al., IEEE S&P 2017), in which the user had no part. The difference removes what is common
to everybody's texts, or hard to fit in some user's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from quietcorpus.evaluation.attacks.halves import half
from quietcorpus.evaluation.attacks.membership import Membership

_LEAST = 4  # halved twice, one is left

Numbers = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
Pairs = tuple[Numbers, Numbers, Scores]
"""Pairs of words of a user's texts, int64 (m,) both, and their weights, float64 (m,), positive."""

Fit = Callable[[Numbers], Scores]
"""Training, from users' numbers, int64 (m,), to the fit of the result to the texts of each of all n
users, float64 (n,)."""


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
        if users < _LEAST:
            raise ValueError(f"{users} users cannot be halved twice; give {_LEAST} or more")
        self._fit, self._generator = fit, generator
        chosen = _half(users, generator)
        self._attacked, self._others = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        self._members = _half(len(self._attacked), generator)
        self._expected = np.mean([fit(self._strangers()) for _ in range(shadows)], axis=0)

    def on_target(self) -> Membership:
        """Attack a training in which half of the attacked users took part."""
        return self._on(self._attacked[self._members])

    def on_strangers(self) -> Membership:
        """Attack a training in which no attacked user took part: any success is chance."""
        return self._on(self._strangers())

    def _on(self, trained: Numbers) -> Membership:
        scores = self._fit(trained) - self._expected
        return Membership(self._members, scores[self._attacked])

    def _strangers(self) -> Numbers:
        """Draw as many of the other users as there are members."""
        count = int(self._members.sum())
        return np.sort(self._generator.permutation(self._others)[:count])


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
