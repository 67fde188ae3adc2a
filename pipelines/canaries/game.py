"""The canaries of one kind of release: what a coin decides of each, and what a release shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quietcorpus.mechanisms.accounting.concentrated import gaussian_epsilon, largest_rho
from quietcorpus.mechanisms.accounting.guarantees import DocumentPrivacy, UserPrivacy
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.spelling import as_text
from quietcorpus.transforms.users.users import Users

from ..card.loading import LoadedRelease
from ..schema.mechanism import MechanismSpec

ID = "quietcorpus_canary"
"""The column of the copy that names its documents."""

Coins = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.float64]

_TURN = 4  # canaries, of which one has a smaller budget than the largest
_RHO = 1e-9  # to which `largest_rho` rounds


@dataclass(frozen=True)
class Document:
    """A document of a canary: its text, and its columns besides."""

    text: str
    columns: Mapping[str, str]


Canary = tuple[Sequence[Document], Sequence[Document]]
"""The documents of a canary, if its coin is True and if it is False."""


@dataclass(frozen=True)
class Game:
    """The canaries of a release, and a way to tell their coins from it.

    Attributes:
        canaries: neighbouring corpora differ in the coin of one of them.
        score: makes a score of each canary that is not known, float64, higher if its coin may be
            True; from a release, the coins of the known ones, and anything else but the coins.
        epsilon, delta: what the release states of the two sides of a coin.
        says: a sentence on the canaries.
        apart: for noise that is one Gaussian, the largest distance of the two means, in its
            deviations, that this epsilon and delta allow; None for any other noise.
        shows: the part of epsilon that the scores show, where noisy numbers are released as they
            are; None where something else is made of them.
        right: the share of right guesses, of the surest part of all, that twice the epsilon is
            expected to give, where it can be computed otherwise.
        twice: where neither is known, the mechanism at twice the epsilon, to be rehearsed.
        linked: whether a canary is found by its row, which keeps its id.
        known: how many canaries, the first ones, have coins that the score may use.
        weaker: how many of the others are protected by less epsilon than is stated of all.
        own: for one Gaussian, the numbers of the output that each canary changes and is scored by,
            if each has separate noise; no two canaries may share one. None for any other noise.
    """

    canaries: Sequence[Canary]
    score: Callable[[LoadedRelease, Coins], Scores]
    epsilon: float
    delta: float
    says: str
    apart: float | None = None
    shows: float | None = None
    right: Callable[[float], float] | None = None
    twice: MechanismSpec | None = None
    linked: bool = False
    known: int = 0
    weaker: int = 0
    own: Sequence[npt.NDArray[np.int64]] | None = None

    def __post_init__(self) -> None:
        """Refuse canaries that are called independent and share a number of the output."""
        if self.own is not None:
            every = np.concatenate(self.own)
            if self.apart is None or self.known or len(np.unique(every)) < len(every):
                raise ValueError("canaries share numbers of the output, or have known coins")

    @property
    def unknown(self) -> int:
        """Return the number of canaries whose coins are guessed."""
        return len(self.canaries) - self.known


def apart_of(cost: DocumentPrivacy | UserPrivacy) -> float:
    """Return the largest distance of a Gaussian's two means, in deviations, under a guarantee.

    It errs against finding a fault.
    """
    rho = largest_rho(gaussian_epsilon, cost.epsilon, cost.delta)
    return math.sqrt(2 * (float(rho) + _RHO)) * (1 + 1e-12)


def of_user(users: Users, name: str, group: int = -1) -> dict[str, str]:
    """Return the columns of a user of a group, by its number: of the largest budget, or another."""
    columns = {users.column: name}
    if users.group_column is not None:
        levels = users.levels
        columns[users.group_column] = str(levels[group]) if levels else users.groups[group]
    return columns


def by_turns(number: int, groups: Sequence[int]) -> int:
    """Return the group of a canary: mostly the last, of the largest budget, else one of the others.

    They take every fourth canary by turns: more of them would leave fewer canaries that show as
    much as is stated.
    """
    turn, place = divmod(number, _TURN)
    return groups[-1] if place or len(groups) == 1 else groups[turn % (len(groups) - 1)]


def weaker(canaries: int, groups: Sequence[int]) -> int:
    """Return the number of canaries, of `canaries` in all, that do not have the largest budget."""
    return sum(by_turns(number, groups) != groups[-1] for number in range(canaries))


def enough(canaries: int, most: int, of: str) -> None:
    """Raise InputError for more canaries than can be told apart."""
    if canaries > most:
        raise InputError(
            f"canaries: {canaries:,} are too many: {of} have room for {most:,}; give at most that "
            "many, and more runs"
        )


def rows_of(loaded: LoadedRelease, canaries: int) -> pa.Table:
    """Return the rows of the canaries, in their order."""
    rows = loaded.rows
    wanted = pa.array([id_of(number) for number in range(canaries)], pa.large_string())
    places = pc.index_in(wanted, value_set=as_text(rows["id"]).combine_chunks())
    return rows.take(places)


def id_of(number: int) -> str:
    """Return the id of a canary."""
    return f"canary-{number}"


def by_outcome(outcomes: Sequence[object], known: Coins) -> Scores:
    """Score outcomes without an order by how often each came from either side of a known coin.

    The first outcomes are those of the known coins; the scores are of the others. A score is the
    log-ratio of the shares, with half a count added to each.
    """
    counts: dict[object, list[float]] = {}
    for outcome, coin in zip(outcomes, known, strict=False):
        counts.setdefault(outcome, [0.5, 0.5])[int(coin)] += 1
    seen = np.array([counts.get(outcome, [1.0, 1.0]) for outcome in outcomes[len(known) :]])
    scores: Scores = np.log(seen[:, 1] / seen[:, 0])
    return scores


def by_difference(outcomes: npt.NDArray[np.float64], known: Coins) -> Scores:
    """Score outcomes, (n, k), along the difference of the means of either side of a known coin."""
    first = outcomes[: len(known)]
    if known.all() or not known.any():
        return np.zeros(len(outcomes) - len(known))
    scores: Scores = outcomes[len(known) :] @ (
        first[known].mean(axis=0) - first[~known].mean(axis=0)
    )
    return scores
