"""A check of the columns that `keep:` would copy, before anything is released.

The launcher, which has access to the text anyway, reads a sample of the corpus. The check can stop
the run, or make it warn. The workers, which read all of it, count copies of the text again, before
anything is published. Messages name a column and what it looks like, but none of its values.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

import pyarrow as pa

from quietcorpus.indexes.scripts import are_clauses
from quietcorpus.pipelines.spec.values import NEEDED, Reason, remedied
from quietcorpus.transforms.errors import InputError, cut, redacted
from quietcorpus.transforms.reading.columns import is_string
from quietcorpus.transforms.reading.copies import Copies, strings
from quietcorpus.transforms.reading.documents import Corpus, Documents, Plan
from quietcorpus.transforms.reading.sources import read

_SPLITS = 8  # the most that are read
SAMPLE = 2048
"""The number of documents that are looked at."""
_FEW = 20  # one value in so many is too many
_LEAST_VALUES, _SENTENCE_WORDS = 10, 5
_TEXT_IN_BYTES = re.compile(r"[^\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd]{6,}")
"""A run of text in bytes: by chance, numbers of shapes on a map hold shorter runs."""
_ADDRESS = re.compile(r"[^\s@]@[^\s@]+\.[^\s@]")


def check(corpus: Corpus, plan: Plan, accept: Sequence[Reason]) -> list[str]:
    """Refuse kept columns that repeat the text; return what others look like, with the remedy.

    Raises InputError for a column that repeats it in the sample, see `refuse_copies`, and as
    `doubts` does.
    """
    batches = list(_sample(corpus, plan)) if corpus.keep else []
    refuse_copies(sum((Copies.of(batch, corpus.keep) for batch in batches), start=Copies()))
    return list(doubts([batch.columns for batch in batches], corpus.keep, accept))


def doubts(
    tables: Sequence[pa.Table],
    keep: Sequence[str],
    accept: Sequence[Reason],
    key: str = "input.keep",
) -> Iterator[str]:
    """Yield what kept columns look like that is rarely meant for everyone, with the remedy.

    Raises InputError for a column of e-mail addresses or free text that is not accepted.
    """
    for name in keep:
        values = [
            value if is_string(column.type) else " ".join(_TEXT_IN_BYTES.findall(value))
            for column in (table[name] for table in tables)
            for value in strings(column)
        ]
        like = looks_like(values)
        needed = [NEEDED[one] for one in like if one in NEEDED and NEEDED[one] not in accept]
        if needed:
            raise InputError(
                f"{key}: {cut(name)} looks like {' and '.join(like)}, and would be released as it "
                f"is; {remedied('drop it from the list', needed[0])}"
            )
        if like:
            yield (
                f"{key}: {cut(name)} looks like {' and '.join(like)}, and will be released as "
                "it is; drop it, unless everyone may read it"
            )


def refuse_copies(copies: Copies, key: str = "input.keep") -> None:
    """Raise InputError for a column that repeats the text in one row of twenty or more."""
    for name in copies.too_many:
        raise InputError(
            f"{key}: {cut(name)} repeats the text, or long parts of it, which no mechanism "
            "would protect; drop it from the list"
        )


@redacted
def _sample(corpus: Corpus, plan: Plan) -> Iterator[Documents]:
    """Yield the first documents of a few splits, evenly spread over the corpus."""
    chosen = plan.splits[:: -(-len(plan.splits) // _SPLITS)]
    for split in chosen:
        wanted = SAMPLE // len(chosen)
        for batch in read(split, corpus):
            yield from itertools.islice(batch.parts(wanted), 1)
            wanted -= len(batch.rows)
            if wanted <= 0:
                break


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


def _is_name(value: str) -> bool:
    words = value.replace(",", " ").split()
    return 2 <= len(words) <= 4 and all(map(_is_name_part, words)) and not value.isupper()


def _is_name_part(word: str) -> bool:
    return word[0].isupper() and re.sub("[.'\u2019-]", "", word).isalpha()


def _is_sentence(value: str) -> bool:
    words = value.split()
    return len(words) >= _SENTENCE_WORDS or are_clauses(words)
