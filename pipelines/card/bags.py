"""The mechanism of `kind: bag-of-words` on the card, and the files of such a release."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal

from pydantic import Field

from quietcorpus.mechanisms.bag_of_words import Accounting
from quietcorpus.pipelines.card.limited_precision import (
    LimitedPrecisionMechanism,
    StatedEpsilon,
    check_stages,
)
from quietcorpus.pipelines.card.mechanism import FileFormat
from quietcorpus.pipelines.card.model import Card
from quietcorpus.pipelines.storage import layout
from quietcorpus.transforms.errors import InputError

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


def check(output: str, card: Card) -> None:
    """Compare the mechanism's numbers with the budget's; raises InputError."""
    mechanism, uri = card.mechanism, f"{output}/{layout.CARD}"
    assert isinstance(mechanism, BagOfWordsMechanism)
    size, bins = mechanism.vocabulary_size, mechanism.bins
    if bins != mechanism.compression.get("size", size):
        raise InputError(f"{uri}: mechanism: bins is not the size of the compression map")
    per_entry = mechanism.accounting == Accounting.PER_ENTRY  # its epsilon is V epsilon / K
    check_stages(
        uri,
        card,
        StatedEpsilon("histogram_epsilon", mechanism.histogram_epsilon, "histogram"),
        StatedEpsilon(
            "epsilon",
            mechanism.epsilon,
            "documents",
            Fraction(bins, max(size, 1)) if per_entry else Fraction(1),
        ),
    )
    spent = Fraction(card.budget.stages[-1].parameters.epsilon_exact)
    if mechanism.noise_rate != str(spent / mechanism.precision):
        raise InputError(f"{uri}: mechanism: noise_rate is not the budget's")
