"""Preparing `kind: public-texts`."""

from __future__ import annotations

from quietcorpus.transforms.errors import require_installed

from ...jobs.kind import Kind
from .spec import PublicTextsSpec


def resolve(spec: PublicTextsSpec, _: int = 1) -> Kind:
    """Prepare a release; raises InputError for an unusable spec or a missing package."""
    require_installed("dp_accounting", "flint", key="mechanism.kind", extra="public-texts")
    # The module imports optional packages.
    from .voting import PublicTextsKind, UserTextsKind

    if spec.user is not None:
        return UserTextsKind.resolve(spec)
    return PublicTextsKind.resolve(spec)
