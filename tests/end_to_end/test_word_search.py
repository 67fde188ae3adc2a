"""Releases of words by each engine: their bytes, their cards, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import faiss
import numpy as np
import pytest
from canaries import IN_PROCESS, assert_unseen
from noisy_queries import brute, squared
from retries import tables

from quietcorpus.evaluation.calibration import noisy_queries
from quietcorpus.indexes.words.word_index import open_index
from quietcorpus.pipelines.jobs.kind import prepare
from quietcorpus.pipelines.kinds.words import job as word_meaning
from quietcorpus.pipelines.schema.loading import load_spec

if TYPE_CHECKING:
    from tests.conftest import Workspace

Changes = Callable[..., dict[str, Any]]
LISTS = 24
UNKNOWN = "xylocanary"


@pytest.fixture
def changes(listed: Path, words: Changes) -> Changes:
    """Makes the changes by which a workspace's spec becomes one of words, by an engine."""

    def make(engine: str, output: str = "out", **block: Any) -> dict[str, Any]:
        search = {"engine": engine} | ({"probes": 3} if engine == "faiss-ivf" else {})
        made = words(index=str(listed), search=search, **block)
        return made | {"input": {"path": "input/*"}, "output": f"released/{output}"}

    return make


@pytest.fixture
def several_files(workspace: Workspace, lee_texts: list[str]) -> Workspace:
    (workspace.input / "corpus.jsonl").unlink()
    for number in range(5):
        workspace.json_lines(lee_texts[number * 8 :][:8], f"{number}.jsonl")
    return workspace


def released(workspace: Workspace, spec: dict[str, Any], *options: str) -> dict[str, bytes]:
    workspace.release(spec, *options)
    return tables(workspace.folder / spec["output"])


@pytest.mark.slow
def test_exhaustive_engines_release_the_same_bytes(
    several_files: Workspace, changes: Changes, words: Changes, listed: Path
) -> None:
    # Kills: an engine in the stage's key, a tie that goes elsewhere; a card that names an engine
    # where the spec has none.
    plain = words(index=str(listed)) | {"input": {"path": "input/*"}, "output": "released/plain"}
    exact = released(several_files, plain)
    assert len(exact) == 5
    assert released(several_files, changes("exact", "exact")) == exact
    assert released(several_files, changes("faiss-flat", "flat")) == exact
    codes = released(several_files, changes("exact", "codes", mechanism="brr", epsilon=1))
    flat = changes("faiss-binary-flat", "flat-codes", mechanism="brr", epsilon=1)
    assert released(several_files, flat) == codes
    cards = {
        name: several_files.card(several_files.folder / "released" / name)
        for name in ("plain", "flat", "flat-codes")
    }
    assert "search" not in cards["plain"]["mechanism"]
    assert cards["flat"]["mechanism"]["search"] == {"engine": "faiss-flat"}
    assert cards["flat-codes"]["mechanism"]["search"] == {"engine": "faiss-binary-flat"}
    assert cards["flat"]["meaning"] == cards["plain"]["meaning"]
    assert "recall" not in json.dumps(cards)


