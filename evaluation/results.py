"""The observations, draw by draw, and their summary with intervals."""

from __future__ import annotations

import io
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from .attacks.membership import Membership
from .classification import scores
from .intervals import (
    mean_over_blocks,
    of_auc,
    of_auc_by_delong,
    of_difference,
    of_macro_scores,
    of_paired_difference,
    of_power,
    of_share,
    over_draws,
    tells_power,
)
from .measures import MEASURES
from .verdict import of_everything

_PLACE = ("measure", "group", "setting")
CONFIDENCE = 0.95
"""The confidence of every interval by itself."""
FAMILY = 29
"""The most comparisons with noise in a report: each errs with at most a share of 1 / FAMILY of the
error of all (Bonferroni)."""
FAMILY_CONFIDENCE = 1 - (1 - CONFIDENCE) / FAMILY
"""The confidence of the intervals by which attacks are compared with noise."""
RATES = {"": Fraction(1, 100), "-low": Fraction(1, 1000)}
"""The shares of others that an attack on membership may take for members, by the measure's end."""
_NOTHING = (0.0, 1.0)
"""The interval of a share of which so few can tell nothing."""

Setting = tuple[tuple[str, str], ...]
"""Keys of the spec's mechanism block and their values, as a sweep sets them; () for the spec's."""
POINT = "at"
"""The key of the number of a variant's point, against which a curve of the variant is drawn."""


@dataclass(frozen=True)
class Observation:
    """One number of one draw.

    Attributes:
        measure: a key of `MEASURES`.
        subject: the text or vectors measured, such as `release` or `original`.
        value: the number; NaN where there is none.
        group: the group of documents or words that it covers; empty for all of them.
        low, high: the 95 % interval over what an attack or a classifier was tried on.
        family_low, family_high: the same at `FAMILY_CONFIDENCE`, for an attack.
        tried: the number of documents, words or users that it was tried on.
        fresh: whether its object was made for this alone, even where the draw is the release.
    """

    measure: str
    subject: str
    value: float
    group: str = ""
    low: float | None = None
    high: float | None = None
    tried: int | None = None
    fresh: bool = False
    family_low: float | None = None
    family_high: float | None = None


def _attacked(
    measure: str,
    subject: str,
    value: float,
    interval: Callable[[float], tuple[float, float]],
    tried: int,
    group: str = "",
    *,
    fresh: bool = False,
) -> Observation:
    """Return an attack's result; `interval` is a function of the confidence."""
    ends, sure = interval(CONFIDENCE), interval(FAMILY_CONFIDENCE)
    return Observation(measure, subject, value, group, *ends, tried, fresh, *sure)


def share_found(
    measure: str,
    subject: str,
    found: npt.NDArray[Any],
    group: str = "",
    blocks: npt.NDArray[np.int64] | None = None,
) -> Observation:
    """Return the share of documents or words that an attack finds, with its interval.

    Args:
        measure, subject, group: as in the observation.
        found: (n,), whether each was found, or with what chance.
        blocks: for words, the document of each, (n,). Words of one document then form a block, and
            the interval covers both the interval over blocks and the one over single words.
    """

    def interval(confidence: float) -> tuple[float, float]:
        low, high = of_share(float(found.sum()), len(found), confidence)
        if blocks is not None:
            numbers = np.unique(blocks, return_inverse=True)[1]
            ends = mean_over_blocks(found.astype(np.float64), numbers, confidence)
            low, high = max(0.0, min(low, ends[0])), min(1.0, max(high, ends[1]))
        return low, high

    return _attacked(measure, subject, float(found.mean()), interval, len(found), group)


def membership_found(
    subject: str,
    found: Membership,
    measure: str = "membership",
    group: str = "",
    *,
    fresh: bool = False,
) -> Observation:
    """Return how well an attack separates members; `fresh` if it attacked something unreleased.

    The interval is the wider of Newcombe's and DeLong's.
    """
    members, others = found.scores[found.members], found.scores[~found.members]

    def interval(confidence: float) -> tuple[float, float]:
        low, high = of_auc(found.auc, len(members), len(others), confidence)
        ends = of_auc_by_delong(members, others, confidence)
        return min(low, ends[0]), max(high, ends[1])

    tried = len(found.members)
    return _attacked(measure, subject, found.auc, interval, tried, group, fresh=fresh)


def power_found(
    subject: str, found: Membership, measure: str, group: str = "", *, fresh: bool = False
) -> Iterator[Observation]:
    """Yield the shares of members found at each of `RATES` of false alarms."""
    members, others = found.scores[found.members], found.scores[~found.members]
    tried = len(found.members)
    for end, rate in RATES.items():

        def interval(confidence: float, rate: Fraction = rate) -> tuple[float, float]:
            if not tells_power(len(others), rate, confidence):
                return _NOTHING
            return of_power(members, others, rate, confidence)[1:]

        value, *_ = of_power(members, others, rate, CONFIDENCE)
        yield _attacked(f"{measure}{end}", subject, value, interval, tried, group, fresh=fresh)


def fresh_attack(subject: str, found: Membership, of: str) -> Iterator[Observation]:
    """Yield how well an attack on something unreleased separates members, and its power."""
    yield membership_found(subject, found, f"{of}-membership", fresh=True)
    yield from power_found(subject, found, f"{of}-power", fresh=True)


