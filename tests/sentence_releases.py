"""Releases of sentence embeddings of real text: of what and how, what is in them, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from quietcorpus.transforms.errors import InputError

if TYPE_CHECKING:
    from conftest import Workspace

Sentences = Callable[..., dict[str, Any]]
INPUT = {"path": "input/part-*.jsonl", "keep": ["article"]}
DOCUMENTS = 40
FILES = 3
LAWS: dict[str, dict[str, Any]] = {
    "depth": {"utility": ...},  # the default
    "optimistic-depth": {"utility": "optimistic-depth", "projections": 7},
    "similarity": {},
    "truncation": {"mechanism": "truncation", "utility": ...},
    "projected-mean": {"mechanism": "projected-mean", "utility": ..., "directions": 5},
}
NOISY = "truncation", "projected-mean"


def corpus(workspace: Workspace, texts: list[str]) -> None:
    """Texts under their numbers, in three files, which become as many shards."""
    records = [{"text": text, "article": number} for number, text in enumerate(texts)]
    for number in range(FILES):
        workspace.json_lines(records[number::FILES], f"part-{number}.jsonl")


def in_order(workspace: Workspace, output: str = "out") -> list[dict[str, Any]]:
    """The released rows, by number."""
    rows = workspace.rows(workspace.output.with_name(output))
    rows.sort(key=lambda row: int(row["article"]))
    assert [int(row["article"]) for row in rows] == list(range(len(rows)))
    return rows


def refusal(workspace: Workspace, changes: dict[str, Any]) -> str:
    """The line by which a release is refused; in this process, for speed."""
    with pytest.raises(InputError) as raised:
        workspace.release_here(changes)
    found = str(raised.value)
    assert "\n" not in found
    workspace.assert_nothing_left()
    assert not workspace.output.parent.exists() or not list(workspace.output.parent.iterdir())
    return found
