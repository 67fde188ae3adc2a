"""A check of the columns that `keep:` would copy, before anything is released.

The launcher, which has access to the text anyway, reads a sample of the corpus. The check can stop
the run, or make it warn. The workers, which read all of it, count copies of the text again, before
anything is published. Messages name a column and what it looks like, but none of its values.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pyarrow as pa

from quietcorpus.transforms.errors import InputError, cut, redacted
from quietcorpus.transforms.reading.copies import Copies
from quietcorpus.transforms.reading.documents import Corpus, Documents, Plan
from quietcorpus.transforms.reading.sources import read

from ..card.looks import looks_like, refused, texts_in
from ..schema.values import Reason, remedied

_SPLITS = 8  # the most that are read
SAMPLE = 2048
"""The number of documents that are looked at."""


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
    """Yield the looks of kept columns that are rarely meant for everyone, with the remedy.

    Raises InputError for a column of e-mail addresses or free text that is not accepted.
    """
    for name in keep:
        like = looks_like([value for table in tables for value in texts_in(table[name])])
        if needed := refused(like, accept):
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
