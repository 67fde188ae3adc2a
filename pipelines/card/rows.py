"""The check of what all rows of documents show together.

Ids are unique, copied columns are accepted, and rows agree with those of other row groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.columns import is_as_read
from quietcorpus.transforms.reading.spelling import spelled

from .looks import looks_like, refused, texts_in
from .model import Card
from .vocabulary import rule_of

MOST_IDS = 1 << 24
"""The most documents whose ids are compared: they are in memory at once."""
_SAMPLE, _PARTS = 2048, 4
_FEW = _SAMPLE // 8
"""A corpus of no more documents is one that a run samples whole: 256 of each of eight splits."""


class DocumentRows:
    """The rows of documents of a release, as they are read."""

    def __init__(self, card: Card) -> None:
        self._card = card
        self._documents = card.counts.documents if card.counts else 0
        self._ids: list[pa.ChunkedArray] = []
        self._copied: list[pa.Table] = []
        self._foreign: dict[str, None] = {}
        self._seen = 0
        self._before: dict[Any, Any] = {}

    @property
    def has_comparable_ids(self) -> bool:
        """Return whether there are few enough ids to compare."""
        return self._card.counts is not None and self._documents <= MOST_IDS

    def add(self, rows: pa.Table) -> str | None:
        """Add a row group; return its disagreement with those before it, if any."""
        if not _has_ids(rows["id"]):
            return "the column id has values that no run reads ids from"
        for name in self._card.columns:
            if not is_as_read(rows[name]):
                self._foreign.setdefault(name)
        if self.has_comparable_ids:
            self._ids.append(rows["id"])
        if self._card.columns:
            step = max(self._documents // _SAMPLE, 1)  # over all rows, not the first alone
            chosen = np.arange(-self._seen % step, len(rows), step)
            self._copied.append(rows.select(self._card.columns).take(pa.array(chosen)))
            self._seen += len(rows)
        return self._card.mechanism.disagreement(rows, self._before)

    def misfits(self, *, same: bool) -> Iterator[str]:
        """Yield what is wrong; with `same`, this code's rules judge copied columns, too."""
        if self._ids:
            ids = pa.chunked_array([chunk for one in self._ids for chunk in one.chunks])
            if not is_distinct(ids):
                yield "data: the column id has a value twice"
        if same:
            for name in self._foreign:
                yield f"data: the column {name} has values that no run copies as they are"
            yield from self._unaccepted()

    def not_compared(self, *, same: bool) -> Iterator[str]:
        """Yield what was not compared."""
        if self._documents and not self.has_comparable_ids:
            yield f"whether ids are unique, of more than {MOST_IDS:,} documents"
        if self._card.columns and not same:
            yield "what copied columns look like"
        tokenizer = getattr(self._card.mechanism, "tokenizer", None)
        if isinstance(tokenizer, str) and rule_of(tokenizer) is None:
            yield "words with the tokenizer, which is not installed here"

    def _unaccepted(self) -> Iterator[str]:
        """Yield the looks of copied columns that the card must accept, and does not.

        A run looks at a sample of its corpus, or at all of a small one, which is judged alike here.
        So that no other is refused by chance, each of several parts of the rows must have the
        looks.
        """
        count = 1 if self._documents <= _FEW else _PARTS
        for name in self._card.columns:
            values = [value for table in self._copied for value in texts_in(table[name])]
            parts = [set(looks_like(values[start::count])) for start in range(count)]
            for look in sorted(set.intersection(*parts)):
                if refused([look], self._card.accepted or ()):
                    yield f"data: the column {name} looks like {look}; the card accepts none"


def _has_ids(ids: pa.ChunkedArray) -> bool:
    """Return whether a run reads these ids: whole numbers, and bytes that are UTF-8."""
    kind = ids.type.storage_type if isinstance(ids.type, pa.BaseExtensionType) else ids.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind):
        return True
    try:
        spelled(ids, "input.id", "id")
    except (InputError, pa.ArrowInvalid):
        return False
    return True


def is_distinct(ids: pa.ChunkedArray) -> bool:
    """Return whether no id stands twice; ids are of a type that a run compares, or of none."""
    kind = ids.type
    if isinstance(kind, pa.BaseExtensionType):
        return is_distinct(pa.chunked_array([one.storage for one in ids.chunks], kind.storage_type))
    if pa.types.is_dictionary(kind):
        return is_distinct(ids.cast(kind.value_type))
    if pa.types.is_null(kind):
        return len(ids) < 2
    found: int = pc.count_distinct(ids, mode="all").as_py()
    return found == len(ids)
