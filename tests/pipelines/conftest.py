"""Releases of word embeddings that are verified: one by training of groups, one by counts with a
private vocabulary. Each test has copies to spoil."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from embedding_releases import PRIVATE, embeddings, prepare

if TYPE_CHECKING:
    from tests.conftest import Workspace

RELEASES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "sgd": (
        "sgd",
        60,
        {
            "budgets": {"column": "team", "epsilon": {"gold": 8, "silver": 3}},
            "training": {"steps": 3, "lot": 60},
        },
    ),
    # Of 60 users, the noise lets as few as two words into the vocabulary now and then.
    "cooccurrence": ("cooccurrence", 150, {"vocabulary": PRIVATE}),
}
"""By name: the method, the number of users, and the block."""


@pytest.fixture(scope="session")
def embedding_originals(
    tmp_path_factory: pytest.TempPathFactory,
    new_workspace: Callable[[Path], Workspace],
    lee_texts: list[str],
) -> dict[str, Path]:
    """The releases, by method; nobody may change them."""
    found = {}
    for name, (method, users, block) in RELEASES.items():
        workspace = new_workspace(tmp_path_factory.mktemp(name))
        prepare(workspace, lee_texts[:users])
        workspace.release_here(embeddings(workspace, method, users=users, **block))
        found[name] = workspace.output
    return found


@pytest.fixture
def copy(tmp_path: Path, embedding_originals: dict[str, Path]) -> Callable[[str], Path]:
    """Makes a copy that a test may spoil."""
    return lambda name: shutil.copytree(embedding_originals[name], tmp_path / "released" / "out")
