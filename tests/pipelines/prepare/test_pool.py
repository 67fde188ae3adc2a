"""Building a pool: which texts are joined, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from encoders import make_small
from public_pools import TOPICS, texts_on

import quietcorpus as qc
from quietcorpus.indexes.documents import lsa
from quietcorpus.indexes.documents.pool import open_pool
from quietcorpus.mechanisms.sentences.deep_candidate import on_grid
from quietcorpus.pipelines.prepare import near_texts, pool_lists
from quietcorpus.pipelines.prepare import pool as job
from quietcorpus.transforms.artefacts.encoder import EncoderSource


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_small(tmp_path_factory.mktemp("models") / "small"))


def write(folder: Path, texts: list[str], name: str = "public.jsonl") -> str:
    path = folder / name
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return str(path)


def test_equal_texts_are_joined_and_empty_ones_left_out(tmp_path: Path, encoder: str) -> None:
    # Kills: a normalised text in the pool in place of the first one's own bytes.
    given = [
        " The  cat \n sat",
        "",
        "\t\n",
        "the cat sat",
        "\uff34\uff28\uff25 CAT SAT",
        "dogs run far away",
    ]
    made = qc.build_pool(
        write(tmp_path, given), tmp_path / "pool", provenance="public", encoder=encoder
    )
    found = open_pool(str(tmp_path / "pool"))
    assert found.manifest == made
    assert found.texts[0].as_py() == given[0]
    assert made.left_out["empty"] == 2
    assert made.left_out["equal"] == 2
    assert made.texts + made.left_out["near"] == 2
    source = EncoderSource.resolve("encoder", encoder)
    expected = on_grid(source.open().encode(found.texts.to_pylist()))
    np.testing.assert_array_equal(found.vectors, expected)
    assert made.encoder["sha256"] == source.digest


ALIKE = {
    "punctuation": ("Well, he came \u2013 late!", "well he came late"),
    "apostrophes": ("I don't know.", "I don\u2019t know"),
    "quotes": ("\u201cA good film\u201d, they said", "'A good film' they said..."),
    "full width": ("\u4f60\u597d\uff0c\u4e16\u754c\u3002", "\u4f60\u597d, \u4e16\u754c"),
    "a line's end": ("one line\r\nand another", "one line - and another"),
    "an invisible space": ("one\u200bline", "one line"),
}
APART = {
    "a word": ("he came late", "he came later"),
    "order": ("he came late", "late he came"),
    "numbers": ("version 1.5", "version 15"),
    "vowels": ("\u0915\u093f", "\u0915\u093e"),  # which are marks
    "emoji": ("a film \U0001f44d", "a film \U0001f44e"),
    "currencies": ("$5", "\u20ac5"),
    "nothing but punctuation": ("...", "?!"),
}


@pytest.mark.parametrize("name", ALIKE)
def test_texts_that_differ_in_punctuation_are_joined(name: str) -> None:
    # Kills: texts that are compared by their bytes or with punctuation, another than the first.
    assert job._distinct([*ALIKE[name], "another"]) == ([ALIKE[name][0], "another"], 0)


@pytest.mark.parametrize("name", APART)
def test_other_texts_stay_apart(name: str) -> None:
    # The control. Kills: marks, symbols and digits that are left out with punctuation, words that
    # run together, texts of punctuation that count as equal or empty.
    assert job._distinct(list(APART[name])) == (list(APART[name]), 0)


def test_a_pool_of_the_encoder_lsa_carries_it(tmp_path: Path) -> None:
    # Kills: an encoder of other texts than the pool's, one that is not saved, vectors that are not
    # the encoder's, texts that are joined because they are on one subject.
    first = texts_on(list(TOPICS), 1, 1)[0]
    given = [*texts_on(list(TOPICS), 10, 1), "", first.upper(), f"{first}!"]
    source = write(tmp_path, given)
    made = qc.build_pool(source, tmp_path / "pool", provenance="public", encoder="lsa")
    found = open_pool(str(tmp_path / "pool"))
    assert found.encoder is not None
    assert made.encoder == found.encoder.description
    assert made.encoder["name"] == "lsa"
    assert found.texts.to_pylist() == given[:50]
    assert made.left_out == {"empty": 1, "equal": 2, "near": 0, "edited": 0}
    assert made.lines()[0] == (
        "texts         50 of 53 documents; left out: 1 empty, 2 equal to another, 0 edited "
        "copies of one"
    )
    again = lsa.fit(pa.array(given[:50], pa.large_string()))
    assert again.description == made.encoder
    expected = on_grid(found.encoder.encode(found.texts.to_pylist()))
    np.testing.assert_array_equal(found.vectors, expected)
    with pytest.raises(qc.InputError) as caught:
        qc.build_pool(
            write(tmp_path, ["few texts", "are here"], "few.jsonl"),
            tmp_path / "none",
            provenance="public",
            encoder="lsa",
        )
    assert str(caught.value) == (
        f"source: {tmp_path}/few.jsonl is too small for the encoder lsa: an analysis takes two "
        "terms or more, each in 5 texts; give more documents, or another encoder"
    )
    assert not (tmp_path / "none").exists()


def test_the_encoder_lsa_joins_edited_copies(tmp_path: Path, encoder: str) -> None:
    # Kills: an encoder of the copies, too; copies that are counted as near by a cosine, or not at
    # all; a pool of copies in place of the first; copies that are sought beside a model.
    topics = list(TOPICS)
    given = [
        f"{a} {b}" for a, b in zip(texts_on(topics, 10, 1), texts_on(topics, 10, 2), strict=True)
    ]
    copies = [f"another {text}" for text in given[:7]]
    source = write(tmp_path, [*given, *copies])
    made = qc.build_pool(source, tmp_path / "pool", provenance="public", encoder="lsa")
    found = open_pool(str(tmp_path / "pool"))
    assert found.texts.to_pylist() == given
    assert made.left_out == {"empty": 0, "equal": 0, "near": 0, "edited": 7}
    assert made.near is None
    assert "0 equal to another, 7 edited copies of one" in made.lines()[0]
    assert made.encoder == lsa.fit(pa.array(given, pa.large_string())).description
    by_model = qc.build_pool(source, tmp_path / "other", provenance="public", encoder=encoder)
    assert "edited" not in by_model.left_out
    assert "edited" not in by_model.lines()[0]


def test_many_texts_have_lists_in_any_case(
    tmp_path: Path, encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The limit is lowered. Kills: a large pool that is compared as a whole, near texts that are
    # not joined there, and lists of texts that were left out.
    monkeypatch.setattr(pool_lists, "_TEXTS_A_LIST", 5)
    for module in (job, pool_lists):
        monkeypatch.setattr(module, "MOST_COMPARED", 200)
    monkeypatch.setattr(near_texts, "_CHUNK", 50)
    given = texts_on(list(TOPICS), 60, 1)
    given += [f"{text} {text.split()[0]}" for text in given[:100]]
    source = write(tmp_path, given)
    made = qc.build_pool(source, tmp_path / "pool", provenance="public", encoder=encoder)
    found = open_pool(str(tmp_path / "pool"))
    assert made.search is not None
    assert found.lists is not None
    assert made.left_out["near"] > 0
    assert made.texts + made.left_out["near"] == 400
    assert made.texts == found.lists.sizes.sum()
    assert "search        " in made.lines()[-1]


def test_what_cannot_be_a_pool_is_refused_in_one_line(
    tmp_path: Path, encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = write(tmp_path, ["a text", "another"])
    none = write(tmp_path, ["", " "], "none.jsonl")
    output = tmp_path / "pool"

    def refusal(source: str, **changes: str) -> str:
        options = {"provenance": "public", "encoder": encoder} | changes
        with pytest.raises(qc.InputError) as caught:
            qc.build_pool(source, output, **options)  # type: ignore[arg-type]
        assert not output.exists()
        assert "\n" not in str(caught.value)
        return str(caught.value)

    assert refusal(some, provenance="private").startswith("provenance: the texts of a pool are")
    assert refusal(none) == f"source: {none} has no text; give documents to choose from"
    assert refusal(some, text="body").startswith("text: ")
    assert refusal(str(tmp_path / "absent")).startswith("source: ")
    assert refusal(some, encoder="/nowhere").startswith("encoder: /nowhere is neither a folder")
    monkeypatch.setattr(job, "MOST_TEXTS", 1)
    assert refusal(some) == (
        f"source: {some} has 2 different texts; give at most 1, such as a sample"
    )
