"""The plan of several releases: their joint cost, before any of them runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quietcorpus.mechanisms.accounting.guarantees import ceiling, floor
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.errors import CapReached, InputError

from ..card.parameters import parameters, total_cost
from ..jobs.kind import Kind, prepare
from ..schema.loading import load_spec
from ..schema.spec import Spec
from .book import Ledger
from .holding import request, request_of_run, warn_of_uncounted
from .records import Charged


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
