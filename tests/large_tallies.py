"""Tallies with one large count each: what is sealed of them may not show the digits."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import Any

from quietcorpus.indexes.tokens.written_language import FrequentCounts
from quietcorpus.transforms.reading.copies import Copies
from quietcorpus.transforms.shards import Tally

LARGE = 10**9 + 7


def larger(tally: Tally) -> list[dict[str, Any]]:
    """Return changes to a tally, for each of its counts one that makes the count large."""
    plain = ("documents", "rejected", "tokens", "known")
    # A field of another name is a count that is missing here.
    assert {own.name for own in fields(Tally)} == {*plain, "first", "parts", "copies", "frequent"}
    assert {own.name for own in fields(Copies)} == {"rows", "found", "documents"}
    assert {own.name for own in fields(FrequentCounts)} == {"words", "of_each"}
    copies, each = asdict(tally.copies), tally.frequent.of_each
    assert each
    assert copies["rows"]
    assert copies["found"]
    return [
        *({name: LARGE} for name in plain),
        *(
            {"copies": replace(tally.copies, **{field: numbers | {name: LARGE}})}
            for field, numbers in copies.items()
            for name in numbers
        ),
        {"frequent": replace(tally.frequent, words=LARGE)},
        *(
            {"frequent": replace(tally.frequent, of_each=(*each[:n], LARGE, *each[n + 1 :]))}
            for n in range(len(each))
        ),
    ]
