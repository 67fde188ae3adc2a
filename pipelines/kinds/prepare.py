"""Preparing the kind of release that a spec asks for."""

from __future__ import annotations

from .. import registry
from ..schema.spec import Spec
from .kind import Kind


def prepare(spec: Spec, workers: int = 1) -> Kind:
    """Prepare a spec's kind of release; raises InputError before anything starts.

    `workers` is the number of local processes that the launcher's own work may use.
    """
    kind: Kind = registry.part(spec.mechanism.kind, "resolve")(spec.mechanism, workers)
    return kind
