"""Copies of the text in other columns, which no mechanism would protect."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .bare import numbered
from .documents import Documents

_HEAD = 200  # characters that distinguish a text from others
_LONG = 20  # characters: a match of this length is not an accident
_COPIES = 20  # one row in twenty is too many
_DEPTH = 20  # levels of lists, objects, and JSON within strings, that are looked into
_FIELDS = 100  # of one value that are compared each for itself; the others count as one
_WORDS = re.compile(r"\w+")
_ESCAPE = re.compile(r"(?:\\+u[0-9a-fA-F]{4})+|\\+[nrtbf]?")  # of JSON, at any level
_JSON = json.JSONDecoder(strict=False)
_BEFORE_JSON = re.compile(r"[\s\ufeff\x1e,;]*(?=[\[{\"])")
_LETTER = r"[\pL\pN_]"
_LOWER = bytes(range(256)).lower()
_SEPARATORS = bytes(byte for byte in range(256) if not re.match(rb"\w", bytes([byte])))
# ASCII, and letters and signs of which normalising and case folding make none of ASCII's letters.
_AS_WRITTEN = re.compile(
    "[\0-\x7f\xa0-\xa9\xab-\xb1\xb4-\xb8\xbb\xbf-\xde\xe0-\xff\u0100-\u012f\u0131\u0134-\u013e\u0141-\u0148"
    "\u014a-\u017e\u0386-\u03ce\u0400-\u0482\u048a-\u04ff\u05d0-\u05ea\u0621-\u064a\u2010-\u2027\u2030-\u203a"
    "\u20ac\u3001-\u3011\u3041-\u3096\u30a1-\u30fc\u4e00-\u9fa5\uac00-\ud7a3]*"
)


@dataclass(frozen=True)
class Copies:
    """The numbers of rows that have both text and value, and of those that repeat the text.

    Attributes:
        rows: rows with both, by column.
        found: rows among these whose value repeats the text, by column.
        documents: all rows that were compared, by column.
    """

    rows: Mapping[str, int] = field(default_factory=dict)
    found: Mapping[str, int] = field(default_factory=dict)
    documents: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, documents: Documents, columns: Sequence[str]) -> Copies:
        """Count the copies in one batch.

        A row repeats the text if the value contains the text word for word, or if either has at
        least 20 letters and the other contains its first 200. Case, character forms, and what
        separates words are ignored. Lists, structs and JSON are compared as they stand, as all
        their strings together, and as the strings of each of the first 100 fields. The time is
        linear in the lengths of text and value.
        """
        rows, found = {}, {}
        texts = _Texts(documents.texts)
        for name in columns:
            rows[name], found[name] = _counted(texts, documents.columns[name])
        return cls(rows, found, dict.fromkeys(columns, len(documents.rows)))

    def __add__(self, other: Copies) -> Copies:
        return Copies(
            _added(self.rows, other.rows),
            _added(self.found, other.found),
            _added(self.documents, other.documents),
        )

    @property
    def too_many(self) -> list[str]:
        """Return the columns that repeat the text in one row of twenty or more."""
        return [name for name, n in self.found.items() if n and n * _COPIES >= self.rows[name]]


def _added(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


class _Texts:
    """The texts of a batch, each normalised at most once, whatever the number of columns."""

    def __init__(self, texts: pa.LargeStringArray) -> None:
        self._texts = texts
        self._letters: dict[int, bytes | None] = {}
        self._forms: dict[int, list[str]] = {}
        self.have_words = _has_words(texts)
        self.short = pc.less(pc.utf8_length(texts), _HEAD)

    def letters(self, row: int) -> bytes | None:
        """Return `_letters` of a text."""
        if row not in self._letters:
            self._letters[row] = _letters(self._texts[row].as_py())
        return self._letters[row]

    def forms(self, row: int) -> list[str]:
        """Return `_forms` of a text."""
        if row not in self._forms:
            self._forms[row] = _forms(self._texts[row].as_py())
        return self._forms[row]


class _Value(NamedTuple):
    """A value of a column in all forms that are compared, and the letters that a copy must have."""

    forms: list[str]
    longest: int  # letters of a form
    ascii_letters: list[bytes]  # of the forms that a text may hold, each

    @classmethod
    def of(cls, value: Any) -> _Value:
        forms = _forms(value, each_field=True)
        letters = [form.replace(" ", "") for form in forms]
        held = [one.encode().translate(None, _SEPARATORS) for one in letters if len(one) >= _LONG]
        return cls(forms, max(map(len, letters), default=0), held)

    def may_repeat(self, letters: bytes | None) -> bool:
        """Return whether a text of these ASCII letters may repeat the value, or it the text.

        A value that holds a text, or its first 200 letters, has at least that many letters itself.
        A text that holds a shorter value has its ASCII letters, with no others between them.
        """
        return (
            letters is None
            or min(len(letters), _HEAD) <= self.longest
            or any(one in letters for one in self.ascii_letters)
        )


def _counted(texts: _Texts, column: pa.ChunkedArray) -> tuple[int, int]:
    """Return the numbers of rows that have both text and value, and that repeat the text."""
    values = pa.array(strings(column), pa.large_string())
    is_nested = pa.types.is_nested(column.type)
    looked_at = numbered(column) if is_nested else values
    both = pc.and_(texts.have_words, _has_words(values))
    # A short value can hold a short text alone. Most rows end here, unread.
    near = pc.or_(texts.short, pc.greater_equal(pc.utf8_length(values), _LONG))
    found = 0
    known: dict[str, _Value] = {}  # most kept columns have few values
    for row in np.flatnonzero(pc.and_(both, near).to_numpy(zero_copy_only=False)).tolist():
        value = looked_at[row].as_py()
        one = _Value.of(value) if is_nested else known.get(value) or _Value.of(value)
        if not is_nested:
            known[value] = one
        if one.may_repeat(texts.letters(row)):
            forms = texts.forms(row)
            found += any(_repeats(form, other) for form in forms for other in one.forms)
    return int(pc.sum(both).as_py() or 0), found


def _has_words(column: pa.LargeStringArray) -> pa.BooleanArray:
    return pc.match_substring_regex(column, _LETTER)


def _letters(text: str) -> bytes | None:
    """Return the ASCII letters, digits and underscores of a text's only form, or None.

    They are read without normalising the text. None stands for a text that has several forms, or
    characters of which normalising or case folding may make ASCII letters.
    """
    if not text.isascii():
        text = text.replace("\xdf", "ss")
        if not _AS_WRITTEN.fullmatch(text):
            return None
    if "\\" in text or _BEFORE_JSON.match(text):
        return None
    return text.encode().translate(_LOWER, _SEPARATORS)


def _repeats(text: str, value: str) -> bool:
    return bool(text and value) and (
        f" {text} " in f" {value} " or _begins_in(text, value) or _begins_in(value, text)
    )


def _begins_in(one: str, other: str) -> bool:
    letters = one.replace(" ", "")
    return len(letters) >= _LONG and letters[:_HEAD] in other.replace(" ", "")


def _forms(value: Any, each_field: bool = False) -> list[str]:
    """Return what may be compared of a value, each as normalised words.

    A string is taken as it stands, whether or not it is JSON. What holds others is taken as all
    its strings and, if asked, as those of each field, so that tokens are joined without their tags.
    Where a backslash is left, the form without JSON's escapes is another.
    """
    forms = [value] if isinstance(value, str) else []
    if not forms or _BEFORE_JSON.match(value):
        leaves = list(_leaves(value))
        forms.append(" ".join(leaf for path, leaf in leaves if path is not None))
        if each_field:
            fields: dict[str | None, list[str]] = {}
            for path, leaf in leaves:
                known = path in fields or len(fields) < _FIELDS
                fields.setdefault(path if known else "", []).append(leaf)
            forms += [" ".join(field) for field in fields.values()]
    forms += [_ESCAPE.sub(_unescaped, form) for form in forms if "\\" in form]
    return list(dict.fromkeys(_normal(form) for form in dict.fromkeys(forms)))


def _normal(value: str) -> str:
    """Return a value's words, with case, character forms and separators normalised."""
    return " ".join(_WORDS.findall(unicodedata.normalize("NFKC", value).casefold()))


