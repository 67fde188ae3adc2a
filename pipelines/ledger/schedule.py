"""The schedule of many releases alike: what each may spend, under each kind of account."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, get_args

from quietcorpus.mechanisms.accounting.concentrated import gaussian_epsilon
from quietcorpus.mechanisms.accounting.filters import Composition
from quietcorpus.mechanisms.accounting.guarantees import ceiling, floor
from quietcorpus.transforms.errors import InputError

from ..card.parameters import parameters, total_cost
from ..jobs.kind import prepare
from ..schema.loading import load_spec
from ..terminal.table import aligned
from .book import Ledger
from .caps import Cap, Charge, Cost, FilteredCap
from .tables import numbers, shown

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
        rows = [("composition", f"each of {releases} may spend", "together", "room for")]
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
        yield from aligned(rows)
