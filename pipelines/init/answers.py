"""Answers about a first spec, and what is guessed from the corpus's first records."""

from __future__ import annotations

import datetime
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from quietcorpus.indexes.tokens import segmentation
from quietcorpus.indexes.tokens.languages import LANGUAGES
from quietcorpus.indexes.tokens.segmentation import letters_by_script
from quietcorpus.indexes.tokens.written_language import is_traditional, language_of
from quietcorpus.transforms.errors import InputError, shown
from quietcorpus.transforms.reading.columns import is_text
from quietcorpus.transforms.reading.csv_files import ESCAPE
from quietcorpus.transforms.reading.documents import missing_column
from quietcorpus.transforms.reading.first_values import FirstValues, first_values
from quietcorpus.transforms.reading.identifiers import spelled

from ..card.rows import looks_like
from ..schema.values import NEEDED

RECORDS = 1000
_CHARACTERS = 10_000  # of a value, that are looked at
_ID = re.compile(r"(^|[_.-])(id|uuid|guid|key|number|no)$|[a-z](Id|ID)$", re.IGNORECASE)
_USER = re.compile(
    r"user|author|writer|customer|client|patient|account|sender|owner|speaker|reviewer|student",
    re.IGNORECASE,
)
_TEXT = re.compile(r"text|body|content|narrative|message|comment|review|note|description")
_AN_ID = re.compile(
    r"[0-9A-Fa-f]{12,}|[0-9A-Fa-f-]{36}|[^\s@]+@[^\s@]+\.[^\s@]+|[A-Za-z]{1,12}[-_:]?[0-9]+"
)
"""Digits and letters of a hash or a UUID, an address, or a number after letters."""
_LEAST_USERS, _EACH_USER = 20, 1.5  # of the first records; records of one of them, on average
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
        has_ids: whether its values look like ids and repeat, as those of users do.
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
    has_ids: bool = False

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
            has_ids=_repeats_ids(texts),
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


def _repeats_ids(texts: Sequence[str]) -> bool:
    """Return whether values look like ids, and each stands in several records, on average."""
    different = set(texts)
    return _LEAST_USERS <= len(different) <= len(texts) / _EACH_USER and all(
        map(_AN_ID.fullmatch, different)
    )


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
    """Return the first column that is named as a user, or else has ids that repeat, or None."""
    named = (one.name for one in _named(columns, _USER, text))
    of_ids = (one.name for one in columns if one.has_ids and one.name != text)
    return next(named, None) or next(of_ids, None)


def label_columns(columns: Sequence[Column], text: str) -> list[str]:
    """Return the columns that may be labels."""
    return [one.name for one in columns if one.is_label and one.name != text]


def _named(columns: Sequence[Column], pattern: re.Pattern[str], text: str) -> Iterator[Column]:
    named = (one for one in columns if pattern.search(one.name) and one.name != text)
    return (one for one in named if one.tells_apart)


class Wanted(StrEnum):
    """The content of a release, as its reader names it."""

    COUNTS = "counts"
    TERMS = "terms"
    TEXT = "text"
    DOCUMENT_VECTORS = "document-vectors"
    WORD_VECTORS = "word-vectors"
    OVERVIEW = "overview"


class Protected(StrEnum):
    """The unit that a guarantee hides."""

    WORDS = "words"
    SENTENCES = "sentences"
    DOCUMENTS = "documents"
    USERS = "users"


PROTECTS: Mapping[Wanted, tuple[Protected, ...]] = {
    Wanted.COUNTS: (Protected.WORDS,),
    Wanted.TERMS: (Protected.WORDS, Protected.USERS),
    Wanted.TEXT: (Protected.WORDS, Protected.DOCUMENTS, Protected.USERS),
    Wanted.DOCUMENT_VECTORS: (Protected.SENTENCES,),
    Wanted.WORD_VECTORS: (Protected.USERS,),
    Wanted.OVERVIEW: (Protected.USERS,),
}
"""The units that there is a kind of release for, by what is wanted."""


@dataclass(frozen=True)
class Answers:
    """The answers of a person, or guesses from the first records.

    Attributes:
        corpus: the path or the glob of the documents.
        wanted: the content of the release.
        protected: the unit that the guarantee hides.
        text: the column of the texts.
        id: a column that never repeats, or None.
        user: the column of the users, where they are the unit.
        users: their approximate number, a public figure, where they are the unit.
        label: a column to copy as it is, or None.
        labels: the columns that may be labels.
        private: what a column looks like that a release refuses to keep, by the column's name.
        release: the release's id.
        language: the code of the texts' language, or None if it is not known.
        escape: the character that escapes quotes in CSV, or None.
        traditional: whether they are Chinese in traditional characters.
    """

    corpus: str
    wanted: Wanted
    protected: Protected
    text: str
    id: str | None = None
    user: str | None = None
    users: int | None = None
    label: str | None = None
    labels: tuple[str, ...] = ()
    release: str = "release"
    language: str | None = None
    escape: str | None = None
    traditional: bool = False
    private: Mapping[str, str] = field(default_factory=dict)


