"""A run's hold on its reservation: what it spends is what was reserved."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest
from ledger_requests import CASES, DECLARED, RUN, files, request

from quietcorpus.pipelines.card.parameters import parameters
from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.records import Partition, Refusal
from quietcorpus.pipelines.ledger.reservation import HeldReservation
from quietcorpus.transforms.errors import StageError


def test_a_release_that_costs_something_else_is_not_committed(place: str) -> None:
    # Kills: a release whose card states another cost than the one that the ledger counts.
    ledger = Ledger.open(place)
    asked = request(place, "a")
    held = HeldReservation(ledger, ledger.reserve(asked), RUN)
    before = files(place)
    own: Any = asked.cost.guarantee
    for other in (
        {"epsilon": own.epsilon + Fraction(1, 10**9)},
        {"epsilon": own.epsilon / 2},
        {"delta": Fraction(1, 10**9)},
        {"precision": own.precision + 1},
    ):
        with pytest.raises(StageError, match="the cost of the release is not the one that was"):
            held.commit(card(replace(own, **other)), None)
    assert files(place) == before
    held.commit(card(own), None)
    assert held.reservation.number in ledger.state.commits


def card(total: Any) -> Any:
    return SimpleNamespace(budget=SimpleNamespace(total=parameters(total)), to_json=lambda: "{}")


@pytest.mark.parametrize(
    ("sort", "compared", "documents"),
    [(CASES, False, "unknown"), (CASES, True, None), (DECLARED, False, None), (None, False, None)],
)
def test_a_refusal_says_whether_its_documents_were_compared(
    place: str, sort: Any, compared: bool, documents: str | None
) -> None:
    # Kills: a refusal that tells of documents that came after the comparison, charged to its
    # partition alone.
    ledger = Ledger.open(place)
    part = None if sort is None else Partition("p", sort)
    found = ledger.reserve(request(place, "a", 1, partition=part))
    HeldReservation(ledger, found, RUN).refuse(compared=compared)
    record = ledger.records[-1]
    assert isinstance(record, Refusal)
    assert record.documents == documents
