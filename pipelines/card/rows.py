"""The check of what all rows of documents show together: unique ids, and accepted columns."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from ..schema.values import NEEDED
from .looks import looks_like, texts_in
from .model import Card
from .vocabulary import rule_of

MOST_IDS = 1 << 24
"""The most documents whose ids are compared: they are in memory at once."""
_SAMPLE, _PARTS = 2048, 4


class DocumentRows:
    """The rows of documents of a release, as they are read."""

    def __init__(self, card: Card) -> None:
        self._card = card
        self._files = sum(file.path.startswith("data/") for file in card.files)
        self._ids: list[pa.ChunkedArray] = []
        self._copied: list[pa.Table] = []

    @property
    def has_comparable_ids(self) -> bool:
        """Return whether there are few enough ids to compare."""
        return self._card.counts is not None and self._card.counts.documents <= MOST_IDS

    def add(self, rows: pa.Table, *, is_first: bool) -> None:
        """Add a row group; `is_first`, if it is the first of its file."""
        if self.has_comparable_ids:
            self._ids.append(rows["id"])
        if is_first and self._card.columns:
            some = -(-_SAMPLE // self._files)
            self._copied.append(rows.select(self._card.columns).slice(0, some))

    def misfits(self, *, same: bool) -> Iterator[str]:
        """Yield what is wrong; with `same`, this code's rules judge copied columns, too."""
        if self._ids:
            ids = pa.chunked_array([chunk for one in self._ids for chunk in one.chunks])
            if pc.count_distinct(ids, mode="all").as_py() != len(ids):
                yield "data: the column id has a value twice"
        if same:
            yield from self._unaccepted()

    def not_compared(self, *, same: bool) -> Iterator[str]:
        """Yield what was not compared."""
        if self._files and not self.has_comparable_ids:
            yield f"whether ids are unique, of more than {MOST_IDS:,} documents"
        if self._card.columns and not same:
            yield "what copied columns look like"
        tokenizer = getattr(self._card.mechanism, "tokenizer", None)
        if isinstance(tokenizer, str) and rule_of(tokenizer) is None:
            yield "words with the tokenizer, which is not installed here"

    def _unaccepted(self) -> Iterator[str]:
        """Yield the looks of copied columns that the card must accept, and does not.

        A run looks at a sample of its corpus. So that none is refused by chance, each of several
        parts of the rows must have the looks.
        """
        for name in self._card.columns:
            values = [value for table in self._copied for value in texts_in(table[name])]
            parts = [set(looks_like(values[start::_PARTS])) for start in range(_PARTS)]
            for look in sorted(set.intersection(*parts)):
                if NEEDED.get(look) not in (None, *(self._card.accepted or ())):
                    yield f"data: the column {name} looks like {look}; the card accepts none"
