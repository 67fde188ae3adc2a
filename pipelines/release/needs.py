"""The places that a spec names, and the access that a release needs there."""

from __future__ import annotations

from collections.abc import Iterator

from ..schema.spec import Spec
from ..storage.places import root
from ..storage.reachable import Need, require
from ..storage.stores import is_supported


def check(spec: Spec, *, writing: bool = True) -> None:
    """Raise InputError for a spec's first place that does not answer, or refuses the access.

    Whether a place can be written to shows only in a file that is written, and deleted again;
    without `writing`, it is not checked.
    """
    needs = [need for need in _needs(spec) if writing or need.verb != "write"]
    require([need for need in needs if is_supported(need.uri)])


def _needs(spec: Spec) -> Iterator[Need]:
    yield Need("output", spec.output, "list")
    yield Need("output", spec.output, "write")
    yield Need("input.path", root(spec.input.path), "list")
    for key, uri in spec.mechanism.sources():
        yield Need(f"mechanism.{key}", uri, "read")
    if spec.rejects:
        yield Need("rejects.path", f"{spec.rejects.path}/{spec.release}", "write")
    if spec.ledger:
        yield Need("ledger", f"{spec.ledger.path}/record", "write")
    if spec.checkpoints:
        yield Need("checkpoints", f"{spec.checkpoints}/{spec.release}", "write")
