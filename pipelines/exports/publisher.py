"""Facts that no card has: who publishes the release, where, and what for."""

from __future__ import annotations

from dataclasses import dataclass

from quietcorpus.transforms.errors import InputError

CURATOR_TYPES = ("Government", "Industry", "Nonprofit")
"""The types that the registry of deployments knows."""


@dataclass(frozen=True)
class Publisher:
    """The publisher's own statements, which nothing checks.

    Attributes:
        curator: who publishes the release.
        curator_type: one of `CURATOR_TYPES`.
        use: the purpose of the release.
        region: which region the documents are of, or whose law applies.
    """

    curator: str | None = None
    curator_type: str | None = None
    use: str | None = None
    region: str | None = None

    def require(self, form: str) -> tuple[str, str, str, str]:
        """Return all four; raises InputError if one is missing or empty."""
        for name in ("curator", "curator_type", "use", "region"):
            if not (getattr(self, name) or "").strip():
                raise InputError(f"{name}: the form {form} needs it, and no card has it")
        return str(self.curator), str(self.curator_type), str(self.use), str(self.region)
