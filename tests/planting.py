"""Ways to plant a fault into a mechanism before it is audited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from correct_audits import Audits, Patch

from quietcorpus.transforms.reading.documents import Documents

Faults = dict[str, tuple[Callable[[Patch], Audits], str]]
"""By name: what plants the fault and returns what is then audited, and the audit that must tell."""


def of(stated: Callable[[], Audits], plant: Callable[[Patch], None]) -> Callable[[Patch], Audits]:
    def planted(patch: Patch) -> Audits:
        plant(patch)
        return stated()

    return planted


def without_place(module: Any) -> Callable[[Patch], None]:
    """Noise by a document's content alone: equal documents share it."""

    def plant(patch: Patch) -> None:
        real = module.document_addresses

        def shared(stream: Any, documents: Documents, offsets: Any, terms: Any) -> Any:
            nowhere = Documents(
                documents.source, 0 * documents.rows, documents.texts, documents.columns
            )
            return real(stream, nowhere, offsets, terms)

        patch.setattr(module, "document_addresses", shared)

    return plant