def unit(wanted: Wanted, protected: Protected | None) -> Protected:
    """Return the unit that is protected; raises InputError if there is no such kind of release."""
    offered = PROTECTS[wanted]
    if protected is None and wanted is Wanted.TEXT:  # no unit of text is the usual one
        raise InputError(f"protect: whom should {wanted} protect? give one of {', '.join(offered)}")
    chosen = protected or offered[0]
    if chosen not in offered:
        raise InputError(
            f"protect: no kind of release gives {wanted} and protects {chosen}; give "
            f"{' or '.join(offered)}, or want something else"
        )
    return chosen


def answers(
    corpus: str,
    wanted: Wanted,
    protected: Protected,
    found: Sequence[Column],
    given: Mapping[str, str | None],
    users: int | None,
) -> Answers:
    """Complete the given columns, and the language, by guesses.

    Raises InputError for a column that is not there, and for what this kind of release cannot have.
    """
    names = [one.name for one in found]
    for key, name in given.items():
        if key != "language" and name is not None and name not in names:
            listed = names if corpus.endswith(".parquet") else None
            raise InputError(missing_column(key, name, corpus, listed))
    _check_types(corpus, found, given)
    text = given.get("text") or text_column(found)
    of_users = protected is Protected.USERS
    _check_of_use(wanted, protected, given, users)
    user = (given.get("user") or user_column(found, text)) if of_users else None
    if of_users and user is None:
        raise InputError(
            "user: no column is named like one of users, or has ids that repeat; name it"
        )
    if of_users and users is None:
        raise InputError(
            "users: give the approximate number of users, a public figure: it must not be counted "
            "in the corpus"
        )
    return Answers(
        corpus,
        wanted,
        protected,
        text,
        given.get("id") or id_column(found, text),
        user,
        users if of_users else None,
        given.get("label"),
        tuple(label_columns(found, text)),
        _release_id(corpus, wanted, protected),
        _language(wanted, given.get("language") or _column(found, text).language),
        traditional=_column(found, text).traditional,
        private={one.name: " and ".join(one.private) for one in found if one.private},
    )


def _check_types(corpus: str, found: Sequence[Column], given: Mapping[str, str | None]) -> None:
    """Raise InputError for a column whose values a release does not take for what is given."""
    for one in found:
        for key in (key for key in ("text", "id", "user") if given.get(key) == one.name):
            if one.is_empty or (one.strings if key == "text" else one.tells_apart):
                continue
            wanted = "strings" if key == "text" else "strings or whole numbers"
            raise InputError(
                one.fault
                or f"{key}: {one.name} in {corpus} has other values; name a column of {wanted}"
            )


def _column(found: Sequence[Column], name: str) -> Column:
    return next(one for one in found if one.name == name)


def _language(wanted: Wanted, language: str | None) -> str | None:
    """Return the language, of which there must be sentences, if they are what is needed."""
    if language is not None and language not in LANGUAGES:
        raise InputError(
            f"language: {shown(language)} is not known; give one of {', '.join(LANGUAGES)}"
        )
    if language and wanted is Wanted.DOCUMENT_VECTORS and language not in segmentation.LANGUAGES:
        raise InputError(
            f"language: the texts seem to be in {LANGUAGES[language]}, for which the splitter of "
            f"sentences has no rules, and {wanted} need them; want something else, or give the "
            "language if it is another"
        )
    return language


def _check_of_use(
    wanted: Wanted, protected: Protected, given: Mapping[str, str | None], users: int | None
) -> None:
    """Raise InputError for a column or a number that this kind of release has no place for."""
    if given.get("label") and wanted in (Wanted.TERMS, Wanted.WORD_VECTORS, Wanted.OVERVIEW):
        raise InputError(
            f"label: a release of {wanted} has no rows of documents into which a column could be "
            "copied; leave it out, or want counts"
        )
    unused = "user" if given.get("user") else "users" if users else None
    if unused and protected is not Protected.USERS:
        raise InputError(
            f"{unused}: the release protects {protected}, not users; leave it out, or protect users"
        )


def _release_id(corpus: str, wanted: Wanted, protected: Protected) -> str:
    """Name a release by its corpus, by what sets it apart from others of the corpus, and a day."""
    stem = re.sub(r"[*?].*|\..*", "", posixpath.basename(corpus))
    stem = stem or posixpath.basename(posixpath.dirname(corpus))
    name = re.sub(r"[^A-Za-z0-9]+", "-", stem).strip("-").lower() or "corpus"
    apart = [wanted, protected] if len(PROTECTS[wanted]) > 1 else [wanted]
    return "-".join([name, *apart, f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"])
