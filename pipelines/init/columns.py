"""Guesses at a corpus's columns of texts, ids, users and labels, from its first records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from quietcorpus.indexes.segmentation import letters_by_script
from quietcorpus.indexes.written_language import language_of
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.sources import first_records

RECORDS = 1000
_ID = re.compile(r"(^|[_.-])(id|uuid|guid|key|number|no)$|[a-z](Id|ID)$", re.IGNORECASE)
_USER = re.compile(
    r"user|author|writer|customer|client|patient|account|sender|owner|speaker|reviewer|student",
    re.IGNORECASE,
)
_TEXT = re.compile(r"text|body|content|narrative|message|comment|review|note|description")
_LEAST_WORDS = 4.0
_MOST_LABELS = 50
_EACH_LABEL = 5  # records of a label, on average


@dataclass(frozen=True)
class Column:
    """A column, as the first records show it.

    Attributes:
        name: its name.
        records: the number of records that were looked at.
        strings: whether all its values are strings.
        words: the mean number of words of a value; 0 unless all are strings. Three characters of a
            script without spaces count as a word.
        distinct: the number of different values.
        missing: the number of records without a value.
        language: the code of the language that its texts seem to be in, or None.
    """

    name: str
    records: int
    strings: bool
    words: float
    distinct: int
    missing: int
    language: str | None = None

    @classmethod
    def of(cls, name: str, values: Sequence[Any]) -> Column:
        """Describe the values of a column; None is a missing one."""
        there = [value for value in values if value is not None]
        strings = bool(there) and all(isinstance(value, str) for value in there)
        counts = [letters_by_script(value) for value in there] if strings else []
        apart = sum(len(value.split()) for value in there) if strings else 0
        together = sum((own.total() - own["kana"]) // 3 for own in counts)
        words = (apart + together) / max(1, len(there))
        distinct = len({value if strings else repr(value) for value in there})
        missing, language = len(values) - len(there), language_of(there) if strings else None
        return cls(name, len(values), strings, words, distinct, missing, language)

    @property
    def is_unique(self) -> bool:
        """Return whether every record has a value of its own."""
        return self.distinct == self.records

    @property
    def is_label(self) -> bool:
        """Return whether it has few different values, which repeat."""
        few = 2 <= self.distinct <= min(_MOST_LABELS, self.records // _EACH_LABEL)
        return few and self.words < _LEAST_WORDS


def look(pattern: str) -> list[Column]:
    """Describe the columns of a corpus, from at most 1,000 records of its first file."""
    records = first_records(pattern, RECORDS)
    names = dict.fromkeys(name for record in records for name in record)
    # They are written into the spec; a file without a header has private text in their place.
    if any(len(name.split()) >= _LEAST_WORDS for name in names):
        raise InputError(
            f"input.path: {pattern} has texts in place of column names; give a CSV "
            "file a header, and JSON objects keys that are names"
        )
    return [Column.of(name, [record.get(name) for record in records]) for name in names]


def text_column(columns: Sequence[Column]) -> str:
    """Return the column whose values have the most words; raises InputError if none is text."""
    texts = [one for one in columns if one.words >= _LEAST_WORDS]
    named = [one for one in columns if one.strings and _TEXT.search(one.name.lower())]
    if not texts and not named:
        raise InputError("text: no column looks like text; name the one that holds it")
    return max(texts or named, key=lambda one: one.words).name


def id_column(columns: Sequence[Column], text: str) -> str | None:
    """Return the first column that is named as an id and never repeats, or None."""
    return next((one.name for one in _named(columns, _ID, text) if one.is_unique), None)


def user_column(columns: Sequence[Column], text: str) -> str | None:
    """Return the first column that is named as a user, or None."""
    return next((one.name for one in _named(columns, _USER, text)), None)


def label_columns(columns: Sequence[Column], text: str) -> list[str]:
    """Return the columns that may be labels."""
    return [one.name for one in columns if one.is_label and one.name != text]


def _named(columns: Sequence[Column], pattern: re.Pattern[str], text: str) -> Iterator[Column]:
    return (one for one in columns if pattern.search(one.name) and one.name != text)
