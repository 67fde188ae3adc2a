"""Preparing `kind: public-texts`."""

from __future__ import annotations

from quietcorpus.transforms.installed import require_installed

from ..schema.public_texts import PublicTextsSpec
from .kind import Kind


def resolve(spec: PublicTextsSpec, _: int = 1) -> Kind:
    """Prepare a release; raises InputError for an unusable spec or a missing package."""
    require_installed("dp_accounting", "flint", key="mechanism.kind", extra="public-texts")
    # This module imports optional packages.
    from .public_texts_users import UserTextsKind
    from .public_texts_votes import PublicTextsKind

    if spec.user is not None:
        return UserTextsKind.resolve(spec)
    return PublicTextsKind.resolve(spec)
