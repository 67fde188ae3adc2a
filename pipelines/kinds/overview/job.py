"""Preparing `kind: overview`."""

from __future__ import annotations

from quietcorpus.transforms.errors import require_installed

from ...jobs.kind import Kind
from .spec import OverviewSpec


def resolve(spec: OverviewSpec, _workers: int = 1) -> Kind:
    """Prepare a release; raises InputError for an unusable spec or a missing package."""
    require_installed("dp_accounting", "flint", key="mechanism.kind", extra="public-texts")
    # The module imports optional packages.
    from .counts import OverviewKind

    return OverviewKind.resolve(spec)
