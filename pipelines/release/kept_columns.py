"""A check of the columns that `keep:` would copy, before anything is released.

The launcher, which has access to the text anyway, reads a sample of the corpus. The check can stop
the run, or make it warn. Its messages name a column and what it looks like, but none of its values.
"""

from __future__ import annotations

import itertools
import logging
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import pyarrow as pa

from quietcorpus.indexes.scripts import are_clauses
from quietcorpus.transforms.errors import InputError, redacted
from quietcorpus.transforms.reading.documents import Corpus, Documents, Plan
from quietcorpus.transforms.reading.sources import read

_LOGGER = logging.getLogger("quietcorpus.release")
_SPLITS, _DOCUMENTS, _CHARACTERS = 8, 2048, 20_000  # the most that are read
_HEAD = 200  # characters that distinguish a text from others
_LONG = 20  # characters: so long a match is no accident
_COPIES = 20  # one row in so many is too many
_LEAST_VALUES, _SENTENCE_WORDS = 10, 5
_WORDS = re.compile(r"\w+")
_ADDRESS = re.compile(r"[^\s@]@[^\s@]+\.[^\s@]")


def check(corpus: Corpus, plan: Plan) -> None:
    """Refuse kept columns that repeat the text, and warn of those that look personal.

    Raises InputError for a column that repeats it; `repeats` says what that is.
    """
    batches = list(_sample(corpus, plan)) if corpus.keep else []
    texts = [_normal(text) for batch in batches for text in _strings(batch.texts)]
    for name in corpus.keep:
        values = [value for batch in batches for value in _strings(batch.columns[name])]
        if repeats(texts, [_normal(value) for value in values]):
            raise InputError(
                f"input.keep: {name!r} repeats the text, or long parts of it, which no mechanism "
                "would protect; drop it from the list"
            )
        if like := looks_like(values):
            _LOGGER.warning(
                "input.keep: %r looks like %s, and will be released as it is; drop it, unless "
                "everyone may read it",
                name,
                " and ".join(like),
            )


@redacted
def _sample(corpus: Corpus, plan: Plan) -> Iterator[Documents]:
    """Yield the first documents of a few splits, evenly spread over the corpus."""
    chosen = plan.splits[:: -(-len(plan.splits) // _SPLITS)]
    for split in chosen:
        wanted = _DOCUMENTS // len(chosen)
        for batch in read(split, corpus):
            yield from itertools.islice(batch.parts(wanted), 1)
            wanted -= len(batch.rows)
            if wanted <= 0:
                break


def repeats(texts: Sequence[str], values: Sequence[str]) -> bool:
    """Return whether a column repeats the text in one row of twenty or more, both normalised.

    A row counts if it has both. It repeats the text if the value contains the text word for word,
    or if either has at least 20 letters and the other contains its first 200, spaces ignored.
    """
    both = [(text, value) for text, value in zip(texts, values, strict=True) if text and value]
    found = sum(
        f" {text} " in f" {value} " or _begins_in(text, value) or _begins_in(value, text)
        for text, value in both
    )
    return bool(found) and found * _COPIES >= len(both)


def _begins_in(one: str, other: str) -> bool:
    letters = one.replace(" ", "")
    return len(letters) >= _LONG and letters[:_HEAD] in other.replace(" ", "")


def looks_like(values: Sequence[str]) -> list[str]:
    """Return what a column's values look like, among what is rarely meant for everyone.

    E-mail addresses: one value in twenty holds one. Names: half of the values are two to four
    capitalised words, and one in ten is distinct. Free text: half of them have five words or more,
    or are clauses of a script without spaces, and half are distinct. Names and free text need ten
    distinct values.
    """
    given = [value for value in values if value.strip()]
    own = len(set(given))
    addresses = sum(_ADDRESS.search(value) is not None for value in given)
    found = ["e-mail addresses"] if addresses and addresses * _COPIES >= len(given) else []
    if own < _LEAST_VALUES:
        return found
    names = sum(_is_name(value) for value in given)
    if 2 * names >= len(given) and 10 * own >= len(given):
        found.append("names of people")
    long = sum(_is_sentence(value) for value in given)
    if 2 * long >= len(given) and 2 * own >= len(given):
        found.append("free text")
    return found


def _is_name(value: str) -> bool:
    words = value.replace(",", " ").split()
    return 2 <= len(words) <= 4 and all(map(_is_name_part, words)) and not value.isupper()


def _is_name_part(word: str) -> bool:
    return word[0].isupper() and re.sub("[.'\u2019-]", "", word).isalpha()


def _is_sentence(value: str) -> bool:
    words = value.split()
    return len(words) >= _SENTENCE_WORDS or are_clauses(words)


def _normal(value: str) -> str:
    """Return a value's words, with case, character forms and separators normalised."""
    return " ".join(_WORDS.findall(unicodedata.normalize("NFKC", value[:_CHARACTERS]).casefold()))


def _strings(column: pa.Array | pa.ChunkedArray) -> Iterator[str]:
    """Yield each value as a string: a nested or JSON value's strings joined, "" for other types."""
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
