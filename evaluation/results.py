"""The observations, draw by draw, and their summary with intervals."""

from __future__ import annotations

import io
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from quietcorpus.evaluation.attacks.membership import Membership
from quietcorpus.evaluation.classification import scores
from quietcorpus.evaluation.intervals import (
    mean_over_blocks,
    of_auc,
    of_difference,
    of_macro_f1,
    of_power,
    of_share,
    over_draws,
)
from quietcorpus.evaluation.measures import MEASURES

_PLACE = ("measure", "group", "setting")
CONFIDENCE = 0.95
"""The confidence of every interval."""
RATE = Fraction(1, 100)
"""The share of others that an attack on membership may take for members."""

Setting = tuple[tuple[str, str], ...]
"""Keys of the spec's mechanism block and their values, as a sweep sets them; () for the spec's."""


@dataclass(frozen=True)
class Observation:
    """One number of one draw.

    Attributes:
        measure: a key of `MEASURES`.
        subject: the text or vectors measured, such as `release` or `original`.
        value: the number; NaN where there is none.
        group: the group of documents or words that it covers; empty for all of them.
        low, high: the 95 % interval over what an attack or a classifier by words was tried on.
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
    low, high = of_share(float(found.sum()), len(found), CONFIDENCE)
    if blocks is not None:
        numbers = np.unique(blocks, return_inverse=True)[1]
        ends = mean_over_blocks(found.astype(np.float64), numbers, CONFIDENCE)
        low, high = max(0.0, min(low, ends[0])), min(1.0, max(high, ends[1]))
    return Observation(measure, subject, float(found.mean()), group, low, high, len(found))


def membership_found(
    subject: str, found: Membership, measure: str = "membership", *, fresh: bool = False
) -> Observation:
    """Return how well members are told from others; `fresh` if what was attacked is no release."""
    members = int(found.members.sum())
    low, high = of_auc(found.auc, members, len(found.members) - members, CONFIDENCE)
    tried = len(found.members)
    return Observation(measure, subject, found.auc, "", low, high, tried, fresh=fresh)


def power_found(subject: str, found: Membership, measure: str) -> Observation:
    """Return the share of members found at `RATE` false alarms, in what was made for this."""
    members, others = found.scores[found.members], found.scores[~found.members]
    value, low, high = of_power(members, others, RATE, CONFIDENCE)
    return Observation(measure, subject, value, "", low, high, len(found.members), fresh=True)


def classified_by_words(
    subject: str, truth: npt.NDArray[np.int64], predicted: npt.NDArray[np.int64]
) -> Iterator[Observation]:
    """Yield accuracy and macro-F1 of a classifier by words, with intervals over documents."""
    yield share_found("words-accuracy", subject, truth == predicted)
    low, high = of_macro_f1(truth, predicted, CONFIDENCE)
    value = scores(truth, predicted).f1
    yield Observation("words-f1", subject, value, "", low, high, len(truth))


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
    return sorted(found, key=lambda figure: order[figure["measure"]])  # a stable sort


def _against_noise(figure: dict[str, Any], figures: Sequence[dict[str, Any]]) -> str | None:
    """Compare an attack's first draw with that on noise alone; None for any other figure."""
    if figure["subject"] != "release" or figure["first"]["low"] is None:
        return None
    place = [figure[key] for key in _PLACE]
    noise = (f for f in figures if f["subject"] == "noise" and [f[key] for key in _PLACE] == place)
    ends = [[one["first"][key] for key in ("value", "low", "high")] for one in (figure, *noise)]
    if len(ends) < 2:
        return None
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
