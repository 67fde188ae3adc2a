"""States of a ledger by hand, and a model: a list of events, of which all is found out anew."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from quietcorpus.mechanisms.accounting.guarantees import (
    DocumentPrivacy,
    LimitedPrecision,
    MetricPrivacy,
    SentencePrivacy,
    UserPrivacy,
)
from quietcorpus.pipelines.card.parameters import parameters
from quietcorpus.pipelines.ledger.caps import Cost
from quietcorpus.pipelines.ledger.records import (
    Charged,
    Opening,
    Partition,
    Reservation,
    Sort,
)
from quietcorpus.pipelines.ledger.refusals import Request
from quietcorpus.pipelines.ledger.state import State

INDEX = "0123456789abcdef" * 4
CAPS: list[dict[str, Any]] = [
    {"definition": "limited-precision", "precision": 2, "epsilon": 12, "delta": "1/1000"},
    {"definition": "limited-precision", "precision": 6, "epsilon": 20, "delta": "1/500"},
    {"definition": "metric", "metric": "euclidean", "index": INDEX, "epsilon": 9},
    {"definition": "sentence", "epsilon": 9},
    {"definition": "user", "epsilon": 5, "delta": "1/1000"},
    {
        "definition": "document",
        "composition": "zcdp",
        "epsilon": 3,
        "delta": "1/1000",
        "approximate_delta": "1/2000",
        "rho": "2/7",
    },
]
LIMITS = [
    (Fraction(cap["epsilon"]), Fraction(cap.get("delta", 0)), Fraction(0)) for cap in CAPS[:5]
] + [(Fraction(0), Fraction(1, 2000), Fraction(2, 7))]
Price = tuple[Fraction, Fraction, Fraction]
"""Of epsilon, delta and rho."""


@dataclass(frozen=True)
class Reserved:
    number: int
    request: Request


@dataclass(frozen=True)
class Committed:
    of: int
    identity: str
    card: str


@dataclass(frozen=True)
class Cancelled:
    of: int


@dataclass(frozen=True)
class Refused:
    of: int
    identity: str
    compared: bool = True


@dataclass(frozen=True)
class Compared:
    of: int


Event = Reserved | Committed | Cancelled | Refused | Compared


def price(account: int, cost: Cost) -> Price | None:  # noqa: PLR0911
    """Compute a release's cost to an account, from the definitions."""
    match account, cost.guarantee:
        case ((0 | 1), LimitedPrecision(own, epsilon, delta)):
            target = [2, 6][account]
            times = next(k for k in range(1, 100) if k * own >= target)
            assert times == 1 or delta == 0
            return times * epsilon, delta, Fraction(0)
        case 2, MetricPrivacy(_, epsilon) if cost.unit_scope == INDEX:
            return epsilon, Fraction(0), Fraction(0)
        case 3, SentencePrivacy(epsilon):
            return epsilon, Fraction(0), Fraction(0)
        case 4, UserPrivacy(epsilon, delta):
            return epsilon, delta, Fraction(0)
        case 5, DocumentPrivacy(epsilon, delta):
            if cost.noise is not None:
                return Fraction(0), cost.noise.delta, cost.noise.rho
            return Fraction(0), delta, min(epsilon * epsilon / 2, epsilon)
    return None


def held(events: Sequence[Event]) -> list[Reserved]:
    returned = {event.of for event in events if isinstance(event, Cancelled)}
    return [e for e in events if isinstance(e, Reserved) and e.number not in returned]


def numbers(events: Sequence[Event]) -> list[int]:
    return [event.number for event in held(events)]


def committed(events: Sequence[Event]) -> dict[int, Committed]:
    return {event.of: event for event in events if isinstance(event, Committed)}


def refused(events: Sequence[Event]) -> dict[int, Refused]:
    return {event.of: event for event in events if isinstance(event, Refused)}


def compared(events: Sequence[Event]) -> set[int]:
    return {event.of for event in events if isinstance(event, Compared)}


