"""Guesses at a corpus's columns of texts, ids, users and labels, from its first records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from quietcorpus.indexes.tokens.segmentation import letters_by_script
from quietcorpus.indexes.tokens.written_language import is_traditional, language_of
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.columns import is_text
from quietcorpus.transforms.reading.csv_files import ESCAPE
from quietcorpus.transforms.reading.first_values import FirstValues, first_values
from quietcorpus.transforms.reading.spelling import spelled

from ..card.looks import looks_like
from ..schema.values import NEEDED

RECORDS = 1000
_CHARACTERS = 10_000  # of a value, that are looked at
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
        records: the number of records that were looked at; 0 for a column that was not.
        strings: whether its values are strings.
        words: the mean number of words in the first 10,000 characters of a value; 0 unless they are
            strings. Three characters of a script without spaces count as a word.
        distinct: the number of different values.
        missing: the number of records without a value.
        tells_apart: whether a release can compare its values, so that it may name ids or users.
        language: the code of the language that its texts seem to be in, or None.
        private: what its values look like that a release refuses to keep.
        fault: the reason why the column cannot be read, if that is so.
    """

    name: str
    records: int
    strings: bool
    words: float
    distinct: int
    missing: int
    tells_apart: bool = True
    language: str | None = None
    fault: str | None = None
    traditional: bool = False
    private: tuple[str, ...] = ()

    @classmethod
    def of(cls, first: FirstValues) -> Column:
        """Describe a column by its first values."""
        values = first.values
        if values is None or not len(values):
            return cls(
                first.name, first.missing, False, 0, 0, first.missing, False, None, first.fault
            )
        texts = _beginnings(values) if is_text(values.type) else []
        counts = [letters_by_script(text) for text in texts]
        apart = sum(len(text.split()) for text in texts)
        together = sum((own.total() - own["kana"]) // 3 for own in counts)
        language = language_of(texts) if texts else None
        return cls(
            first.name,
            len(values) + first.missing,
            bool(texts),
            (apart + together) / len(values),
            pc.count_distinct(values).as_py(),
            first.missing,
            _tells_apart(values),
            language,
            traditional=language == "zh" and is_traditional(texts),
            private=tuple(what for what in looks_like(texts) if what in NEEDED),
        )

    @property
    def is_empty(self) -> bool:
        """Return whether none of the records has a value."""
        return 0 < self.records == self.missing

    @property
    def is_unique(self) -> bool:
        """Return whether every record has a different value."""
        return self.distinct == self.records

    @property
    def is_label(self) -> bool:
        """Return whether it has few different values, which repeat."""
        if self.private:
            return False
        few = 2 <= self.distinct <= min(_MOST_LABELS, self.records // _EACH_LABEL)
        return few and self.words < _LEAST_WORDS


def _beginnings(values: pa.Array) -> list[str]:
    begin: pa.Array = pc.utf8_slice_codeunits(values.cast(pa.large_string()), 0, _CHARACTERS)
    return list(begin.to_pylist())


def _tells_apart(values: pa.Array) -> bool:
    try:
        spelled(pa.chunked_array([values]), "id", "")
    except InputError:
        return False
    return True


def escape_of(pattern: str) -> str | None:
    """Return the character that escapes quotes in CSV, if no first record can be read without."""
    with suppress(InputError):
        first_values(pattern, RECORDS)
        return None
    with suppress(InputError):
        first_values(pattern, RECORDS, ESCAPE)
        return ESCAPE
    return None


def look(pattern: str, escape: str | None = None) -> list[Column]:
    """Describe the columns of a corpus, from at most 1,000 records of one file."""
    found = first_values(pattern, RECORDS, escape)
    # They are written into the spec; a file without a header has private text in their place.
    if any(len(one.name.split()) >= _LEAST_WORDS or not _is_utf8(one.name) for one in found):
        raise InputError(
            f"input.path: {pattern} has texts in place of column names, or names that are not "
            "UTF-8; give a CSV file a header, and JSON objects keys that are names"
        )
    return [Column.of(one) for one in found]


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def text_column(columns: Sequence[Column]) -> str:
    """Return the column whose values have the most words; raises InputError if none is text."""
    texts = [one for one in columns if one.words >= _LEAST_WORDS]
    named = [one for one in columns if one.strings and _TEXT.search(one.name.lower())]
    if not texts and not named:
        fault = next((one.fault for one in columns if one.fault), None)
        raise InputError(fault or "text: no column looks like text; name the one that holds it")
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
    named = (one for one in columns if pattern.search(one.name) and one.name != text)
    return (one for one in named if one.tells_apart)
