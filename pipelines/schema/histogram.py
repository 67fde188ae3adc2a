"""The mechanism block of `kind: histogram`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from .limited_precision import LimitedPrecisionSpec


class HistogramSpec(LimitedPrecisionSpec):
    """`kind: histogram`."""

    kind: Annotated[
        Literal["histogram"], Field(description="release how often the corpus holds each word")
    ]
    copies_columns: ClassVar[bool] = False
