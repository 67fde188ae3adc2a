"""The views of a ledger that the commands show, as values and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from quietcorpus.mechanisms.accounting.guarantees import ceiling, floor, round_up

from ..card.parameters import total_cost
from ..terminal.table import aligned
from .balances import left_of
from .book import Ledger
from .caps import Cap, Charge, FilteredCap, UserCap
from .records import (
    AnyRecord,
    Cancellation,
    Commit,
    ComparedIds,
    NewCaps,
    NewKey,
    Opening,
    Refusal,
    Reservation,
)
from .state import State

_SUMS = (("rho", "rho"), ("delta of approximate releases", "approximate_delta"))


def accounts(ledger: Ledger) -> dict[str, Any]:
    """Return each account's cap, what is used and left of it, and the releases that used it."""
    assert ledger.state.opening is not None
    return {
        "ledger": ledger.uri,
        "corpus": ledger.state.opening.corpus,
        "records": len(ledger.records),
        "signed_by": ledger.signatures.key,
        "partitions": next(map(str, ledger.state.partitioned), None),
        "accounts": [_account(ledger, number) for number in range(len(ledger.state.caps))],
        "open": [
            {"release": one.release, "record": number, "created": one.created.isoformat()}
            for number, one in ledger.state.reservations.items()
            if not ledger.state.is_spent(number)
        ],
    }


def _account(ledger: Ledger, number: int) -> dict[str, Any]:
    state = ledger.state
    cap, used = state.caps[number], state.stated(number)
    parts = {
        part: numbers(cap.stated(spent)) for part, spent in state.spent[number].items() if part
    }
    return {
        "account": cap.title,
        "cap": numbers(cap.target),
        "used": numbers(used),
        "left": numbers(left_of(cap.target, used)),
        **_filtered(state, number),
        "fixed_beforehand": _fixed_beforehand(ledger, number),
        "partitions": parts,
        "releases": [
            {
                "release": one.release,
                "partition": one.partition,
                "disjoint": one.part and one.part.sort.disjoint,
                "state": _state(state, one.number),
                **_charged(charged.charge, cap),
                "theorem": charged.charge.theorem,
            }
            for one in state.reservations.values()
            for charged in one.charges
            if charged.account == number
        ],
    }


def _filtered(state: State, number: int) -> dict[str, Any]:
    """Return the composition of an account under a filter, and the sums that its cap is on."""
    cap, used = state.caps[number], state.used(number)
    if not isinstance(cap, FilteredCap) or cap.rule is None:
        return {"composition": "basic"}
    left = left_of(cap.most, used)
    return {
        "composition": cap.composition,
        "rho": {
            "cap": str(cap.most.rho),
            "used": str(used.rho),
            "left": str(left.rho),
        },
        "approximate_delta": {
            "cap": str(cap.most.delta),
            "used": str(used.delta),
            "left": str(left.delta),
        },
    }


def _charged(charge: Charge, cap: Cap) -> dict[str, Any]:
    """Return a charge: what it comes to alone, and under a filter its rho."""
    alone = numbers(cap.stated(charge))
    return alone if cap.rule is None else alone | {"rho": str(charge.rho)}


def _state(state: State, number: int) -> str:
    if number in state.commits:
        return "committed"
    return "refused" if number in state.refusals else "reserved"


def _fixed_beforehand(ledger: Ledger, number: int) -> float | None:
    """Return a user-level account's epsilon at its cap's delta, had all budgets been fixed."""
    cap = ledger.state.caps[number]
    if cap.rule is not None:
        return None
    spent = [
        (charged.charge.epsilon, charged.charge.delta)
        for one in ledger.state.reservations.values()
        for charged in one.charges
        if charged.account == number
    ]
    if not isinstance(cap, UserCap) or len(spent) < 2:
        return None
    from quietcorpus.mechanisms.accounting.composition import fixed_beforehand

    try:
        return round_up(fixed_beforehand(spent, cap.delta))
    except ValueError:
        return None


