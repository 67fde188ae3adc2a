"""Copies of the text in other columns, which no mechanism would protect."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from quietcorpus.transforms.reading.documents import Documents

_CHARACTERS = 20_000  # the most that are compared
_HEAD = 200  # characters that distinguish a text from others
_LONG = 20  # characters: so long a match is no accident
_COPIES = 20  # one row in so many is too many
_WORDS = re.compile(r"\w+")
_LETTER = r"[\pL\pN_]"


@dataclass(frozen=True)
class Copies:
    """The numbers of rows that have both text and value, and of those that repeat the text.

    Attributes:
        rows: rows with both, by column.
        found: rows among these whose value repeats the text, by column.
    """

    rows: Mapping[str, int] = field(default_factory=dict)
    found: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, documents: Documents, columns: Sequence[str]) -> Copies:
        """Count the copies in one batch.

        A row repeats the text if the value contains the text word for word, or if either has at
        least 20 letters and the other contains its first 200. Case, character forms, and what
        separates words are ignored.
        """
        rows, found = {}, {}
        for name in columns:
            both, copies = _counted(documents.texts, documents.columns[name])
            rows[name], found[name] = both, copies
        return cls(rows, found)

    def __add__(self, other: Copies) -> Copies:
        return Copies(_added(self.rows, other.rows), _added(self.found, other.found))

    @property
    def too_many(self) -> list[str]:
        """Return the columns that repeat the text in one row of twenty or more."""
        return [name for name, n in self.found.items() if n and n * _COPIES >= self.rows[name]]


def _added(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def _counted(texts: pa.LargeStringArray, column: pa.ChunkedArray) -> tuple[int, int]:
    """Return the numbers of rows that have both text and value, and that repeat the text."""
    values = pa.array(strings(column), pa.large_string())
    both = pc.and_(_has_words(texts), _has_words(values))
    # A short value can hold a short text alone. Most rows end here, unread.
    near = pc.or_(
        pc.less(pc.utf8_length(texts), _HEAD), pc.greater_equal(pc.utf8_length(values), _LONG)
    )
    rows = np.flatnonzero(pc.and_(both, near).to_numpy(zero_copy_only=False))
    found = sum(
        repeats(normal(texts[row].as_py()), normal(values[row].as_py())) for row in rows.tolist()
    )
    return int(pc.sum(both).as_py() or 0), found


def _has_words(column: pa.LargeStringArray) -> pa.BooleanArray:
    return pc.match_substring_regex(column, _LETTER)


def normal(value: str) -> str:
    """Return a value's words, with case, character forms and separators normalised."""
    if inner := _parsed(value):
        value = " ".join(_leaves(inner))
    return " ".join(_WORDS.findall(unicodedata.normalize("NFKC", value[:_CHARACTERS]).casefold()))


def repeats(text: str, value: str) -> bool:
    """Return whether a value repeats a text, both normalised; see `Copies.of`."""
    return bool(text and value) and (
        f" {text} " in f" {value} " or _begins_in(text, value) or _begins_in(value, text)
    )


def _begins_in(one: str, other: str) -> bool:
    letters = one.replace(" ", "")
    return len(letters) >= _LONG and letters[:_HEAD] in other.replace(" ", "")


def strings(column: pa.Array | pa.ChunkedArray) -> Iterator[str]:
    """Yield each value as a string: a nested value's strings joined, "" for other types."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        yield from (value or "" for value in column.to_pylist())
        return
    if pa.types.is_primitive(column.type):
        yield from [""] * len(column)
        return
    for value in column:
        try:
            yield " ".join(_leaves(value.as_py()))
        except UnicodeDecodeError:  # a nested string is not UTF-8, and the error would quote it
            yield ""


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        inner = _parsed(value)
        yield from [value] if inner is None else _leaves(inner)
    elif isinstance(value, bytes):
        yield value.decode(errors="replace")
    elif isinstance(value, dict):
        yield from _leaves(list(value.values()))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner)


def _parsed(value: str) -> Any:
    """Parse a JSON object or array; return None for any other string."""
    if not value.startswith(("{", "[")):
        return None
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