def _unescaped(escape: re.Match[str]) -> str:
    """Return the characters of escapes like `\\u00e9`, and a space for any other."""
    units = re.findall("u(....)", escape[0])
    return bytes.fromhex("".join(units)).decode("utf-16-be", "replace") or " "


def strings(column: pa.Array | pa.ChunkedArray) -> Iterator[str]:
    """Yield each value as a string: a nested value's strings joined, "" for other types."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        yield from (value or "" for value in column.to_pylist())
        return
    if pa.types.is_primitive(column.type):
        yield from [""] * len(column)
        return
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        yield from ((value or b"").decode(errors="replace") for value in column.to_pylist())
        return
    for value in numbered(column):
        yield " ".join(leaf for path, leaf in _leaves(value.as_py()) if path is not None)


def _leaves(value: Any, path: str = "", depth: int = _DEPTH) -> Iterator[tuple[str | None, str]]:
    """Yield the strings in a value, each with the path of its field; the keys' path is None."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        inner = _json_values(value) if depth else []
        if not inner:
            yield path, value
        value = inner
    if not depth:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield None, key
            yield from _leaves(inner, f"{path}.{key}", depth - 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner, path, depth - 1)


def _json_values(value: str) -> list[Any]:
    """Parse the JSON values with which a string begins; what follows them comes last, unparsed.

    Numbers, `true` and the like are no beginning. An empty list stands for any other string.
    """
    values: list[Any] = []
    end = 0
    while start := _BEFORE_JSON.match(value, end):
        try:
            inner, end = _JSON.raw_decode(value, start.end())
        except (ValueError, RecursionError):
            break
        values.append(inner)
    return [*values, value[end:]] if values and value[end:].strip() else values
