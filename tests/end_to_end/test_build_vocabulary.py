"""Public vocabularies of a language, from a package."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from machine import without

import quietcorpus as qc
from quietcorpus.indexes.tokenizers import Tokenizer
from quietcorpus.indexes.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.mark.parametrize(
    ("language", "rule", "text"),
    [
        ("de", "unicode-words-v1", "Die Straße und das Haus"),
        ("ja", "icu-words-v1", "東京で家電を買う"),
    ],
)
def test_its_words_are_found_in_texts(tmp_path: Path, language: str, rule: str, text: str) -> None:
    # Kills: words that no text yields, or that are there twice; another order than by frequency;
    # another tokeniser than the language needs.
    made = qc.build_vocabulary(tmp_path / "made", language, words=3_000)
    content = (tmp_path / "made" / "words.txt").read_bytes()
    words = content.decode().splitlines()
    assert len(words) == len(set(words)) == made["words"] == 3_000
    named = made["tokenizer"] if isinstance(made["tokenizer"], str) else made["tokenizer"]["name"]
    assert named == rule
    tokenizer = Tokenizer.here(rule, language if rule == "icu-words-v1" else None)
    vocabulary = Vocabulary(words, tokenizer)
    _, found = vocabulary.look_up(tokenizer.tokenize(pa.array([text])))
    assert len(found) >= 4
    assert found.min() < 20
    assert json.loads((tmp_path / "made" / "manifest.json").read_text()) == made
    assert made["files"][0]["sha256"] == hashlib.sha256(content).hexdigest()
    assert (made["provenance"], made["licence"]) == ("public", "CC BY-SA 4.0")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"language": "xx"}, "language: 'xx' is not one that wordfreq has; give one of ar, "),
        ({"language": "hi", "words": 10**6}, "words: 1000000 is more than the "),
        ({"language": "de", "words": 0}, "words: 0 is not above zero"),
        ({"language": "de", "tokenizer": "none"}, "tokenizer: 'none' is not a tokeniser; give "),
    ],
    ids=str,
)
def test_what_is_refused(tmp_path: Path, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(qc.InputError) as raised:
        qc.build_vocabulary(tmp_path / "made", **arguments)  # type: ignore[arg-type]
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "made").exists()


def test_a_release_counts_its_words(workspace: Workspace) -> None:
    # Kills: a list that a spec cannot name; without the package, a traceback.
    arguments = ("index", "build-vocabulary", "--language", "de", "--output", "german")
    made = workspace.run(*arguments, "--words", "500")
    assert made.returncode == 0, made.stderr
    assert made.stdout.splitlines()[0] == "vocabulary    german/words.txt"
    workspace.json_lines(["Die Straße und das Haus sind hier"] * 50, "corpus.jsonl")
    mechanism = {"kind": "histogram", "precision": 1, "epsilon": 8}
    workspace.release({"mechanism": mechanism | {"vocabulary": {"public": "german/words.txt"}}})
    table = pq.ParquetFile(workspace.output / "vocabulary.parquet").read()
    weights = dict(zip(table["term"].to_pylist(), table["weight"].to_pylist(), strict=True))
    assert weights["und"] > 40 > weights["aber"]


def test_the_command_refuses_in_one_line(workspace: Workspace) -> None:
    # Kills: a folder that is overwritten; without the package, a traceback.
    arguments = ("index", "build-vocabulary", "--language", "de", "--output", "german")
    (workspace.folder / "german").mkdir()
    (workspace.folder / "german" / "mine").write_text("mine")
    assert "german" in workspace.error_of(workspace.run(*arguments))
    assert [path.name for path in (workspace.folder / "german").iterdir()] == ["mine"]
    lacking = workspace.run(
        *arguments[:-1], "other", environment=without(workspace, "wordfreq"), fresh=True
    )
    assert workspace.error_of(lacking) == (
        "wordfreq is not installed; install the extra [vocabularies]"
    )
