"""Public vocabularies of a language, from a package."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from machine import without

import quietcorpus as qc
from quietcorpus.indexes.listed_words import ListedWords
from quietcorpus.indexes.tokenizers import Tokenizer
from quietcorpus.indexes.vocabulary import Vocabulary
from quietcorpus.pipelines.kinds.prepare import prepare
from quietcorpus.pipelines.spec.loading import as_spec
from quietcorpus.transforms.shards import Tally

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


LIST_OF = {"vocabulary": {"public": "made/words.txt"}}
BLOCKS: dict[str, dict[str, Any]] = {
    "histogram": {"precision": 1, "epsilon": 1} | LIST_OF,
    "bag-of-words": {"precision": 1, "epsilon": 1, "compression": {"method": "none"}} | LIST_OF,
    "word-embeddings": {
        **{"method": "cooccurrence", "user": "who", "users": 10**6, "epsilon": 4, "delta": 1e-8},
        **{"dimensions": 2, "few_users": "accept", **LIST_OF},
    },
}


@pytest.fixture
def german(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A list of German words, in a folder that is the current one; its manifest."""
    monkeypatch.chdir(tmp_path)
    return qc.build_vocabulary("made", "de", words=1_000)


def written(known: int) -> str:
    """Write a corpus of 1,000 words, of which so many are in the list; return its path."""
    words = Path("made/words.txt").read_text(encoding="utf-8").split()
    text = " ".join((words[:10] * 100)[:known] + ["zqx"] * (1_000 - known))
    path = f"corpus-{known}.parquet"
    pq.write_table(pa.table({"text": [text, ""], "who": ["a", "b"]}), path)
    return path


def released(kind: str, known: int, caplog: pytest.LogCaptureFixture) -> list[str]:
    """Release such a corpus, and return what is said of languages."""
    caplog.clear()
    name = f"{kind}-{known}"
    asked = {"release": name, "input": {"path": written(known)}, "output": f"released/{name}"}
    card = qc.release(asked | {"mechanism": {"kind": kind} | BLOCKS[kind]})
    assert "German" not in card.to_json()
    said = [record.getMessage() for record in caplog.records]
    return [line for line in said if "German" in line]


def test_a_list_knows_its_share_of_texts(german: dict[str, Any]) -> None:
    # Kills: a coverage of all words that the package has, or in another unit.
    assert 0.6 < german["coverage"] < 0.75
    assert 0.8 < qc.build_vocabulary("more", "de", words=20_000)["coverage"] < 0.95


@pytest.mark.parametrize("kind", ["histogram", "bag-of-words"])
def test_a_corpus_of_another_language_is_noticed(
    german: dict[str, Any], caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    # Kills: another threshold; a kind that does not count its known words, or that counts each of
    # them once; a warning on the card, or with a word of the corpus.
    least = math.ceil(german["coverage"] * 2 / 3 * 1_000)
    assert released(kind, least, caplog) == []
    (said,) = released(kind, least - 1, caplog)
    assert said.startswith("mechanism.vocabulary.public: fewer words of the corpus are in ")
    assert "zqx" not in said


def test_only_a_list_with_its_own_manifest_tells_a_language(
    german: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    # Kills: a language that is believed of a list that was changed; a release that fails for a
    # manifest that it does not need.
    with Path("made/words.txt").open("a", encoding="utf-8") as stream:
        stream.write("zqxx\n")
    assert released("histogram", 1, caplog) == []
    for content in (b"", b"[]", b"{}", b'{"files": [{"sha256": 3}]}', b"\xff"):
        Path("made/manifest.json").write_bytes(content)
        assert ListedWords.of_manifest(content, "") is None
    assert released("histogram", 2, caplog) == []


def test_users_vocabularies_tell_it_too(german: dict[str, Any]) -> None:
    # Kills: word embeddings that notice nothing.
    mechanism = {"kind": "word-embeddings"} | BLOCKS["word-embeddings"]
    asked = {"release": "a", "input": {"path": "a"}, "output": "b", "mechanism": mechanism}
    kind = prepare(as_spec(asked))
    (said,) = kind.noticed(Tally(tokens=1_000, known=100))
    assert "German" in said
    assert kind.noticed(Tally(tokens=1_000, known=900)) == ()
