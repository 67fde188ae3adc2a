"""What was measured, draw by draw, and its summary with intervals."""

from __future__ import annotations

import io
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evaluation.intervals import over_draws
from pipelines.evidence.measures import MEASURES

Setting = tuple[tuple[str, str], ...]
"""Keys of the spec's mechanism block and their values, as a sweep sets them; () for the spec's."""


@dataclass(frozen=True)
class Observation:
    """One number of one draw.

    Attributes:
        measure: a key of `MEASURES`.
        subject: what it is of, such as `release` or `original`.
        value: the number; NaN where there is none.
        group: the part of the documents or words that it is about; empty for all of them.
    """

    measure: str
    subject: str
    value: float
    group: str = ""


@dataclass(frozen=True)
class Measured:
    """The observations of one draw under one setting."""

    setting: Setting
    draw: int
    observations: Sequence[Observation]


def figures(measured: Iterable[Measured], confidence: float) -> list[dict[str, Any]]:
    """Mean and interval over draws of every figure, in the order of the measures."""
    values: dict[tuple[Setting, str, str, str], list[float]] = defaultdict(list)
    for one in sorted(measured, key=lambda m: (m.setting != (), m.draw)):
        for seen in one.observations:
            if math.isfinite(seen.value):
                values[one.setting, seen.measure, seen.subject, seen.group].append(seen.value)
    order = {name: place for place, name in enumerate(MEASURES)}
    found = []
    for (setting, measure, subject, group), some in values.items():
        low, high = over_draws(some, confidence)
        low, high = max(low, MEASURES[measure].least), min(high, MEASURES[measure].most)
        told = len(set(some)) > 1  # draws that are all equal do not say how far others would be
        found.append(
            {
                "measure": measure,
                "subject": subject,
                "group": group,
                "setting": dict(setting),
                "mean": float(np.mean(some)),
                "low": low if told else None,
                "high": high if told else None,
                "draws": len(some),
            }
        )
    return sorted(found, key=lambda figure: order[figure["measure"]])  # which is stable


def table(measured: Iterable[Measured]) -> bytes:
    """Every observation as a row of Parquet."""
    rows = [
        {**asdict(seen), "draw": one.draw, "setting": dict(one.setting)}
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
        ]
    )
    listed = [{**row, "setting": list(row["setting"].items())} for row in rows]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(listed, schema), sink)
    return sink.getvalue()


def described(names: Iterable[str]) -> Mapping[str, Any]:
    """What the report says of the measures that were taken, in the order of all of them."""
    taken = set(names)
    shown = ("part", "title", "meaning", "better")
    return {
        name: {key: getattr(one, key) for key in shown}
        for name, one in MEASURES.items()
        if name in taken
    }
