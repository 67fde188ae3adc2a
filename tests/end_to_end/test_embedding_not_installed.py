"""Word embeddings where something is not installed: what needs it says so before anything is read,
and what does not need it works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from canaries import damage
from embedding_releases import documents, embeddings, not_installed, prepare, write_corpus

if TYPE_CHECKING:
    from tests.conftest import Workspace

USERS = 60
TRAINING = {"steps": 3, "lot": 30}


@pytest.fixture
def prepared(workspace: Workspace, lee_texts: list[str]) -> Workspace:
    """A corpus of a few users."""
    prepare(workspace, lee_texts[:USERS])
    return workspace


def changes_of(workspace: Workspace, method: str) -> dict[str, Any]:
    few = {"users": USERS} | ({"training": TRAINING} if method == "sgd" else {})
    return embeddings(workspace, method, **few)


MISSING: dict[tuple[str, str], str] = {
    ("torch", "sgd"): (
        "mechanism.method: torch is not installed; install the extra [training], "
        "or take method: cooccurrence"
    ),
    ("dp_accounting", "sgd"): (
        "mechanism.kind: dp-accounting is not installed; install the extra [embeddings]"
    ),
    ("flint", "cooccurrence"): (
        "mechanism.kind: python-flint is not installed; install the extra [embeddings]"
    ),
    ("ray", "sgd"): (
        "--workers: ray is not installed; install the extra [ray], or train in one process"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("module", "method"), MISSING)
def test_what_is_not_installed(
    prepared: Workspace, lee_texts: list[str], module: str, method: str
) -> None:
    # Kills: an import that not every installation has, and finding that out once all has been read.
    environment = not_installed(prepared, module)
    write_corpus(prepared, documents(lee_texts[:USERS]), row_group_size=20)
    damage(prepared)
    spec = str(prepared.spec(changes_of(prepared, method)))
    arguments = ("--workers", "2") if module == "ray" else ()
    done = prepared.run("release", spec, *arguments, environment=environment, fresh=True)
    assert prepared.error_of(done) == MISSING[module, method]


@pytest.mark.slow
def test_counts_need_neither_pytorch_nor_ray(prepared: Workspace) -> None:
    # Kills: an import that only trainings need, in the launcher or in a worker.
    environment = not_installed(prepared, "torch", "ray")
    spec = str(prepared.spec(changes_of(prepared, "cooccurrence")))
    done = prepared.run("release", spec, "--workers", "2", environment=environment, fresh=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_verify_without_the_accountant(prepared: Workspace) -> None:
    # Whoever reads a release needs not what makes one.
    # Kills: an import that only releases need.
    prepared.release_here(changes_of(prepared, "cooccurrence"))
    environment = not_installed(prepared, "dp_accounting")
    done = prepared.run("verify", "released/out", environment=environment, fresh=True)
    assert done.returncode == 0, done.stderr
    assert "not compared: what the noise costs (dp-accounting is not installed)" in done.stdout
