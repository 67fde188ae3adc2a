"""Documents on two of a pool's topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from public_pools import texts_on

if TYPE_CHECKING:
    from tests.conftest import Workspace


FOUND = ["law", "space"]
DOCUMENTS = texts_on(FOUND, 61, 2)  # a number that stands nowhere else
LABELLED = {"strata": {"column": "kind", "labels": ["a", "b", "none of them"]}}


def corpus(workspace: Workspace, name: str = "corpus.parquet", rows: int = 30) -> None:
    """Documents in several splits, the first topic's under the label a, the other's under b."""
    labels = ["a"] * 61 + ["b"] * 60 + ["unlisted"]
    workspace.parquet({"text": DOCUMENTS, "kind": labels}, name, row_group_size=rows)
