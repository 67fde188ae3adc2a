"""Releases of texts in scripts without spaces: every kind that finds words, from an index on."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_specs import WEAK

import quietcorpus as qc
from quietcorpus.indexes.tokens.tokenizers import ICU_WORDS_NAME, Tokenizer
from quietcorpus.indexes.words.word_index import open_index
from tests.indexes.tokens.test_tokenizers import texts, tokens_of

pytest.importorskip("icu4py")

THAI = {"name": ICU_WORDS_NAME, "language": "th"}
WORDS = (
    *("น้ำ", "ท่วม", "ที่", "กรุงเทพฯ", "กิน", "ข้าว", "ผัด", "อร่อย", "มาก", "ปี", "นี้"),
    *("北京", "大学", "東京", "ラーメン", "hello"),
)
TEXTS = {
    "น้ำท่วมที่กรุงเทพฯ ปีนี้": "น้ำ ท่วม ที่ กรุงเทพฯ ปี นี้",
    "กินข้าวผัดอร่อยมาก": "กิน ข้าว ผัด อร่อย มาก",
    "ปีนี้กินข้าวที่北京大学 hello": "ปี นี้ กิน ข้าว ที่ 北京 大学 hello",
    "ลับมากzqx 7 a@b.c": "มาก",
}
LOUD = {"precision": 1, "epsilon": 60, "vocabulary": {"public": "words.txt"}}
BLOCKS: dict[str, dict[str, Any]] = {
    "words": {"mechanism": "madlib", "epsilon": 10**4, "index": "index"},
    "histogram": LOUD,
    "bag-of-words": LOUD | {"compression": {"method": "none"}},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with texts, a vocabulary, and an index for Thai."""
    made = tmp_path_factory.mktemp("languages")
    pq.write_table(pa.table({"text": [*TEXTS] * 5}), made / "corpus.parquet")
    (made / "words.txt").write_text("\n".join(WORDS), encoding="utf-8")
    generator = np.random.default_rng(1)
    rows = [" ".join([word, *map(str, generator.normal(size=8).round(3))]) for word in WORDS]
    (made / "thai.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    build(made, "index", tokenizer=ICU_WORDS_NAME, language="th")
    return made


def build(folder: Path, name: str, **given: Any) -> None:
    qc.build_index(folder / "thai.txt", folder / name, provenance="public", bits=64, **given)


def spec(folder: Path, kind: str, **changes: Any) -> dict[str, Any]:
    block = {"kind": kind, "tokenizer": THAI} | BLOCKS[kind] | changes
    if "index" in block:
        block["index"] = str(folder / block["index"])
    else:
        block["vocabulary"] = {"public": str(folder / "words.txt")}
    corpus = str(folder / "corpus.parquet")
    output = str(folder / "_".join([kind, *changes]))
    whole = {"release": kind, "input": {"path": corpus}, "output": output, "mechanism": block}
    return whole | {"accept": WEAK}


@pytest.mark.parametrize("kind", BLOCKS)
def test_words_are_found_without_spaces(folder: Path, kind: str) -> None:
    # Next to no noise. Kills: a kind that reads texts by another rule than its spec's, or says
    # another on its card.
    card = qc.release(spec(folder, kind))
    said = card.mechanism.tokenizer  # type: ignore[attr-defined]
    assert said.startswith("icu-words-v2 th (")
    assert Tokenizer.of_description(said) == Tokenizer.here(ICU_WORDS_NAME, "th")
    found = qc.load(folder / kind, words=kind == "bag-of-words")
    listed = sorted(words for words in TEXTS.values() for _ in range(5))
    if kind == "words":
        assert sorted(found.rows["text"].to_pylist()) == listed
    elif kind == "bag-of-words":
        bags = [sorted(words) for words in found.rows["terms"].to_pylist()]
        assert sorted(bags) == sorted(sorted(words.split()) for words in listed)
    else:
        counts = dict(
            zip(found.rows["term"].to_pylist(), found.rows["weight"].to_pylist(), strict=True)
        )
        assert counts == {word: " ".join(listed).split().count(word) for word in WORDS}


def test_an_index_serves_its_own_tokenizer_alone(folder: Path) -> None:
    # Kills: words that are looked up as another rule divides them, so that most are unknown.
    own = "icu-words-v2 th is not the tokenizer of the index"
    build(folder, "plain")
    with pytest.raises(qc.InputError, match=f"{own}, unicode-words-v2; name that one, or build"):
        qc.release(spec(folder, "words", index="plain"))
    with pytest.raises(qc.InputError, match=r"unicode-words-v2 is not the tokenizer of the index"):
        qc.release(spec(folder, "words", tokenizer="unicode-words-v2"))
    with pytest.raises(
        qc.InputError, match=r"fr is not the tokenizer of the index, icu-words-v2 th"
    ):
        qc.release(spec(folder, "words", tokenizer=THAI | {"language": "fr"}))


def test_an_index_records_its_tokenizer(folder: Path) -> None:
    manifest = open_index(str(folder / "index")).manifest
    assert manifest.tokenizer == Tokenizer.here(ICU_WORDS_NAME, "th").law


def test_a_language_is_recorded_with_every_rule(folder: Path) -> None:
    # Kills: a language that only one rule takes, or that changes the words of another; one that is
    # not known; a manifest that has a language where none was given.
    build(folder, "spoken", language="th")
    build(folder, "silent")
    spoken, silent = (open_index(str(folder / name)).manifest for name in ("spoken", "silent"))
    assert (spoken.tokenizer, spoken.spoken) == ("unicode-words-v2", "th")
    assert silent.spoken is None
    assert "language" not in json.loads((folder / "silent" / "manifest.json").read_text())
    assert spoken.files == silent.files
    assert open_index(str(folder / "index")).manifest.spoken == "th"
    for make in (qc.build_index, qc.build_pool):
        with pytest.raises(qc.InputError, match=r"^language: 'xx' is not known; give one of af, "):
            make(folder / "thai.txt", folder / "none", provenance="public", language="xx")
    texts = [f"{word} {other} zq{n}" for n, (word, other) in enumerate(product(WORDS, WORDS))]
    pq.write_table(pa.table({"text": texts}), folder / "public.parquet")
    given: dict[str, Any] = {"provenance": "public", "encoder": "lsa"}
    pool = qc.build_pool(folder / "public.parquet", folder / "pool", language="th", **given)
    assert pool.language == "th"
    assert "language      Thai" in pool.lines()


@pytest.fixture(scope="module")
def privatizers(folder: Path) -> dict[str, qc.Privatizer]:
    return {
        policy: qc.Privatizer(folder / "index", "brr", "0.1", out_of_vocabulary=policy)
        for policy in ("drop", "draw")  # type: ignore[misc]
    }


@settings(max_examples=150, deadline=None)
@given(batch=st.lists(texts | st.sampled_from([*TEXTS]), min_size=1, max_size=3))
def test_nothing_comes_out_but_words_of_the_index(
    privatizers: dict[str, qc.Privatizer], batch: list[str]
) -> None:
    # Six scripts and more. Kills: an unknown word, a digit, a mark or a separator that is copied;
    # a traceback on odd text.
    found = tokens_of(Tokenizer.here(ICU_WORDS_NAME, "th"), *batch)
    for policy, privatizer in privatizers.items():
        released = [text.split(" ") if text else [] for text in privatizer.release(batch)]
        assert {word for words in released for word in words} <= set(WORDS)
        kept = [[w for w in words if policy == "draw" or w in WORDS] for words in found]
        assert [len(words) for words in released] == [len(words) for words in kept]


@pytest.mark.parametrize(("unknown", "warned"), [(2, False), (3, True)])
def test_a_corpus_of_another_language_is_noticed(
    folder: Path, caplog: pytest.LogCaptureFixture, unknown: int, *, warned: bool
) -> None:
    # One word in three is still taken for the index's language. Kills: a warning that the card
    # repeats, that quotes a word, or that counts documents.
    texts = pa.table({"text": [f"hello{' zqx' * unknown}", ""]})
    pq.write_table(texts, folder / f"other{unknown}.parquet")
    asked = spec(folder, "words", out_of_vocabulary="draw")
    asked["input"]["path"] = str(folder / f"other{unknown}.parquet")
    asked["output"] += str(unknown)
    card = qc.release(asked)
    said = [record.getMessage() for record in caplog.records if "one in 3" in record.getMessage()]
    assert len(said) == warned
    assert all(
        "index, whose words are Thai: is it of the corpus's language?" in one for one in said
    )
    assert "one in 3" not in card.to_json()
    assert "zqx" not in "".join(said)