def classified(
    subject: str,
    truth: npt.NDArray[np.int64],
    predicted: npt.NDArray[np.int64],
    than: npt.NDArray[np.int64] | None = None,
    *,
    by_words: bool = False,
    group: str = "",
) -> Iterator[Observation]:
    """Yield a classifier's scores, with intervals over documents.

    The scores of the original come first, then the floor: the scores of always guessing the most
    frequent label.

    Args:
        subject: the subject of the observations.
        truth: (n,), the documents' labels, from 0 on.
        predicted: (n,), those that it gave them.
        than: (n,), those that a classifier gave them which learnt from the original; None yields
            no difference.
        by_words: whether it is the classifier by words, whose precision and recall are not told.
        group: the name of the classifier, where there are several.
    """
    name, size = "words-" if by_words else "", len(truth)
    found = scores(truth, predicted)
    ends = of_macro_scores(truth, predicted, CONFIDENCE)
    right = truth == predicted
    sure = of_share(int(right.sum()), size, CONFIDENCE)
    yield Observation(f"{name}accuracy", subject, found.accuracy, group, *sure, size)
    for score in ("f1",) if by_words else ("precision", "recall", "f1"):
        low, high = getattr(ends, score)
        value = getattr(found, score)
        yield Observation(f"{name}{score}", subject, value, group, low, high, size)
    if than is not None:
        value, low, high = of_paired_difference(truth == than, right, CONFIDENCE)
        yield Observation(f"{name}accuracy-lost", subject, value, group, low, high, size)
    if subject == "original":
        guesses = np.full_like(truth, np.bincount(truth).argmax())
        yield from classified("floor", truth, guesses, by_words=by_words, group=group)


@dataclass(frozen=True)
class MeasuredDraw:
    """The observations of one draw under one setting."""

    setting: Setting
    draw: int
    observations: Sequence[Observation]


def figures(measured: Iterable[MeasuredDraw]) -> list[dict[str, Any]]:
    """Summarise every figure, in the order of the measures: its first draw, and its mean.

    The interval of a first draw is over what an attack was tried on, the interval of a mean over
    draws.
    """
    seen_of: dict[tuple[Setting, str, str, str], list[tuple[int, Observation]]] = defaultdict(list)
    for one in sorted(measured, key=lambda m: (m.setting != (), m.draw)):
        for seen in one.observations:
            if math.isfinite(seen.value):
                key = one.setting, seen.measure, seen.subject, seen.group
                seen_of[key].append((one.draw, seen))
    order = {name: place for place, name in enumerate(MEASURES)}
    found = []
    for (setting, measure, subject, group), draws in seen_of.items():
        number, first = draws[0]
        some = [seen.value for _, seen in draws]
        low, high = over_draws(some, CONFIDENCE)
        low, high = max(low, MEASURES[measure].least), min(high, MEASURES[measure].most)
        told = len(set(some)) > 1  # equal draws do not show the spread of others
        found.append(
            {
                "measure": measure,
                "subject": subject,
                "group": group,
                "setting": dict(setting),
                "first": {
                    "draw": number,
                    "value": first.value,
                    "low": first.low,
                    "high": first.high,
                    "family_low": first.family_low,
                    "family_high": first.family_high,
                    "tried": first.tried,
                    "fresh": first.fresh or number > 0 or setting != (),
                },
                "mean": float(np.mean(some)),
                "low": low if told else None,
                "high": high if told else None,
                "draws": len(some),
            }
        )
    for figure in found:
        figure["against_noise"] = _against_noise(figure, found)
    compared = sum(figure["against_noise"] is not None for figure in found)
    if compared > FAMILY:
        raise ValueError(f"{compared} comparisons with noise; {FAMILY} are corrected for")
    return sorted(found, key=lambda figure: order[figure["measure"]])  # a stable sort


def _against_noise(figure: dict[str, Any], figures: Sequence[dict[str, Any]]) -> str | None:
    """Compare an attack's first draw with that on noise alone; None for any other figure.

    The family of comparisons is that of the release's own setting, of all documents or words.
    """
    if figure["subject"] != "release" or figure["first"]["family_low"] is None:
        return None
    if figure["setting"] or not of_everything(figure):
        return None
    place = [figure[key] for key in _PLACE]
    noise = (f for f in figures if f["subject"] == "noise" and [f[key] for key in _PLACE] == place)
    keys = ("value", "family_low", "family_high")
    ends = [[one["first"][key] for key in keys] for one in (figure, *noise)]
    if len(ends) < 2:
        return None
    if tuple(ends[0][1:]) == _NOTHING:
        return "cannot tell"
    low, high = of_difference(*map(tuple, ends))
    return "above" if low > 0 else "below" if high < 0 else "not told apart"


def table(measured: Iterable[MeasuredDraw]) -> bytes:
    """Return a Parquet file with a row for each observation."""
    rows = [
        {**_row(seen), "draw": one.draw, "setting": dict(one.setting)}
        for one in measured
        for seen in one.observations
    ]
    schema = pa.schema(
        [
            ("measure", pa.string()),
            ("subject", pa.string()),
            ("group", pa.string()),
            ("setting", pa.map_(pa.string(), pa.string())),
            ("draw", pa.int32()),
            ("value", pa.float64()),
            ("low", pa.float64()),
            ("high", pa.float64()),
            ("tried", pa.int64()),
            ("family_low", pa.float64()),
            ("family_high", pa.float64()),
        ]
    )
    listed = [{**row, "setting": list(row["setting"].items())} for row in rows]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(listed, schema), sink)
    return sink.getvalue()


def _row(seen: Observation) -> dict[str, Any]:
    return {name: value for name, value in asdict(seen).items() if name != "fresh"}


def described(names: Iterable[str]) -> Mapping[str, Any]:
    """Return the descriptions of the measures that were taken, in the order of `MEASURES`."""
    taken = set(names)
    shown = ("part", "title", "meaning", "better")
    return {
        name: {key: getattr(one, key) for key in shown}
        for name, one in MEASURES.items()
        if name in taken
    }