def known(partition: Partition | None) -> str | None:
    """The partition, if its documents are known to be in no other one."""
    return partition.name if partition and partition.sort.disjoint != "unknown" else None


def told(events: Sequence[Event]) -> set[int]:
    """The reservations whose refusal told of documents that no ids are kept of."""
    return set(refused(events)) - set(committed(events)) - compared(events)


def of_others(events: Sequence[Event]) -> set[int]:
    """The reservations whose refusal may have told of other documents than those compared."""
    return {of for of, event in refused(events).items() if not event.compared}


def alone(events: Sequence[Event], one: Reserved) -> str | None:
    """The partition that a reservation is charged to; None if any document may have paid for it."""
    part = one.request.partition
    compared = part is not None and part.sort.disjoint == "compared"
    anyone = one.number in of_others(events) or (compared and one.number in told(events))
    return None if anyone else known(part)


def total(events: Sequence[Event], account: int, more: Request | None = None) -> Price:
    """The most that any document pays: one of each partition, and one of none, are tried."""
    charged = [(alone(events, e), price(account, e.request.cost)) for e in held(events)]
    if more is not None:
        charged.append((known(more.partition), price(account, more.cost)))
    sums = [
        [
            sum((paid[i] for part, paid in charged if paid and part in (None, own)), Fraction(0))
            for i in range(3)
        ]
        for own in {None, *(part for part, _ in charged)}
    ]
    return max(one[0] for one in sums), max(one[1] for one in sums), max(one[2] for one in sums)


def admitted(events: Sequence[Event], request: Request) -> bool:
    """Return whether a new release may be reserved."""
    own = [a for a in range(len(CAPS)) if price(a, request.cost) is not None]
    now = held(events)
    parts = [e.request.partition for e in now if e.request.partition]
    if request.partition and {part.sort for part in parts} - {request.partition.sort}:
        return False
    for account in own:
        if account >= 3:
            others = {e.request.cost.unit_scope for e in now if price(account, e.request.cost)}
            if others - {request.cost.unit_scope}:
                return False
        if account == 4 and request.partition is not None:
            return False
        if any(map(operator.gt, total(events, account, request), LIMITS[account])):
            return False
    return bool(own)


IDS = Sort("compared", "case", "0" * 16)
SORTS = [IDS, replace(IDS, column="row"), replace(IDS, key="1" * 16), Sort("declared"), Sort()]


def opened(caps: Sequence[dict[str, Any]]) -> State:
    state = State()
    state.add(
        Opening.model_validate(common(0) | {"corpus": "/corpus", "caps": list(caps)}),
    )
    return state


def common(number: int) -> dict[str, Any]:
    previous = "0" * 64 if number else None
    created = datetime(2026, 11, 23, tzinfo=UTC)
    return {"number": number, "previous": previous, "created": created, "nonce": "0" * 32}


def declared(name: str) -> Partition:
    return Partition(name, Sort("declared"))


def reservation(
    state: State, number: int, cost: Cost, part: Partition | None = None
) -> Reservation:
    """A record of what a release costs, or of what it would if it could."""
    found = [(account, cap.charge(cost)) for account, cap in enumerate(state.caps)]
    return Reservation(
        **common(number),
        release=f"r{number}",
        run="0" * 32,
        output=f"/out/{number}",
        partition=part and part.name,
        compared=part and part.sort.key,
        disjoint=part and part.sort.disjoint,
        identifier=part and part.sort.column,
        guarantee=parameters(cost.guarantee),
        whose=cost.unit_scope,
        charges=[Charged.of(account, charge) for account, charge in found if charge],
    )


def bag(epsilon: int) -> Cost:
    return Cost(LimitedPrecision(1, Fraction(epsilon)))


ONE = [{"definition": "limited-precision", "precision": 1, "epsilon": 10, "delta": "1/10"}]
A, B, C = map(declared, "abc")
