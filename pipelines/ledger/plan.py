"""The plan of several releases: their joint cost, before any of them runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quietcorpus.mechanisms.guarantees import ceiling
from quietcorpus.pipelines.card.parameters import parameters, total_cost
from quietcorpus.pipelines.kinds.prepare import prepare
from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.holding import request
from quietcorpus.pipelines.spec.loading import load_spec
from quietcorpus.transforms.errors import CapReached, InputError


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
    asked = request(spec, prepare(spec), run="0" * 32)
    known = ledger.state.of_release(spec.release)
    found: dict[str, Any] = {
        "spec": path,
        "release": spec.release,
        "partition": spec.ledger.partition,
        "disjoint": spec.disjoint,
        "cost": total_cost(parameters(asked.cost.guarantee)),
        "known": known is not None,
        "accounts": [],
        "refused": None,
        "capped": False,
    }
    if known is not None:
        return found
    try:
        charges = ledger.foresee(asked)
    except InputError as error:
        return found | {"refused": str(error), "capped": isinstance(error, CapReached)}
    return found | {"accounts": [_afterwards(ledger, one.account) for one in charges]}


def _afterwards(ledger: Ledger, account: int) -> dict[str, str]:
    """Return what an account comes to with all releases foreseen so far."""
    cap, used = ledger.state.caps[account], ledger.state.used(account)
    return {
        "account": cap.title,
        "used": str(used.epsilon),
        "delta_used": str(used.delta),
        "cap": str(cap.most.epsilon),
        "text": f"epsilon {ceiling(used.epsilon)} of {ceiling(cap.most.epsilon)}",
    }
