"""The index that word embeddings come with makes releases of text, which inherit what it cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from card_schema import assert_valid
from embedding_releases import METHODS, embeddings, prepare, vectors_of

from quietcorpus.indexes.words.word_index import open_index

if TYPE_CHECKING:
    from tests.conftest import Workspace

Words = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module", params=METHODS)
def released(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    new_workspace: Callable[[Path], Workspace],
    lee_texts: list[str],
) -> Workspace:
    """A workspace with a release of word embeddings, and at `words` one of text by its index."""
    workspace = new_workspace(tmp_path_factory.mktemp(request.param))
    prepare(workspace, lee_texts)
    workspace.release_here(embeddings(workspace, request.param))
    return workspace


@pytest.mark.slow
def test_the_index_is_of_the_released_vectors(released: Workspace) -> None:
    # Kills: an index of other vectors or in another order, one that calls itself public.
    index = open_index(str(released.output / "index"))
    vectors = vectors_of(released.output)
    assert index.vocabulary.terms.to_pylist() == list(vectors)
    np.testing.assert_array_equal(index.vectors, np.stack(list(vectors.values())))
    promised = released.card()["guarantee"]
    assert index.manifest.provenance == "private"
    assert index.manifest.guarantee == {
        key: promised[key] for key in ("definition", "unit", "parameters", "statement")
    }
    binary = next(f for f in released.card()["files"] if f["path"] == "vectors.bin")
    assert index.manifest.source == {"uri": "vectors.bin", "sha256": binary["sha256"]}


@pytest.mark.parametrize("mechanism", ["madlib", "brr"])
def test_text_inherits_what_the_index_cost(
    released: Workspace, words: Words, mechanism: str
) -> None:
    # Kills: a private index whose cost is forgotten, or added to a definition that it is not of.
    path = str(released.output / "index")
    name = f"text-{mechanism}"
    changes = words(mechanism=mechanism, index=path) | {
        "release": name,
        "input": {"path": "input/corpus.parquet"},
        "output": f"released/{name}",
    }
    done = released.release(changes)
    output = released.output.with_name(name)
    card, first = released.card(output), released.card()
    assert_valid(card)
    promised = first["guarantee"]
    inherited = {key: promised[key] for key in ("definition", "unit", "parameters", "statement")}
    assert card["budget"]["inherited"] == [{"artefact": "index", **inherited}]
    assert [artefact["provenance"] for artefact in card["artefacts"]] == ["private"]
    assert card["guarantee"]["definition"] == "metric differential privacy"
    assert card["guarantee"]["statement"].endswith(
        "This takes the index as given; it was made from private data, whose cost comes on top: "
        + promised["statement"]
    )
    assert card["budget"]["total"]["epsilon"] == 10
    lines = " ".join(card["guarantee"]["not_protected"])
    assert "the people whose data the index was made from" in lines
    assert promised["statement"] in (output / "README.md").read_text()
    assert f"and       for the data of its index: {promised['statement']}" in done.stdout
    known = set(vectors_of(released.output))
    assert {word for row in released.rows(output) for word in row["text"].split()} <= known

    done = released.run("verify", f"released/{name}")
    assert done.returncode == 0, done.stderr
    assert promised["statement"] in done.stdout


def test_an_index_without_its_cost_is_refused(
    released: Workspace, words: Words, tmp_path: Path
) -> None:
    # Kills: a private index whose manifest has lost its guarantee, taken for one that cost nothing.
    copy = tmp_path / "index"
    copy.mkdir()
    for path in (released.output / "index").iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    manifest = json.loads((copy / "manifest.json").read_text())
    del manifest["guarantee"]
    (copy / "manifest.json").write_text(json.dumps(manifest))
    changes = words(index=str(copy)) | {"output": "released/never"}
    done = released.run("release", str(released.spec(changes)))
    assert done.returncode == 2
    assert "was made from private data and does not say under which guarantee" in done.stderr
    assert not released.output.with_name("never").exists()


def test_show_tells_what_it_cost(released: Workspace) -> None:
    # Kills: a cost that only machines read.
    done = released.run("index", "show", "released/out/index")
    assert done.returncode == 0, done.stderr
    assert released.card()["guarantee"]["statement"] in done.stdout
    assert "provenance    private" in done.stdout
