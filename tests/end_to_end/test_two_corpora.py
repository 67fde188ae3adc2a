"""No two corpora share noise, whatever they are called; one corpus repeats its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from tests.conftest import Workspace

# A hundred words, each in twelve documents, near the threshold: of two independent selections the
# same are chosen with a chance of (p^2 + (1 - p)^2)^100, about 1e-28 for the p of .62 here.
LETTERS = "abcdefghij"
WORDS = [f"word{a}{b}" for a in LETTERS for b in LETTERS]
SELECTION: dict[str, Any] = {
    "mechanism": {
        "kind": "histogram",
        "precision": 1,
        "epsilon": 1,
        "vocabulary": {"private": {"epsilon": 0.5, "delta": 0.003}},
    },
}
COUNTS: dict[str, Any] = {
    "mechanism": {
        "kind": "histogram",
        "precision": 10,
        "epsilon": 1,
        "vocabulary": {"public": "words.txt"},
    },
}
BAGS: dict[str, Any] = {
    "mechanism": {
        "kind": "bag-of-words",
        "precision": 2,
        "epsilon": 1,
        "vocabulary": {"public": "words.txt"},
        "compression": {"method": "none"},
    },
}
Released = Callable[..., Any]


@pytest.fixture
def released(workspace: Workspace) -> Released:
    """The content of a corpus's release of the same id: its vocabulary, or its documents' rows."""
    (workspace.folder / "words.txt").write_text("\n".join(WORDS))
    number = 0

    def release(corpus: str, changes: dict[str, Any]) -> Any:
        nonlocal number
        number += 1
        output = workspace.folder / "released" / str(number)
        workspace.release({"input.path": f"{corpus}/*.jsonl", "output": str(output)} | changes)
        if changes is BAGS:
            rows = workspace.rows(output)
            return sorted((tuple(row["terms"]), tuple(row["counts"])) for row in rows)
        table = pq.read_table(output / "vocabulary.parquet")
        if changes is SELECTION:
            return set(table["term"].to_pylist())
        return table["weight"].to_pylist()

    return release


def write(folder: Path) -> Path:
    """Two files of the same documents, of the same time."""
    folder.mkdir()
    for name in ("a.jsonl", "b.jsonl"):
        text = " ".join(WORDS)
        (folder / name).write_text(f'{{"text": "{text}"}}\n' * 6)
        os.utime(folder / name, (1_700_000_000, 1_700_000_000))
    return folder


@pytest.mark.parametrize("changes", [SELECTION, COUNTS, BAGS], ids=["selection", "counts", "bags"])
def test_two_corpora_under_one_id(
    changes: dict[str, Any], released: Released, workspace: Workspace
) -> None:
    # Kills: a key of the release's id alone, by which sums that are equal get equal noise: what
    # differs between two corpora would then be seen with certainty.
    write(workspace.folder / "one")
    shutil.copytree(workspace.folder / "one", workspace.folder / "other")
    first, second = released("one", changes), released("other", changes)
    assert first != second
    if changes is SELECTION:
        assert 20 <= len(first) <= 95  # 62 are expected
    # The negative control: the same corpus at the same place, bit for bit.
    assert released("one", changes) == first


def test_an_altered_corpus_draws_anew_everywhere(released: Released, workspace: Workspace) -> None:
    # One document more, in the other file. Kills: noise of the unaltered documents that both
    # releases share, by which whoever has both knows which were altered.
    corpus = write(workspace.folder / "corpus")
    before = released("corpus", BAGS)
    with (corpus / "b.jsonl").open("a") as file:
        file.write('{"text": "wordaa"}\n')
    after = released("corpus", BAGS)
    # Rows of a hundred noisy counts at a rate of 1/2: two are equal with a chance below 1e-30.
    assert not set(before) & set(after)
    assert len(after) == len(before) + 1