def numbers(charge: Charge) -> dict[str, Any]:
    """Return epsilon and delta, each rounded up and exact."""
    return {
        "epsilon": round_up(charge.epsilon),
        "epsilon_exact": str(charge.epsilon),
        "delta": round_up(charge.delta),
        "delta_exact": str(charge.delta),
    }


def account_lines(content: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a table of the accounts."""
    yield f"ledger    {content['ledger']}, {content['records']} records"
    yield f"corpus    {content['corpus']}"
    if content["signed_by"]:
        yield f"signed    by {content['signed_by']}"
    if content["partitions"]:
        yield f"partitions {content['partitions']}"
    rows = [("account", "cap", "used", "left", "releases")]
    for one in content["accounts"]:
        cells = (shown(one[key], down=key == "left") for key in ("cap", "used", "left"))
        rows.append((one["account"], *cells, f"{len(one['releases'])}"))
    yield from aligned(rows)
    for one in content["accounts"]:
        if one["fixed_beforehand"] is not None:
            yield (
                f"fixed     {one['account']}: epsilon {one['fixed_beforehand']:g} at the cap's "
                "delta, by optimal composition, had these budgets been fixed beforehand"
            )
    for one in content["accounts"]:
        if one["composition"] != "basic":
            yield f"filter    {one['account']}: {one['composition']}, {', '.join(sums(one))}"
    for one in content["open"]:
        yield (
            f"reserved  {one['release']} (record {one['record']}, {one['created'][:16]}): not "
            "committed yet"
        )


def history(ledger: Ledger) -> list[dict[str, Any]]:
    """Return the events of a ledger, one for each record."""
    return [_event(ledger, record) for record in ledger.records]


def _event(ledger: Ledger, record: AnyRecord) -> dict[str, Any]:
    common = {
        "record": record.number,
        "created": record.created.isoformat(timespec="seconds"),
        "event": record.record,
    }
    match record:
        case Opening():
            signed = f"; signed by {record.key}" if record.key else ""
            says = f"corpus {record.corpus}; {_targets(record.caps)}{signed}"
            return common | {"release": "", "says": says}
        case NewKey():
            before = "in place of the key before" if record.proof else "with all records before"
            return common | {"release": "", "says": f"signed by {record.key}, {before}"}
        case NewCaps():
            return common | {"release": "", "says": f"{_targets(record.caps)}; {record.reason}"}
        case Reservation():
            part = f", partition {record.part.name}, {record.part.sort}" if record.part else ""
            return common | {
                "release": record.release,
                "says": f"{total_cost(record.guarantee)}{part}",
            }
        case Commit():
            says = f"release.json {record.card_sha256[:12]}"
        case ComparedIds():
            says = "its ids are in no other partition"
        case Cancellation():
            says = record.reason
        case Refusal():
            says = "no release: its noisy outcome was told"
    of = ledger.records[record.reservation]
    assert isinstance(of, Reservation)
    return common | {"release": of.release, "says": says}


def _targets(caps: Sequence[Cap]) -> str:
    return "; ".join(f"{cap.title}: {shown(numbers(cap.target))}" for cap in caps)


def history_lines(events: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table of the events."""
    keys = ("record", "created", "event", "release", "says")
    yield from aligned([keys, *(tuple(str(event[key]) for key in keys) for event in events)])


def shown(found: dict[str, Any], *, down: bool = False) -> str:
    """Format a charge, rounded against the publisher: up if it is used, `down` if it is left."""
    epsilon, delta = (Fraction(found[key]) for key in ("epsilon_exact", "delta_exact"))
    rounded = floor if down else ceiling
    return f"epsilon {rounded(epsilon)}" + (f", delta {rounded(delta)}" if delta else "")


def sums(account: dict[str, Any]) -> Iterator[str]:
    """Yield the sums of an account under a filter: the used part of their caps, and the rest."""
    for name, key in _SUMS:
        yield f"{name} {_sum(account[key])}"


def _sum(one: dict[str, str]) -> str:
    used, cap, left = (Fraction(one[key]) for key in ("used", "cap", "left"))
    return f"{ceiling(used)} of {floor(cap)} ({floor(left)} left)"
