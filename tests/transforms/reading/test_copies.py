"""Copies of the text in other columns, counted by batches."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from itertools import chain

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quietcorpus.transforms.reading import copies
from quietcorpus.transforms.reading.copies import Copies, _tables
from quietcorpus.transforms.reading.documents import Documents

TEXT = "I wrote to the bank on Monday, and nobody answered!"


def counted(texts: list[str], values: pa.Array) -> Copies:
    columns = pa.table({"note": values})
    rows = np.arange(len(texts))
    return Copies.of(Documents("", rows, pa.array(texts, pa.large_string()), columns), ["note"])


def test_rows_without_text_or_value_do_not_count() -> None:
    # Kills: a share of all rows, among which empty ones hide the copies.
    found = counted([TEXT, "", TEXT, " !"], pa.array([TEXT, TEXT, None, TEXT]))
    assert (found.rows, found.found) == ({"note": 1}, {"note": 1})


def test_a_long_text_is_compared_to_its_end() -> None:
    # Kills: texts of 2^16 characters and more that are not looked at.
    text = " ".join(f"w{number}" for number in range(20_000))
    assert counted([text], pa.array([text])).found == {"note": 1}
    assert counted([text], pa.array([text[::-1]])).found == {"note": 0}


@pytest.mark.parametrize("copies", [4, 5])
def test_one_in_twenty_is_too_many(copies: int) -> None:
    # Kills: `>` for `>=`, another share, and a sum that forgets a batch.
    values = [TEXT] * copies + ["loan"] * (100 - copies)
    batches = (counted([TEXT] * 50, pa.array(part)) for part in (values[:50], values[50:]))
    total = sum(batches, start=Copies())
    assert (total.rows["note"], total.found["note"]) == (100, copies)
    assert total.documents == {"note": 100}
    assert total.too_many == (["note"] if copies == 5 else [])


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        ("no", "No!", 1),
        ("no", "a notary", 0),
        ("x" * 300, "x" * 19, 0),
        ("xy" * 300, "xy" * 10, 1),
        ("xy" * 300, "before " + "xy" * 100, 1),
        ("\u6f22\u5b57" * 300, "\u6f22\u5b57" * 75 + "q", 0),
        ("\u6f22\u5b57" * 300, "q " + "\u6f22\u5b57" * 99 + "\u6f22", 0),
        ("\u6f22\u5b57" * 300, "q " + "\u6f22\u5b57" * 100, 1),
    ],
    ids=[
        "short",
        "part of a word",
        "too short a part",
        "the beginning",
        "its first 200 letters",
        "wide letters and another",
        "its first 199 wide letters",
        "its first 200 wide letters",
    ],
)
def test_short_values_are_compared_with_what_they_can_hold(
    text: str, value: str, found: int
) -> None:
    # Kills: a look that leaves out rows whose value could repeat the text.
    assert counted([text], pa.array([value])).found == {"note": found}


def test_columns_without_words_repeat_nothing() -> None:
    for values in (pa.array([1]), pa.array([True]), pa.nulls(1)):
        assert counted(["1"], values).found == {"note": 0}


ACCENTED = 'The café said "no"\nand the bank\u2019s clerk \U00020000 nothing at all'
JSON: dict[str, Callable[[str], str]] = {
    "a string": json.dumps,
    "after spaces": lambda text: " \n" + json.dumps({"a": text}),
    "after a byte-order mark": lambda text: "\ufeff" + json.dumps({"a": text}),
    "a key": lambda text: json.dumps({"a": {text: 1}}),
    "the text's beginning as a key": lambda text: json.dumps({text[:36]: 1}),
    "lines": lambda text: json.dumps({"n": 1}) + "\n" + json.dumps({"a": text[:36]}),
    "not a number": lambda text: json.dumps({"s": float("nan"), "a": text[:36]}),
    "with more after it": lambda text: json.dumps({"a": text}) + "; and so on",
    "cut": lambda text: json.dumps({"a": text})[:-2],
    "within a string": lambda text: json.dumps([json.dumps(json.dumps({"a": text}))]),
    "cut within a string": lambda text: json.dumps([json.dumps(text)])[:-4],
    "far behind": lambda text: json.dumps({"n": "x " * 10_001, "a": text}),
    "one field of others": lambda text: json.dumps({"id": "case 7", "a": text[:36]}),
    "tokens": lambda text: json.dumps([{"tok": word, "pos": "NN"} for word in text.split()]),
}


@pytest.mark.parametrize("kind", JSON)
def test_copies_in_json(kind: str) -> None:
    # Kills: a look at objects and lists alone, at what a strict parser takes, at the beginning, at
    # values alone, or at all strings in one; escapes that stay, or that are read unit by unit.
    text = ACCENTED
    assert counted([text], pa.array([JSON[kind](text)])).found == {"note": 1}
    assert counted(["Other " + text], pa.array([JSON[kind]("Another " * 9)])).found == {"note": 0}


def test_copies_in_nested_columns() -> None:
    # Kills: a look at all strings of a struct in one, at JSON in strings alone, or at a map's
    # values alone.
    tokens = [{"tok": word, "pos": "NN"} for word in TEXT.split()]
    keys = pa.array([[(TEXT, 1)]], pa.map_(pa.string(), pa.int64()))
    data = json.dumps({TEXT: 1}).encode()
    for values in (pa.array([tokens]), keys, pa.array([data])):
        assert counted([TEXT], values).found == {"note": 1}


def test_backslashes_of_the_text_itself() -> None:
    # Kills: a text of which only the form without escapes is compared.
    text = r"see \textbf{bold} and C:\new"
    for value in (text, json.dumps(text), json.dumps(text)[:-1], "see textbf bold and C new"):
        assert counted([text], pa.array([value])).found == {"note": 1}


@pytest.mark.parametrize("value", ["[" * 100_000, '{"a":' * 5000, "[" * 500 + "]" * 500, '["', '"'])
def test_what_is_hardly_json_is_no_error(value: str) -> None:
    # Kills: a depth of recursion that the input decides.
    assert counted([TEXT], pa.array([value + " words"])).found == {"note": 0}
    assert counted([TEXT], pa.array([value + TEXT])).found == {"note": 1}


FAR = [-(1 << 63), (1 << 63) - 1]


@pytest.mark.parametrize(
    "kind",
    [pa.timestamp("us"), pa.timestamp("ns", "Nowhere/City"), pa.duration("ms"), pa.time64("ns")],
    ids=str,
)
def test_values_that_python_does_not_have(kind: pa.DataType) -> None:
    # Kills: a year beyond 9999, an unknown zone or a nanosecond that ends a run, inside a struct.
    moments = pa.array([1, 2] if pa.types.is_time(kind) else FAR, pa.int64()).view(kind)
    values = pa.StructArray.from_arrays([moments, pa.array([TEXT, "loan"])], ["at", "note"])
    found = counted([TEXT, TEXT], values)
    assert (found.rows, found.found) == ({"note": 2}, {"note": 1})


def letters(text: str) -> str:
    return "".join(re.findall(r"\w", unicodedata.normalize("NFKC", text).casefold()))


def repeats(text: str, value: str) -> bool:
    """The definition, of strings without JSON and backslashes."""
    words = [
        " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", one).casefold()))
        for one in (text, value)
    ]
    one, other = letters(text), letters(value)
    return f" {words[0]} " in f" {words[1]} " or any(
        len(a) >= 20 and a[:200] in b for a, b in ((one, other), (other, one))
    )


WRITTEN = "ab|Ab |a-b|\xe4b|a\u0308b|\xdf|ss|\ufb01|fi|\ub9d0 |\u044f|\u042f,|\u03c2|\u03a3|\u304b"
PIECES = st.lists(
    st.sampled_from([*WRITTEN.split("|"), "\u3099", "\u2026", "\xa0", "\u0390", "\u6f22"]),
    max_size=110,
).map("".join)


@example("a\xe4b " * 9, "q " * 200, 1)
@given(PIECES, PIECES, st.integers(0, 3))
def test_what_is_looked_at_first_does_not_matter(one: str, other: str, held: int) -> None:
    # Kills: letters that a look without normalising adds or leaves out, a bound on lengths.
    text, value = [(one, other), (one + other, one), (one, other + one), (one + other, other)][held]
    if letters(text) and letters(value):
        wanted = {"note": int(repeats(text, value))}
        assert counted([text], pa.array([value])).found == wanted
        assert counted([text + "q"] * 2, pa.array([value, value])).found["note"] in (0, 2)


def test_characters_that_become_letters() -> None:
    # All characters of which normalising or case folding makes ASCII letters, or takes one away.
    # Kills: a character read as it is written.
    made = [
        f"x{character}y"
        for character in map(chr, chain(range(0x80, 0xD800), range(0xE000, 0x20000)))
        if re.sub(r"[^\x00-\x7f]", "", letters(f"x{character}y")) != "xy"
    ]
    assert len(made) > 1000
    texts = ["q " * 200 + one + "z" * 20 for one in made]
    values = [letters(one + "z" * 20) for one in made]
    assert counted(texts, pa.array(values)).found == {"note": len(made)}


def test_characters_that_are_normalised_alone() -> None:
    # Kills: a mark, or a letter that composes with the one before it, among the characters that
    # are normalised one by one; letters of one that are not those of its string.
    seconds = {
        unicodedata.normalize("NFD", character)[-1]
        for character in map(chr, chain(range(0x80, 0xD800), range(0xE000, 0x20000)))
        if unicodedata.normalize("NFC", unicodedata.normalize("NFD", character)) == character
        and unicodedata.normalize("NFD", character) != character
    }
    _, others = _tables()
    alone = [chr(point) for point in np.flatnonzero(others != -1).tolist()]
    assert len(alone) > 32_000
    for character in alone:
        first = unicodedata.normalize("NFKD", character)[0]
        assert not unicodedata.combining(first)
        assert first not in seconds
        packed = int(others[ord(character)])
        given = (packed & 0xFFFFFF).to_bytes(3, "little")[: packed >> 24 & 15].decode()
        assert (given, len(given)) == (letters(character), packed >> 28)


def test_texts_beside_a_label_are_not_normalised(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: a search that takes every text through Python's normal forms, whatever stands beside
    # it: three times the time of a whole release of bags.
    normalised: list[str] = []
    usual = copies._normal
    monkeypatch.setattr(copies, "_normal", lambda text: (normalised.append(text), usual(text))[1])
    labels = [
        "Payday loan, title loan, or personal loan",
        "Debt collection",
        "\u0437\u0430\u0451\u043c " * 9,
    ]
    texts = [
        f"{TEXT} Number {number}. \u0411\u0430\u043d\u043a, caf\xe9, Stra\xdfe. " * 9
        for number in range(300)
    ]
    found = counted(texts, pa.array(labels * 100))
    assert (found.rows, found.found) == ({"note": 300}, {"note": 0})
    assert not set(normalised) & set(texts)


def test_half_a_surrogate_pair_in_json_is_no_error() -> None:
    # Kills: a nested value whose strings cannot be encoded, which ended the run.
    values = pa.array([[json.dumps("\ud83d")], [json.dumps("\ude00" + TEXT)]])
    found = counted([TEXT, TEXT], values)
    assert found.found == {"note": 1}
