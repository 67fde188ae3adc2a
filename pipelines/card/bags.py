"""The mechanism of `kind: bag-of-words` on the card, and the files of such a release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from quietcorpus.pipelines.card.histogram import LimitedPrecisionMechanism
from quietcorpus.pipelines.card.mechanism import FileFormat
from quietcorpus.pipelines.storage import layout

_ROW = "`terms` (term ids, ascending) and `counts` (a positive count for each)"
_BINS = (
    "; and `bins`, the noisy count of every bin as the mechanism released it, which may be "
    "negative; `terms` and `counts` are made from these at no cost"
)


class BagOfWordsMechanism(LimitedPrecisionMechanism):
    """A release of bags of words."""

    kind: Literal["bag-of-words"]
    histogram_epsilon: float | None = None
    accounting: str
    compression: dict[str, Any]
    include: list[str] | None = None
    vocabulary_size: int
    bins: int = Field(description="K, of the compression map")
    noise_rate: str = Field(description="of the geometric noise in a bin, as a rational")

    @property
    def includes_bins(self) -> bool:
        """Return whether the noisy counts are released along with the terms."""
        return self.include == ["bins"]

    @property
    def files(self) -> Mapping[str, FileFormat]:
        """Return the formats of the data, the vocabulary and the map."""
        row = FileFormat(
            _ROW + _BINS if self.includes_bins else _ROW,
            ("id", "terms", "counts", *(["bins"] if self.includes_bins else [])),
        )
        bins = FileFormat("`term_id`, `bin`: the public compression map", ("term_id", "bin"))
        return {"data": row, **super().files, layout.COMPRESSION: bins}
