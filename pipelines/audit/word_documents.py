"""Documents of words that an audit releases, by the object that a release makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quietcorpus.evaluation.audits.lower_bound import LowerBound, epsilon_at_least
from quietcorpus.indexes.word_index import WordIndex
from quietcorpus.indexes.word_index_manifest import Part
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.privatizers.rows import ORDER
from quietcorpus.transforms.privatizers.words import WordPrivatizer, WordsParameters

from .inputs import released

Make = Callable[[], WordPrivatizer]
"""A function that builds the privatizer of a worker, under a fresh key."""


@dataclass(frozen=True)
class HeldIndex:
    """An index in memory, in the place of the artefact that parameters name."""

    index: WordIndex
    uri: str = "made up"
    digest: str = "0" * 64

    def open(self, *_: Part) -> WordIndex:
        """Return the index."""
        return self.index


def maker(parameters: WordsParameters) -> Make:
    """Return what builds the privatizer of a worker of a release, under a fresh key."""
    return lambda: parameters.privatizer(ReleaseKey.fresh())


def compared(
    make: Make,
    known: pa.Array,
    first: str,
    second: str,
    beside: str | None = None,
) -> Callable[[int, float], LowerBound]:
    """Return the bound on the loss of two documents, by which known texts are released.

    Each document stands after another one, the first by default, since noise that documents share
    would show.
    """

    def texts(text: str, count: int) -> npt.NDArray[np.int64]:
        return texts_released(make, known, (beside or first, text), count)

    return partial(epsilon_at_least, texts, first, second)


def texts_released(
    make: Make, known: pa.Array, texts: tuple[str, ...], count: int
) -> npt.NDArray[np.int64]:
    """Return which of the known texts documents become: int64 (count, texts); -1 for others."""
    parts = [
        _among(rows["text"].combine_chunks(), known) for rows in released(make(), texts, count)
    ]
    return np.concatenate(parts).reshape(count, len(texts))


def counts_released(
    make: Make, words: Sequence[str], text: str, count: int
) -> npt.NDArray[np.int64]:
    """Count each word in a document's releases: int64 (count, words)."""
    parts = [
        _counts(rows["text"].combine_chunks(), words) for rows in released(make(), (text,), count)
    ]
    return np.concatenate(parts)


def rows_released(
    make: Make,
    known: pa.Array,
    hidden: Sequence[str],
    text: str,
    count: int,
) -> npt.NDArray[np.int64]:
    """Release a document, and return numbers that describe all of its rows: int64 (count, k).

    They are the counts of hidden words, of words, of letters in upper case, and of what is neither
    a letter, a mark nor a space; the last word's place among known ones; and parts of the id and of
    the row's place among others.
    """
    parts = []
    for rows in released(make(), (text,), count):
        texts = rows["text"].combine_chunks()
        last = pc.extract_regex(texts, r"(?P<last>\S*)$").field("last")
        columns = (
            pc.count_substring(texts, " "),
            pc.count_substring_regex(texts, r"\p{Lu}"),
            pc.count_substring_regex(texts, r"[^\p{L}\p{M}\p{N}' ]"),
        )
        ids = np.array([int(each[:7], 16) for each in rows["id"].to_pylist()])
        order = rows[ORDER].to_numpy().astype(np.uint64) >> np.uint64(36)
        shown = [each.to_numpy(zero_copy_only=False) for each in columns]
        own = _counts(texts, hidden), *shown, _among(last, known), ids, order
        parts.append(np.column_stack([each.astype(np.int64) for each in own]))
    return np.concatenate(parts)


def _among(texts: pa.Array, known: pa.Array) -> npt.NDArray[np.int64]:
    found = pc.index_in(texts, value_set=known.cast(texts.type)).fill_null(-1)
    places: npt.NDArray[np.int64] = found.to_numpy(zero_copy_only=False).astype(np.int64)
    return places


def _counts(texts: pa.Array, words: Sequence[str]) -> npt.NDArray[np.int64]:
    columns = [pc.count_substring(texts, word).to_numpy(zero_copy_only=False) for word in words]
    return np.column_stack(columns).astype(np.int64)
