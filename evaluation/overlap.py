"""Overlap: texts that are equal to private documents, or nearly contained in them, or contain them.

Public texts are held in memory; private documents pass by in batches, and leave nothing but the
numbers of the public texts that they met.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.compiled import compiled, inlined

from .passages import is_passage
from .shingles import Numbers, Words, joined, shingles_of, words_of

EDITS = 0.3
"""The largest number of edits, for each word of the shorter text, that make it a passage."""
_SHARED = 0.2  # of the shorter text's shingles, from which on two texts are compared word by word
_LEAST_SHARED = 2
_RANGES = 2  # for each shingle, at least

Found = npt.NDArray[np.int64]


class Pairs(NamedTuple):
    """Pairs of a public text and a private document, as the public text's numbers, int64.

    Attributes:
        equal: those of texts that equal a document but for case, white space and compatible forms.
        near: those of other texts that share a passage with a document; see `PublicTexts`.
    """

    equal: Found
    near: Found


class _Table(NamedTuple):
    """The texts of each shingle.

    Attributes:
        shingles: uint64 (s,), ascending; each different one of all texts.
        shift: the number of bits of a shingle after its leading ones.
        starts: int64; where in `shingles` each range of equal leading bits begins, and the end.
        first: int64 (s + 1,); where in `texts` those of each shingle begin, and the end.
        texts: int32; their numbers.
        sizes: int64 (n,); the number of different shingles of each text.
    """

    shingles: Numbers
    shift: np.uint64
    starts: Found
    first: Found
    texts: npt.NDArray[np.int32]
    sizes: Found


class PublicTexts:
    """Texts that documents are compared with.

    A text and a document are near if neither is short, and the shorter one can be made of a passage
    of the longer one by edits: words replaced, inserted or removed, at most `EDITS` for each of its
    words. Only those pairs are tried that share one in five of the fewer different shingles, and
    two at least. An edit takes three shingles at most, so 20 edits for each 100 words of a text
    leave more than that, unless it repeats itself (Jokinen and Ukkonen 1991).
    """

    def __init__(self, batches: Sequence[pa.Array]) -> None:
        """Take the texts, large_string without nulls, in the order of their numbers."""
        self._words = joined([words_of(texts) for texts in batches])
        wholes = self._words.wholes
        self._order = np.argsort(wholes, kind="stable")
        self._wholes = wholes[self._order]
        self._table = _table(self._words)

    def __len__(self) -> int:
        return len(self._wholes)

    @property
    def short(self) -> npt.NDArray[np.bool_]:
        """Return which texts have too few words to be near a document, bool (n,)."""
        return self._words.short

    def compare(self, documents: pa.Array, settled: npt.NDArray[np.bool_]) -> Pairs:
        """Find the texts that these documents equal, and those they are near.

        Args:
            documents: large_string without nulls.
            settled: bool (n,): texts that are not compared other than for equality.
        """
        words = words_of(documents)
        equal = self._equal(words.wholes)
        near = _near(words, self._words, self._table, settled)
        different = words.wholes[near[:, 0]] != self._words.wholes[near[:, 1]]
        return Pairs(equal, near[different, 1])

    def _equal(self, wholes: Numbers) -> Found:
        wholes = wholes[wholes != 0]
        first = np.searchsorted(self._wholes, wholes, side="left")
        counts = np.searchsorted(self._wholes, wholes, side="right") - first
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        found: Found = self._order[np.repeat(first, counts) + within]
        return found


def _table(words: Words) -> _Table:
    """List the texts of each shingle."""
    shingles, texts = _all_shingles(words)
    order = np.argsort(shingles, kind="stable")
    shingles, texts = shingles[order], texts[order]
    again = (np.diff(shingles) == 0) & (np.diff(texts) == 0)
    kept = np.concatenate([np.ones(min(1, len(texts)), np.bool_), ~again])
    different, first = np.unique(shingles[kept], return_index=True)
    bits = max(1, int(_RANGES * len(different)).bit_length())
    shift = np.uint64(64 - bits)
    leading = (different >> shift).astype(np.int64)
    return _Table(
        different,
        shift,
        np.searchsorted(leading, np.arange((1 << bits) + 1)),
        np.append(first, kept.sum()),
        texts[kept],
        np.bincount(texts[kept], minlength=len(words.wholes)),
    )


@compiled
def _all_shingles(words):  # type: ignore[no-untyped-def]
    """Return the shingles of all texts that have words enough, and the text of each."""
    hashes, offsets = words.hashes, words.offsets
    found = np.empty(len(hashes), dtype=np.uint64)
    texts = np.empty(len(hashes), dtype=np.int32)
    total = 0
    for text in range(len(offsets) - 1):
        if not words.short[text]:
            own = hashes[offsets[text] : offsets[text + 1]]
            count = shingles_of(own, found[total:])
            texts[total : total + count] = text
            total += count
    return found[:total], texts[:total]


@inlined
def _place(shingle, table):  # type: ignore[no-untyped-def]
    """Return a shingle's place in the table, or -1."""
    leading = np.int64(shingle >> table.shift)
    for place in range(table.starts[leading], table.starts[leading + 1]):
        if table.shingles[place] == shingle:
            return place
    return -1


@compiled
def _near(documents, public, table, settled):  # type: ignore[no-untyped-def]
    """Return the pairs of a document and a text near it, int64 (pairs, 2)."""
    longest = np.diff(documents.offsets).max() if len(documents.wholes) else 0
    space = np.empty(longest, dtype=np.uint64)
    column = np.empty(max(longest, np.diff(public.offsets).max()) + 1, dtype=np.int64)
    shared = np.zeros(len(table.sizes), dtype=np.int64)
    met = np.empty(len(table.sizes), dtype=np.int64)
    pairs = [(0, 0) for _ in range(0)]
    for document in range(len(documents.wholes)):
        if documents.short[document]:
            continue
        words = documents.hashes[documents.offsets[document] : documents.offsets[document + 1]]
        shingles = np.unique(space[: shingles_of(words, space)])
        count = 0
        for shingle in shingles:
            place = _place(shingle, table)
            if place < 0:
                continue
            for text in table.texts[table.first[place] : table.first[place + 1]]:
                if shared[text] == 0:
                    met[count] = text
                    count += 1
                shared[text] += 1
        for text in met[:count]:
            enough = max(_LEAST_SHARED, _SHARED * min(len(shingles), table.sizes[text]))
            if shared[text] >= enough and not settled[text]:
                other = public.hashes[public.offsets[text] : public.offsets[text + 1]]
                short, long = (words, other) if len(words) < len(other) else (other, words)
                if is_passage(short, long, int(EDITS * len(short)), column):
                    pairs.append((document, text))
            shared[text] = 0
    found = np.empty((len(pairs), 2), dtype=np.int64)
    for number in range(len(pairs)):
        found[number, 0], found[number, 1] = pairs[number]
    return found
