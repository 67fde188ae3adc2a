"""Draws for a document's sentences are repeated by the same release, and by no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from retries import tables
from sentence_releases import DOCUMENTS, INPUT, LAWS, NOISY, Sentences, corpus, in_order

if TYPE_CHECKING:
    from tests.conftest import Workspace

pytestmark = pytest.mark.slow

LOW = {
    "similarity": 0.01,
    "truncation": 2,
    "projected-mean": 1,
}  # at which little of a document is left
DRAWN = ["similarity", pytest.param("truncation", marks=pytest.mark.nightly), "projected-mean"]
"""Laws of a draw for a document, and of noise for one. Truncation adds noise as projected-mean."""


@pytest.fixture
def release(law: str, sentence_release: Callable[[str], Workspace]) -> Workspace:
    """A workspace with a release."""
    return sentence_release(law)


@pytest.mark.parametrize(
    "law",
    [
        pytest.param("mean-depth", marks=pytest.mark.nightly),  # as `test_conformance.py` has it
        "truncation",
        "projected-mean",
    ],
)
def test_the_engine_does_not_matter(release: Workspace, law: str, sentences: Sentences) -> None:
    # Against what this process has released. Kills: draws by a worker's own generator, embeddings
    # that depend on what else a worker encodes, columns that hang on the number of workers.
    changes = {"input": INPUT, "output": f"released/{law}"} | sentences(**LAWS[law])
    workers = ("--workers", "2") if law in NOISY else ()
    release.release(changes, *workers)
    again = tables(release.output.with_name(law))
    assert len(again) == 3
    assert again == tables(release.output)


@pytest.mark.parametrize("law", DRAWN)
def test_another_release_draws_anew(release: Workspace, law: str, sentences: Sentences) -> None:
    # At an epsilon at which a draw hardly depends on the document: 40 uniform draws from 40 are
    # those of another release at half of the places with a chance below 1e-20.
    low = LAWS[law] | {"epsilon": LOW[law]}
    for name in ("one", "again", "other"):
        identity = {"release": "other" if name == "other" else "test", "output": f"released/{name}"}
        release.release_here({"input": INPUT} | identity | sentences(**low))
    one, again, other = (in_order(release, name) for name in ("one", "again", "other"))
    assert one == again
    assert not {row["id"] for row in one} & {row["id"] for row in other}
    pairs = zip(one, other, strict=True)
    assert sum(a["embedding"] == b["embedding"] for a, b in pairs) < DOCUMENTS / 2


@pytest.mark.parametrize("law", DRAWN)
def test_equal_documents_draw_independently(
    workspace: Workspace, law: str, sentences: Sentences, lee_texts: list[str]
) -> None:
    # 64 draws that are uniform but for a factor of exp(0.02) leave 25 and more of 40 candidates
    # untouched with a chance below 1e-6 (32 are expected to be met). Kills: noise that is a
    # function of the text, or of a batch, alone.
    corpus(workspace, [lee_texts[-1]] * 64)
    low = LAWS[law] | {"epsilon": LOW[law]}
    workspace.release_here({"input": INPUT} | sentences(**low))
    different = {tuple(row["embedding"]) for row in workspace.rows()}
    assert len(different) == 64 if law in NOISY else len(different) > 15


@pytest.mark.usefixtures("one_corpus")
@pytest.mark.parametrize("law", DRAWN)
def test_only_the_first_sentences_count(
    workspace: Workspace, law: str, sentences: Sentences
) -> None:
    # Kills: a limit that is ignored, or off by one; draws that depend on what is not read.
    first = "Police found him. The river rose. It was cold! Who knows?"
    for name, text in {
        "one": f"{first} Nothing else happened.",
        "two": f"{first} The government fell on Monday. Then came spring.",
        "three": f"Police lost him.{first[17:]} Nothing else happened.",
    }.items():
        corpus(workspace, [text] * 20)
        changes = {"input": INPUT, "output": f"released/{name}"} | sentences(**LAWS[law])
        workspace.release_here(changes)
    one, two, three = (in_order(workspace, name) for name in ("one", "two", "three"))
    assert one == two
    assert not {row["id"] for row in one} & {row["id"] for row in three}
