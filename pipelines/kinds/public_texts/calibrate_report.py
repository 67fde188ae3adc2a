"""The findings of a calibration of public texts, and their table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from quietcorpus.evaluation.calibration import Choice
from quietcorpus.mechanisms.accounting.guarantees import ceiling

Runs = npt.NDArray[np.float64]


class TriedVotes(NamedTuple):
    """A setting: a pool, by its name, the votes for it, and `smooth`.

    Attributes:
        pool: the pool's name.
        nearest: the number of texts that a document votes for.
        rounds: 2 if a first release narrows the pool, and else 1.
        smooth: whether a text's votes are estimated from those of texts like it, too.
    """

    pool: str
    nearest: int
    rounds: int
    smooth: bool

    @property
    def is_without_noise(self) -> bool:
        """Return whether it is tried without noise, too, where `smooth` would change nothing."""
        return self.rounds == 1 and not self.smooth


class VotesOutcome(NamedTuple):
    """The results of releases at one epsilon, in every run: float64 (tried, runs) each.

    Without noise `smooth` changes nothing, and its numbers are NaN.

    Attributes:
        epsilon: None for votes without noise.
        texts: rows that stand out, which are released.
        distances: from documents that did not vote; NaN where a label has no rows.
        f1: macro-F1 of a classifier that learns from the release, on such documents; NaN without
            labels.
        choice: the best by `f1`, or without labels by distance; None without noise, and where
            nothing is released.
    """

    epsilon: Fraction | None
    texts: Runs
    distances: Runs
    f1: Runs
    choice: Choice | None


class CalibratedVotes(NamedTuple):
    """The findings of a calibration.

    Attributes:
        voting, tested: the number of documents that vote, and of those that are compared.
        released: the number of documents that the noise is for.
        own: the mean distance and macro-F1 of the documents that vote, as they are.
        pools: the distance of each pool, by its name, if all texts weigh the same.
        narrowed: by a pool's name, the release that narrowed it; public ones are left out.
        rounds: by epsilon, what either of two releases spends; empty if they were not tried.
        tried: all pools and numbers of votes.
        outcomes: one for each epsilon, and at last one without noise.
    """

    voting: int
    tested: int
    released: int
    own: tuple[float, float]
    pools: dict[str, float]
    narrowed: dict[str, str]
    rounds: dict[Fraction, tuple[Fraction, Fraction]]
    tried: Sequence[TriedVotes]
    outcomes: Sequence[VotesOutcome]


def lines(found: CalibratedVotes) -> Iterator[str]:
    """Yield a table for a terminal, and the conclusion from it."""
    distance, f1 = found.own
    labelled = not math.isnan(f1)
    yield (
        f"{found.voting:,} documents vote in place of {found.released:,}, and are compared with "
        f"{found.tested:,} others; means over runs"
    )
    yield f"documents that vote, as they are: distance {distance:.3f}" + (
        f", macro-F1 {f1:.3f}" if labelled else ""
    )
    width = max(4, *(len(one.pool) for one in found.tried))
    head, none = (f" {'rounds':>6}", f" {'-':>6}") if found.rounds else ("", "")
    scored = f"  {'macro-F1':>8}  {'runs':>11}" if labelled else f"  {'runs':>11}"
    yield (
        f"{'epsilon':>8}  {'pool':<{width}} {'nearest':>7}{head} {'smooth':>6} {'texts':>8}  "
        f"{'distance':>8}{scored}"
    )
    for name, unweighted in found.pools.items():
        yield f"{'-':>8}  {name:<{width}} {'-':>7}{none} {'-':>6} {'all':>8}  {unweighted:>8.3f}"
    for outcome in found.outcomes:
        for number, one in enumerate(found.tried):
            if outcome.epsilon is None and not one.is_without_noise:
                continue
            own = (outcome.f1 if labelled else outcome.distances)[number]
            said = f"{own.min():.3f}-{own.max():.3f}" if np.isfinite(own).all() else "-"
            means = f"  {outcome.f1[number].mean():>8.3f}" if labelled else ""
            away = outcome.distances[number].mean()
            told = "-" if math.isnan(away) else f"{away:.3f}"
            epsilon = "no noise" if outcome.epsilon is None else f"{float(outcome.epsilon):g}"
            yield (
                f"{epsilon:>8}  {one.pool:<{width}} {one.nearest:>7,}"
                f"{f' {one.rounds:>6}' if found.rounds else ''} {'yes' if one.smooth else 'no':>6} "
                f"{outcome.texts[number].mean():>8,.0f}  {told:>8}{means}  {said:>11}"
                f"{_mark(number, outcome.choice)}"
            )
    what = "macro-F1" if labelled else "distance"
    yield (
        f"Of each epsilon, the setting whose {what} is best over all splits and noise is among "
        "those marked with 95 % confidence, for documents like these."
    )
    for outcome in found.outcomes:
        if outcome.epsilon in found.rounds:
            yield _of_rounds(found, outcome)
    for pool, release in found.narrowed.items():
        yield (
            f"{pool} was narrowed by {release}: this table costs nothing more, and tells of that "
            "corpus what the release does."
        )


def _of_rounds(found: CalibratedVotes, outcome: VotesOutcome) -> str:
    """Say whether one release is better at an epsilon, or two, and what these spend."""
    assert outcome.epsilon is not None
    first, second = (ceiling(one) for one in found.rounds[outcome.epsilon])
    two = f"two releases, of epsilon {first} and {second}"
    at, choice = f"At epsilon {float(outcome.epsilon):g}", outcome.choice
    if choice is None:
        return f"{at}, neither one release nor two have rows of every label in every run."
    best = two if found.tried[choice.best].rounds == 2 else "one release"
    if len({found.tried[number].rounds for number in choice.among}) == 1:
        return f"{at}, take {best}: the other is worse."
    return f"{at}, {best} did best, and the other may be as good."


def _mark(number: int, choice: Choice | None) -> str:
    if choice is None or number not in choice.among:
        return ""
    return "  best" if number == choice.best else "  may be as good"
