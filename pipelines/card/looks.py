"""The looks of copied columns: what their values are, among what is rarely meant for everyone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from quietcorpus.indexes.tokens.scripts import are_clauses
from quietcorpus.transforms.reading.columns import is_string
from quietcorpus.transforms.reading.copies import strings

from ..schema.values import NEEDED, Reason

_FEW = 20  # one value in twenty is too many
_LEAST_VALUES, _SENTENCE_WORDS = 10, 5
_TEXT_IN_BYTES = re.compile(r"[^\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd]{6,}")
"""A run of text in bytes: by chance, numbers of shapes on a map hold shorter runs."""
_ADDRESS = re.compile(r"[^\s@]@[^\s@]+\.[^\s@]")


def texts_in(column: pa.ChunkedArray) -> Iterator[str]:
    """Yield the texts that a column's values hold."""
    plain = is_string(column.type)
    for value in strings(column):
        yield value if plain else " ".join(_TEXT_IN_BYTES.findall(value))


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
    found = ["e-mail addresses"] if addresses and addresses * _FEW >= len(given) else []
    if own < _LEAST_VALUES:
        return found
    names = sum(_is_name(value) for value in given)
    if 2 * names >= len(given) and 10 * own >= len(given):
        found.append("names of people")
    long = sum(_is_sentence(value) for value in given)
    if 2 * long >= len(given) and 2 * own >= len(given):
        found.append("free text")
    return found


def refused(looks: Iterable[str], accept: Sequence[Reason]) -> list[Reason]:
    """Return what must be accepted by name of a column that looks like this, and is not."""
    return [NEEDED[one] for one in looks if one in NEEDED and NEEDED[one] not in accept]


def _is_name(value: str) -> bool:
    words = value.replace(",", " ").split()
    return 2 <= len(words) <= 4 and all(map(_is_name_part, words)) and not value.isupper()


def _is_name_part(word: str) -> bool:
    return word[0].isupper() and re.sub("[.'\u2019-]", "", word).isalpha()


def _is_sentence(value: str) -> bool:
    words = value.split()
    return len(words) >= _SENTENCE_WORDS or are_clauses(words)
