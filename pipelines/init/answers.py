"""A person's answers about a first spec, and what is guessed from the corpus's first records."""

from __future__ import annotations

import datetime
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from quietcorpus.indexes.tokens import sentences
from quietcorpus.indexes.tokens.languages import LANGUAGES
from quietcorpus.transforms.errors import InputError, shown
from quietcorpus.transforms.reading.documents import missing_column

from . import columns


class Wanted(StrEnum):
    """The content of a release, as its reader names it."""

    COUNTS = "counts"
    TERMS = "terms"
    TEXT = "text"
    DOCUMENT_VECTORS = "document-vectors"
    WORD_VECTORS = "word-vectors"


class Protected(StrEnum):
    """The unit that a guarantee hides."""

    WORDS = "words"
    SENTENCES = "sentences"
    DOCUMENTS = "documents"
    USERS = "users"


PROTECTS: Mapping[Wanted, tuple[Protected, ...]] = {
    Wanted.COUNTS: (Protected.WORDS,),
    Wanted.TERMS: (Protected.WORDS,),
    Wanted.TEXT: (Protected.WORDS, Protected.DOCUMENTS, Protected.USERS),
    Wanted.DOCUMENT_VECTORS: (Protected.SENTENCES,),
    Wanted.WORD_VECTORS: (Protected.USERS,),
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
    if protected is None and len(offered) > 1:
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
    found: Sequence[columns.Column],
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
    text = given.get("text") or columns.text_column(found)
    of_users = protected is Protected.USERS
    _check_of_use(wanted, protected, given, users)
    user = (given.get("user") or columns.user_column(found, text)) if of_users else None
    if of_users and user is None:
        raise InputError("user: no column is named like one of users; name that column")
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
        given.get("id") or columns.id_column(found, text),
        user,
        users if of_users else None,
        given.get("label"),
        tuple(columns.label_columns(found, text)),
        _release_id(corpus, wanted, protected),
        _language(wanted, given.get("language") or _column(found, text).language),
        traditional=_column(found, text).traditional,
        private={one.name: " and ".join(one.private) for one in found if one.private},
    )


def _check_types(
    corpus: str, found: Sequence[columns.Column], given: Mapping[str, str | None]
) -> None:
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


def _column(found: Sequence[columns.Column], name: str) -> columns.Column:
    return next(one for one in found if one.name == name)


def _language(wanted: Wanted, language: str | None) -> str | None:
    """Return the language, of which there must be sentences, if they are what is needed."""
    if language is not None and language not in LANGUAGES:
        raise InputError(
            f"language: {shown(language)} is not known; give one of {', '.join(LANGUAGES)}"
        )
    if language and wanted is Wanted.DOCUMENT_VECTORS and language not in sentences.LANGUAGES:
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
    if given.get("label") and wanted in (Wanted.TERMS, Wanted.WORD_VECTORS):
        raise InputError(
            f"label: {wanted} have no rows of documents into which a column could be copied; leave "
            "it out, or want counts"
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
