"""The findings of a calibration of public texts, and their table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quietcorpus.evaluation.calibration import Choice, span
from quietcorpus.mechanisms.accounting.guarantees import ceiling

from ...terminal.progress import table

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
    columns = (
        *("epsilon:g", "pool", "nearest:,", "rounds:d", "smooth:>", "texts:,.0f"),
        *("distance:.3f", "macro-F1:.3f", "runs:>", ""),
    )
    shown = [True] * 3 + [bool(found.rounds)] + [True] * 3 + [labelled, True, True]
    yield from table(
        list(compress(columns, shown)), (list(compress(row, shown)) for row in _rows(found))
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


def _rows(found: CalibratedVotes) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each pool if all texts weigh the same, then one for each outcome."""
    for name, unweighted in found.pools.items():
        yield None, name, None, None, None, "all", unweighted, "", "", ""
    for outcome in found.outcomes:
        for number, one in enumerate(found.tried):
            if outcome.epsilon is None and not one.is_without_noise:
                continue
            runs, away = outcome.f1[number], outcome.distances[number]
            yield (
                "no noise" if outcome.epsilon is None else float(outcome.epsilon),
                *(one.pool, one.nearest, one.rounds, "yes" if one.smooth else "no"),
                *(outcome.texts[number].mean(), away.mean(), runs.mean()),
                span(away if math.isnan(found.own[1]) else runs),
                outcome.choice.mark(number) if outcome.choice else "",
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