@pytest.mark.slow
def test_another_faiss_finishes_no_approximate_release(
    workspace: Workspace, changes: Changes, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a release half of whose words another version of FAISS finds; one by an exact engine
    # that waits for the old version.
    monkeypatch.chdir(workspace.folder)

    def computing(engine: str) -> str:
        return prepare(load_spec(str(workspace.spec(changes(engine))))).computing

    before = computing("faiss-ivf"), computing("faiss-flat"), computing("exact")
    monkeypatch.setattr(faiss, "__version__", "0.0.0")
    assert before[1:] == (computing("faiss-flat"), computing("exact")) == ("", "")
    assert computing("faiss-ivf") == "faiss 0.0.0" != before[0]


def test_the_recall_on_the_card_is_that_of_brute_force(
    workspace: Workspace, changes: Changes, listed: Path
) -> None:
    # Kills: recall on words without noise or at another epsilon, of other probes, or of the exact
    # engine with itself.
    workspace.release(changes("faiss-ivf", epsilon=12))
    card = workspace.card()
    assert card["mechanism"]["search"] == {"engine": "faiss-ivf", "probes": 3}
    (typical,) = card["meaning"]["typical"]
    index = open_index(str(listed))
    assert index.lists is not None
    queries = noisy_queries(
        index.vectors, 12.0, word_meaning.QUERIES, np.random.SeedSequence([word_meaning._SEED, 1])
    )
    near = np.argsort(squared(index.lists.centroids, queries), axis=1, kind="stable")[:, :3]
    of_word = np.empty(index.manifest.words, np.int64)
    for number in range(LISTS):
        of_word[index.lists.members(number)] = number
    nearest = brute(index.vectors, queries)
    share = (near == of_word[nearest][:, None]).any(axis=1).mean()
    assert typical["recall"]["share"] == share
    assert typical["recall"]["queries"] == len(queries)
    low, high = typical["recall"]["interval"]
    assert low < share < high
    assert 0.05 < share < 0.95  # or the others would hardly differ
    readme = (workspace.output / "README.md").read_text()
    assert f"{share:.3f} ({low:.3f} to {high:.3f}, of 2,048 noisy vectors)" in readme
    assert "Words were found by approximate search, in the 3 lists" in readme


@pytest.mark.parametrize("engine", ["faiss-flat", "faiss-ivf"])
def test_nothing_but_words_of_the_index_comes_out(
    workspace: Workspace, changes: Changes, listed: Path, engine: str
) -> None:
    # At an epsilon that keeps every known word. Kills: a word that is copied where a list has none.
    vocabulary = set(open_index(str(listed)).vocabulary.terms.to_pylist())
    workspace.json_lines([f"The {UNKNOWN} police {UNKNOWN.upper()}", UNKNOWN, "police"])
    done = workspace.release(changes(engine, epsilon=1000), *IN_PROCESS)
    for row in workspace.rows():
        assert set(row["text"].split()) <= vocabulary
    assert_unseen({UNKNOWN.encode()}, workspace.folder, workspace.input, done.stdout, done.stderr)


ENGINE = "mechanism.search.engine: "
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "unknown": ({"search": {"engine": "hnsw"}}, f"{ENGINE}'hnsw' is not allowed"),
    "probes": (
        {"search": {"engine": "faiss-ivf", "probes": LISTS + 1}},
        f"mechanism.search: probes: {LISTS + 1} is not allowed; give 1 to {LISTS}, the lists",
    ),
    "default probes": (
        {"search": {"engine": "faiss-ivf"}},
        f"mechanism.search: probes: 32 is not allowed; give 1 to {LISTS}, the lists",
    ),
    "no probes": (
        {"search": {"engine": "faiss-ivf", "probes": 0}},
        "mechanism.search.probes: 0 is not allowed; give a positive whole number",
    ),
    "probes of another": (
        {"search": {"engine": "faiss-flat", "probes": 3}},
        "mechanism.search.probes: is the number of lists to search, for faiss-ivf alone",
    ),
    "codes": (
        {"search": {"engine": "faiss-binary-flat"}},
        f"{ENGINE}faiss-binary-flat is not for madlib; give one of exact, faiss-flat,",
    ),
    "vectors": (
        {"search": {"engine": "faiss-ivf"}, "mechanism": "brr"},
        f"{ENGINE}faiss-ivf is not for brr; give one of exact, faiss-binary-flat",
    ),
    "gpu": (
        {"search": {"engine": "faiss-gpu-flat"}},
        "mechanism.search: the installed FAISS has no part for GPUs; install a build that has",
    ),
    "unknown key": ({"search": {"engine": "exact", "nprobe": 3}}, "mechanism.search.nprobe: "),
}


@pytest.mark.parametrize("fault", BAD)
def test_a_search_of_no_use(workspace: Workspace, words: Changes, listed: Path, fault: str) -> None:
    # One line, and nothing is written.
    block, message = BAD[fault]
    assert message in workspace.refused(words(index=str(listed), **block))
    workspace.assert_nothing_left()


def test_an_index_without_lists(workspace: Workspace, words: Changes) -> None:
    message = workspace.refused(words(search={"engine": "faiss-ivf"}))
    assert "has no inverted lists" in message
    workspace.assert_nothing_left()
