"""`quietcorpus evaluate --reference-text`: text of another tool beside a release of words."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from evaluations import CANARY, CLASSES, assert_silent, content_of, evaluate, figures, write_corpus

from quietcorpus.indexes.words.word_index import open_index

if TYPE_CHECKING:
    from tests.conftest import Workspace

pytestmark = pytest.mark.slow

DOCUMENTS = 100
KEPT = {"path": "input/*.parquet", "id": "article", "keep": ["article"]}
GIVEN = ("--reference-text", "left.jsonl", "--draws", "1", "--no-audit", "--label", "label")


def leave(workspace: Workspace, texts: list[str]) -> None:
    """Write the corpus's texts as a tool left them, from the last to the first."""
    ids = pq.read_table(workspace.folder / "input/corpus.parquet")["article"].to_pylist()
    rows = [
        json.dumps({"article": own, "text": text}) for own, text in zip(ids, texts, strict=True)
    ]
    (workspace.folder / "left.jsonl").write_text("\n".join(rows[::-1]) + "\n")


def test_text_of_another_tool(
    workspace: Workspace, lee_texts: list[str], words: Callable[..., dict[str, Any]]
) -> None:
    write_corpus(workspace, lee_texts[:DOCUMENTS], telling="government")
    block = words(mechanism="madlib", epsilon=25, out_of_vocabulary="drop")
    workspace.release({"input": KEPT} | block)
    texts = pq.read_table(workspace.folder / "input/corpus.parquet")["text"].to_pylist()
    leave(workspace, texts)
    done = evaluate(workspace, *GIVEN)
    assert done.returncode == 0, done.stderr
    content = content_of(workspace)
    # A tool that changes nothing leaves the original. Kills: texts joined by their places.
    of = {
        key: (one["mean"], one["first"]["low"])
        for one in content["figures"]
        for key in [(one["subject"], one["measure"], one["group"])]
    }
    shared = {key[1:] for key in of if key[0] == "reference"} - {
        ("unchanged", ""),
        *(key[1:] for key in of if key[1].endswith("-lost")),
    }
    assert {name for name, _ in shared} >= {"f1", "words-f1", "linkage", "facts", "membership"}
    assert {key: of["reference", *key] for key in shared} == {
        key: of["original", *key] for key in shared
    }
    assert of["reference", "words-accuracy-lost", ""][0] == 0
    assert of["reference", "unchanged", ""][0] == 1
    # An attacker on places and lengths makes nothing of another tool's.
    assert ("reference", "linkage", "by likelihood") not in of
    assert "text of another tool" in (workspace.folder / "report/evaluation.html").read_text()

    # Half of each text is left. Kills: draws kept from another output of the tool, and words that
    # count as unchanged wherever some text has them.
    halves = [" ".join(text.split()[: len(text.split()) // 2]) for text in texts]
    leave(workspace, halves)
    done = evaluate(workspace, *GIVEN)
    assert done.returncode == 0, done.stderr
    own = figures(content_of(workspace))
    known = set(open_index(block["mechanism"]["index"]).vocabulary.terms.to_pylist())
    before, after = (
        sum(word in known for text in some for word in text.lower().split())
        for some in (texts, halves)
    )
    assert own["unchanged", "reference"] == pytest.approx(after / before, abs=0.03)
    secrets = [CANARY, *CLASSES, "somebody-1", "paper-17"]
    assert_silent(workspace, done.stdout + done.stderr, secrets)

    refused = evaluate(workspace, *GIVEN, spec=None)
    assert refused.returncode == 2
    assert "--id: missing; " in refused.stderr
