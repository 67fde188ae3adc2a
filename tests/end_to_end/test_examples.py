"""Every spec in examples/ runs, on what the demo prepares."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Workspace

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


NAMES = sorted(path.name for path in EXAMPLES.glob("*.yaml"))
ARTEFACTS = ("words", "sentence", "public")  # what these need takes long to make


@pytest.fixture
def prepared(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A workspace with what `make demo` prepares."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from demo import prepare

    prepare(workspace.folder)
    sys.modules.pop("demo")
    return workspace


def run(workspace: Workspace, name: str, folder: str) -> None:
    releases = workspace.folder / folder / "releases"
    before = set(releases.glob("*"))
    done = workspace.run("release", str(EXAMPLES / name))
    assert done.returncode == 0, done.stderr
    (output,) = set(releases.iterdir()) - before
    assert workspace.run("verify", str(output)).returncode == 0


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith(ARTEFACTS)])
def test_an_example_runs(prepared: Workspace, name: str) -> None:
    run(prepared, name, "build/demo")


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("words")])
def test_an_example_of_words_runs(prepared: Workspace, word_index: Path, name: str) -> None:
    # The demo's own index is made from vectors that this suite does without.
    folder = prepared.folder / "build" / "demo-words"
    shutil.copytree(word_index, folder / "index")
    shutil.copy(prepared.folder / "build/demo/corpus.jsonl", folder)
    run(prepared, name, "build/demo-words")


def test_the_example_of_sentences_runs(prepared: Workspace, candidates: Path) -> None:
    shutil.copytree(candidates, prepared.folder / "build/demo/candidates")
    run(prepared, "sentence-embeddings.yaml", "build/demo")


def test_the_example_of_public_texts_runs(prepared: Workspace) -> None:
    built = prepared.run(
        *("index", "build-pool", "build/demo/corpus.jsonl", "--output", "build/demo/pool"),
        "--provenance=public",
    )
    assert built.returncode == 0, built.stderr
    run(prepared, "public-texts.yaml", "build/demo")
    run(prepared, "public-texts-users.yaml", "build/demo")
