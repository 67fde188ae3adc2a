"""Two releases of public texts, from coarse to fine, with the narrowed pool between them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from documents_on_topics import LABELLED, corpus
from public_pools import INPUT, Texts, carrying_pool

import quietcorpus as qc

if TYPE_CHECKING:
    from tests.conftest import Workspace

FIRST, SECOND = 10, 8
"""The epsilons of both."""


@dataclass(frozen=True)
class Rounds:
    """A pool on five topics in lists, a release of two, the narrowed pool, and a release of it."""

    workspace: Workspace
    pool: Path
    first: Path
    narrowed: Path
    second: Path


def pool_in_lists(folder: Path, each: int = 40, probes: int = 3) -> Path:
    """Build a pool of so many texts on each of five topics, in ten lists."""
    return carrying_pool(folder, each, search=f"ivf:lists=10,probes={probes}")


def changes(public_texts: Texts, name: str, pool: Path | str, **block: Any) -> dict[str, Any]:
    """Return the changes that make a spec of one of the releases."""
    own = public_texts(pool=str(pool), **LABELLED | block)
    return INPUT | {"release": name, "output": f"released/{name}"} | own


def first_round(workspace: Workspace, public_texts: Texts, **block: Any) -> tuple[Path, Path, Path]:
    """Make a release of documents on two topics; return pool, release and narrowed pool."""
    corpus(workspace)
    pool, narrowed = pool_in_lists(workspace.folder), workspace.folder / "narrowed"
    workspace.release_here(changes(public_texts, "first", pool, **{"epsilon": FIRST} | block))
    first = workspace.folder / "released/first"
    qc.narrow_pool(first, pool, narrowed)
    return pool, first, narrowed


def both(workspace: Workspace, public_texts: Texts) -> Rounds:
    """Make both releases."""
    pool, first, narrowed = first_round(workspace, public_texts)
    workspace.release_here(changes(public_texts, "second", narrowed, epsilon=SECOND))
    return Rounds(workspace, pool, first, narrowed, workspace.folder / "released/second")
