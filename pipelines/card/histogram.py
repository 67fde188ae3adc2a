"""The mechanism of `kind: histogram` on the card, and the parts that bags of words share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from quietcorpus.pipelines.card.mechanism import FileFormat, Mechanism, Promise
from quietcorpus.pipelines.card.parameters import LimitedPrecisionParameters
from quietcorpus.pipelines.storage import layout

VOCABULARY_FORMAT = FileFormat(
    "`term_id`, `term`, `weight`: the private histogram's noisy count of the term in the corpus; "
    "it may be negative, and is empty where no histogram is released",
    ("term_id", "term", "weight"),
)


class LimitedPrecisionMechanism(Mechanism):
    """The keys that the kinds under limited-precision local privacy share."""

    precision: int
    epsilon: float
    vocabulary: dict[str, Any]
    tokenizer: str

    @property
    def promise(self) -> Promise:
        """Return the form of limited-precision local privacy."""
        return Promise(LimitedPrecisionParameters)

    @property
    def files(self) -> Mapping[str, FileFormat]:
        """Return the format of the vocabulary, with its counts."""
        return {layout.VOCABULARY: VOCABULARY_FORMAT}

    @property
    def required(self) -> tuple[str, ...]:
        """Return the path of the vocabulary."""
        return (layout.VOCABULARY,)


class HistogramMechanism(LimitedPrecisionMechanism):
    """A release of a histogram."""

    kind: Literal["histogram"]
    vocabulary_size: int
