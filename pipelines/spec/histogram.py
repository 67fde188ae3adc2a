"""The mechanism block of `kind: histogram`."""

from __future__ import annotations

from typing import ClassVar, Literal

from quietcorpus.pipelines.spec.limited_precision import LimitedPrecisionSpec


class HistogramSpec(LimitedPrecisionSpec):
    """`kind: histogram`."""

    kind: Literal["histogram"]
    copies_columns: ClassVar[bool] = False
