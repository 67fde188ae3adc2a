"""Plans before any run: the joint cost of several releases, and a schedule of many alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, get_args

from quietcorpus.mechanisms.accounting.concentrated import gaussian_epsilon
from quietcorpus.mechanisms.accounting.filters import Composition
from quietcorpus.mechanisms.accounting.guarantees import ceiling, floor
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.errors import CapReached, InputError

from ..card.parameters import parameters, total_cost
from ..jobs.kind import Kind, prepare
from ..schema.loading import load_spec
from ..schema.spec import Spec
from ..terminal.progress import table
from .beside import require_counted
from .book import Ledger
from .caps import Cap, Charge, Cost, FilteredCap
from .records import Charged
from .reservation import request, request_of_run, warn_of_uncounted
from .views import numbers, shown


def plan(paths: Sequence[str]) -> list[dict[str, Any]]:
    """Return what each spec's release would cost its ledger after those before it.

    Nothing is written. A release that the ledger knows by its id costs nothing more. Raises
    InputError for a spec without a ledger, and for anything that is wrong with a spec. If the
    ledger would refuse the release, `refused` gives the reason, and `capped` is true if that is a
    cap which it would pass.
    """
    ledgers: dict[str, Ledger] = {}
    names: dict[str, str] = {}
    return [_planned(path, ledgers, names) for path in paths]


def _planned(path: str, ledgers: dict[str, Ledger], names: dict[str, str]) -> dict[str, Any]:
    spec = load_spec(path)
    if spec.ledger is None:
        raise InputError(f"{path}: ledger: missing; name the ledger that counts this release")
    if names.setdefault(spec.release, path) != path:
        raise InputError(f"{path}: release: {spec.release} is also the id of {names[spec.release]}")
    ledger = ledgers.get(spec.ledger.path) or Ledger.open(spec.ledger.path)
    ledgers[spec.ledger.path] = ledger
    asked = request(spec, prepare(spec), "0" * 32, ledger.state)
    known = ledger.state.of_release(spec.release) is not None
    found = _verdict(ledger, spec, lambda: [] if known else ledger.foresee(asked))
    return {"spec": path, "cost": total_cost(parameters(asked.cost.guarantee)), **found}


def of_run(spec: Spec, kind: Kind, key: ReleaseKey, identity: str) -> dict[str, Any] | None:
    """Return the ledger's answer to a run, as `plan` does; None for a spec without one.

    A release that the ledger knows is refused unless this run may go on with its reservation; if it
    may, `accounts` are as they are. Nothing is written. Raises InputError if the ledger cannot be
    read.

    Args:
        spec: the spec.
        kind: its kind of release, prepared.
        key: the key of the release.
        identity: the digest that `hold` is given.
    """
    if spec.ledger is None:
        return None
    ledger = Ledger.open(spec.ledger.path)
    require_counted(ledger, spec.output)
    warn_of_uncounted(kind, ledger.state)
    wanted = request_of_run(spec, kind, key, identity, ledger.state)
    return _verdict(ledger, spec, lambda: ledger.admit(wanted, identity))


def _verdict(ledger: Ledger, spec: Spec, charge: Callable[[], list[Charged]]) -> dict[str, Any]:
    """Return the answer of a ledger to a release, of which `charge` returns the charges."""
    assert spec.ledger is not None
    found: dict[str, Any] = {
        "release": spec.release,
        "partition": spec.ledger.partition,
        "disjoint": spec.disjoint,
        "known": ledger.state.of_release(spec.release) is not None,
        "accounts": [],
        "refused": None,
        "capped": False,
    }
    try:
        charges = charge()
    except InputError as error:
        return found | {"refused": str(error), "capped": isinstance(error, CapReached)}
    return found | {"accounts": [_afterwards(ledger, one.account) for one in charges]}


def _afterwards(ledger: Ledger, account: int) -> dict[str, str]:
    """Return what an account comes to with all releases foreseen so far."""
    cap, used = ledger.state.caps[account], ledger.state.stated(account)
    text = f"epsilon {ceiling(used.epsilon)} of {ceiling(cap.epsilon)}"
    found = {
        "account": cap.title,
        "used": str(used.epsilon),
        "delta_used": str(used.delta),
        "cap": str(cap.epsilon),
        "text": text,
    }
    if cap.rule is None:
        return found
    summed, most = ledger.state.used(account), cap.most
    rho = f"rho {ceiling(summed.rho)} of {floor(most.rho)}"
    return found | {"text": f"{text} at delta {ceiling(used.delta)}, {rho}", "rho": str(summed.rho)}


_PRECISION = 10**6


def schedule(path: str, releases: int) -> dict[str, Any]:
    """Return the spending limit of each of `releases` releases like a spec's, if only they spend.

    For each account of its ledger that counts the release, and each composition that the account
    could have been opened with at the same target: the most that `each` may spend, what as many
    releases as the spec has it come to `together`, and how many of them it has room for. Nothing is
    written, and what is spent already is not counted.
    Raises InputError for a spec without a ledger, one that the ledger has no account for, and for
    anything that is wrong with a spec.
    """
    if releases < 1:
        raise InputError(f"releases: {releases} is not allowed; give 1 or more")
    spec = load_spec(path)
    if spec.ledger is None:
        raise InputError(f"{path}: ledger: missing; name the ledger that counts this release")
    kind = prepare(spec)
    cost = Cost(kind.cost, kind.unit_scope, kind.concentrated)
    caps = [cap for cap in Ledger.open(spec.ledger.path).state.caps if cap.charge(cost) is not None]
    if not caps:
        raise InputError(
            f"{path}: ledger: {spec.ledger.path} has no account for {kind.cost.definition}"
        )
    return {
        "spec": path,
        "ledger": spec.ledger.path,
        "releases": releases,
        "cost": total_cost(parameters(kind.cost)),
        "accounts": [
            {
                "account": cap.title,
                "target": numbers(cap.target),
                "compositions": [
                    _composed(other, cost, releases) | {"own": other.rule is cap.rule}
                    for other in _others(cap)
                ],
            }
            for cap in caps
        ],
    }


def _others(cap: Cap) -> Iterator[Cap]:
    """Yield the cap, and what it would be under the other compositions at the same target."""
    if not isinstance(cap, FilteredCap) or not cap.delta:
        yield cap
        return
    plain = cap.model_dump(exclude={"composition", "approximate_delta", "rho"})
    for name in get_args(Composition):
        own = name == cap.composition
        yield cap if own else type(cap).model_validate(plain | {"composition": name})


def _composed(cap: Cap, cost: Cost, releases: int) -> dict[str, Any]:
    charge = cap.charge(cost)
    assert charge is not None
    together = cap.stated(_times(charge, releases))
    return {
        "composition": getattr(cap, "composition", "basic"),
        "each": _each(cap, cost, releases),
        "together": numbers(together),
        "room": _room(charge, cap.most),
    }


def _each(cap: Cap, cost: Cost, releases: int) -> dict[str, Any]:
    """Return the most that each may spend: epsilon at a share of delta, and rho under a filter."""
    delta = cap.delta / releases
    if cap.rule is None:
        return numbers(Charge(cap.epsilon / releases, delta))
    rho = cap.most.rho / releases
    if cost.noise is None:
        return numbers(Charge(_largest_epsilon(cap, rho))) | {"rho": str(rho)}
    found = numbers(Charge(gaussian_epsilon(rho, delta), delta)) | {"rho": str(rho)}
    # Rounded up: a multiplier that is too small by its last digit leaves the last one no room.
    return found | {"noise_multiplier": float(ceiling(_multiplier(rho)))}


def _multiplier(rho: Fraction) -> Fraction:
    """Return a noise multiplier of at most this rho: 1 / sqrt(2 rho), rounded up."""
    square = Fraction(_PRECISION**2) / (2 * rho)
    return Fraction(math.isqrt(math.ceil(square)) + 1, _PRECISION)


def _largest_epsilon(cap: Cap, rho: Fraction) -> Fraction:
    """Return the largest multiple of 1e-6 whose pure privacy costs at most `rho`."""
    assert cap.rule is not None
    low, high = 0, 1
    while cap.rule.of_epsilon(Fraction(high, _PRECISION)) <= rho:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        within = cap.rule.of_epsilon(Fraction(middle, _PRECISION)) <= rho
        low, high = (middle, high) if within else (low, middle)
    return Fraction(low, _PRECISION)


def _times(charge: Charge, releases: int) -> Charge:
    parts = (charge.epsilon * releases, charge.delta * releases, "", charge.rho * releases)
    return Charge(*parts)


def _room(charge: Charge, most: Charge) -> int:
    """Return how many such releases an empty account has room for."""
    parts = [(getattr(charge, name), getattr(most, name)) for name in ("epsilon", "delta", "rho")]
    return min(int(limit / one) for one, limit in parts if one)


def lines(found: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a table for each account."""
    releases = found["releases"]
    yield f"schedule  {releases} releases like {found['spec']}, each at {found['cost']}"
    for account in found["accounts"]:
        target = shown(account["target"], down=True)
        yield f"account   {account['account']}: {target}; what is spent already is not counted"
        rows = []
        for one in account["compositions"]:
            each = one["each"]
            rho = f", rho {floor(Fraction(each['rho']))}" if "rho" in each else ""
            noise = each.get("noise_multiplier")
            rows.append(
                (
                    one["composition"] + (" (this ledger)" if one["own"] else ""),
                    shown(each, down=True)
                    + rho
                    + (f", noise multiplier {noise:g}" if noise else ""),
                    shown(one["together"]),
                    str(one["room"]),
                )
            )
        columns = ("composition", f"each of {releases} may spend", "together", "room for")
        yield from table(columns, rows)
