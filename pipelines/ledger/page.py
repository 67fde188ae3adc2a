"""A ledger as one self-contained page, for the person who oversees the budget of a corpus."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

from quietcorpus.evaluation.pages import rendered

from ..card.parameters import total_cost
from .balances import share_of
from .book import Ledger
from .records import Reservation
from .state import State
from .tables import accounts, history, shown, sums

WIDTH, HEIGHT = 600, 120
"""Of a drawing, in its own units."""


@dataclass(frozen=True)
class Account:
    """An account as the page shows it.

    Attributes:
        title: its name in `quietcorpus ledger show`.
        cap: its cap, in words; `used` and `left` likewise, each rounded against the publisher.
        used: see `cap`.
        left: see `cap`.
        filtered: how it composes, and its sums, if it is under a filter.
        percent: how much of the cap is used, of that of epsilon, rho and delta of which most is,
            rounded up; more than 100 if it was passed.
        path: how the used part grew, as the data of an SVG path.
        spent: a row for each release that it was charged for.
    """

    title: str
    cap: str
    used: str
    left: str
    filtered: str
    percent: int
    path: str
    spent: list[dict[str, Any]]


def render(ledger: Ledger) -> str:
    """Render a ledger as a page; equal records give equal pages."""
    content = accounts(ledger)
    steps = _shares(ledger)
    told = [
        _account(ledger, one, [shares[number] for shares in steps])
        for number, one in enumerate(content["accounts"])
    ]
    return rendered(
        __name__.rpartition(".")[0],
        "page.html.j2",
        content=content,
        accounts=told,
        events=history(ledger),
        fullest=max(told, key=lambda one: one.percent),
        releases=list(ledger.state.reservations.values()),
        first=ledger.records[0].created,
        last=ledger.records[-1].created,
        size=(WIDTH, HEIGHT),
    )


def _shares(ledger: Ledger) -> list[list[Fraction]]:
    """Return the used share of every account after each record."""
    state, found = State(), []
    for record in ledger.records:
        state.add(record)
        found.append(
            [share_of(cap.most, state.used(number)) for number, cap in enumerate(state.caps)]
        )
    return found


def _account(ledger: Ledger, told: dict[str, Any], shares: list[Fraction]) -> Account:
    composed = told["composition"]
    return Account(
        title=told["account"],
        cap=shown(told["cap"]),
        used=shown(told["used"]),
        left=shown(told["left"], down=True),
        filtered="" if composed == "basic" else f"{composed}; {'; '.join(sums(told))}",
        percent=math.ceil(100 * shares[-1]),
        path=_path([record.created for record in ledger.records], shares),
        spent=[_spent(ledger.state.of_release(one["release"]), one) for one in told["releases"]],
    )


def _spent(found: Reservation | None, told: dict[str, Any]) -> dict[str, Any]:
    """Return a row of an account: a release, its sort, and its charge."""
    assert found is not None
    part = f"{told['partition']} ({told['disjoint'] or 'unknown'})" if told["partition"] else ""
    return {
        "release": found.release,
        "created": found.created,
        "cost": total_cost(found.guarantee),
        "unit": found.guarantee.guarantee.unit,
        "output": found.output,
        "partition": part,
        "state": told["state"],
        "charged": shown(told),
        "theorem": told["theorem"],
    }


def _path(times: list[datetime], shares: list[Fraction]) -> str:
    """Return steps from left to right by time, and upwards by share, at most to the cap."""
    begin, whole = times[0], (times[-1] - times[0]).total_seconds()
    parts = [f"M0 {HEIGHT}"]
    for time, share in zip(times, shares, strict=True):
        along = (time - begin).total_seconds() / whole if whole else 1.0
        parts.append(f"H{along * WIDTH:.1f} V{float(HEIGHT * (1 - min(share, Fraction(1)))):.1f}")
    return " ".join([*parts, f"H{WIDTH}"])
