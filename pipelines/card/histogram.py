"""The mechanism of `kind: histogram` on the card, and the files of such a release."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Literal

import pyarrow as pa

from ..storage import layout
from .limited_precision import (
    LimitedPrecisionMechanism,
    StatedEpsilon,
    check_stages,
)
from .mechanism import Product
from .model import Card
from .vocabulary import misfit_of


class HistogramMechanism(LimitedPrecisionMechanism):
    """A release of a histogram."""

    kind: Literal["histogram"]
    vocabulary_size: int

    def results(self, block: Any) -> tuple[Set[str], Set[str]]:
        """Return the number of terms."""
        return {"vocabulary_size"}, set()

    def misfit(self, name: str, rows: pa.Table, tables: Mapping[str, pa.Table]) -> str | None:
        """Return what in the vocabulary is not as it is written."""
        return misfit_of(rows, self.vocabulary, self.tokenizer, weighted=True)

    @property
    def product(self) -> Product:
        """Return what sort of thing the release is."""
        return "statistics"


def check(output: str, card: Card) -> None:
    """Compare the mechanism's numbers with the budget's; raises InputError."""
    mechanism = card.mechanism
    assert isinstance(mechanism, HistogramMechanism)
    own = StatedEpsilon("epsilon", mechanism.epsilon, "histogram")
    check_stages(f"{output}/{layout.CARD}", card, own)
