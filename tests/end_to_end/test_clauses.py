"""Text without spaces between its words: no vocabulary is made of its clauses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from tests.conftest import Workspace

CLAUSES = "酒店的服务态度非常好。房间很大。早餐也很丰富。我们下次还会再来这里住。"
WORDS = "酒店 的 服务 态度 非常 好。房间 很 大。早餐 也 很 丰富。我们 下次 还 会 再 来 这里 住。"
PRIVATE = {"private": {"epsilon": 20, "delta": 1e-5}}
REFUSAL = "mechanism.vocabulary.private: too many of the selected terms are clauses and not words"
KINDS: dict[str, dict[str, Any]] = {
    "bag-of-words": {},
    "histogram": {"mechanism.kind": "histogram", "mechanism.compression": ...},
    "word-embeddings": {
        "mechanism": {
            "kind": "word-embeddings",
            "method": "cooccurrence",
            "user": "author",
            "users": 200,
            "few_users": "accept",
            "epsilon": 30,
            "delta": 1e-4,
            "dimensions": 2,
        }
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_vocabulary_of_clauses_is_refused(workspace: Workspace, kind: str) -> None:
    # Kills: a selection whose terms nobody looks at, by documents or by users.
    records = [{"text": CLAUSES, "author": str(i)} for i in range(200)]
    workspace.json_lines(records)
    message = workspace.refused(KINDS[kind] | {"mechanism.vocabulary": PRIVATE})
    assert message.startswith(REFUSAL)
    assert not any(character in message for character in CLAUSES)


def test_words_that_are_parted_are_released(workspace: Workspace) -> None:
    workspace.json_lines([WORDS] * 200)
    workspace.release({"mechanism.vocabulary": PRIVATE})
    table = pq.read_table(workspace.output / "vocabulary.parquet")
    assert "酒店" in table["term"].to_pylist()


@pytest.mark.slow
def test_a_dictionary_finds_the_words(workspace: Workspace) -> None:
    # Kills: a refusal without its remedy, or one that stays when the remedy is taken.
    pytest.importorskip("icu4py")
    workspace.json_lines([CLAUSES] * 200)
    vocabulary = {"mechanism.vocabulary": PRIVATE}
    remedy = "give `tokenizer: {name: icu-words-v2, language: ...}`"
    assert workspace.refused(vocabulary).endswith(remedy)
    named = {"name": "icu-words-v2", "language": "zh"}
    workspace.release(vocabulary | {"mechanism.tokenizer": named})
    table = pq.read_table(workspace.output / "vocabulary.parquet")
    assert {"酒店", "服务", "早餐"} <= set(table["term"].to_pylist())
    assert workspace.card()["mechanism"]["tokenizer"].startswith("icu-words-v2 zh (")
