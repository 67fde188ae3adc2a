"""Words and shingles, which are runs of three words, of texts in any script."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quietcorpus.compiled import compiled, inlined
from quietcorpus.indexes.tokens.segmentation import WITHOUT_SPACES
from quietcorpus.indexes.tokens.tokenizer import normalize, string_buffers, tokens_in

WIDTH = 3
"""The number of words of a shingle."""
LEAST_WORDS = 12
"""The fewest words of a text that is not short."""
CHARACTERS = 4
"""The number of characters that count as a word, in scripts without spaces between words."""
# White space that a normal form keeps, beside ASCII's.
_WIDE_SPACES = r"[\x{85}\x{1680}\x{2028}\x{2029}]"
_EACH = re.compile(f"({WITHOUT_SPACES})")
_SEED, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_HIGH, _MIDDLE, _LOW = np.uint64(30), np.uint64(27), np.uint64(31)

Numbers = npt.NDArray[np.uint64]


class Words(NamedTuple):
    """The words of some texts, as 64-bit hashes.

    Attributes:
        hashes: uint64; those of all texts, one text after the other.
        offsets: int64 (n + 1,); text i has the words offsets[i] .. offsets[i + 1].
        short: bool (n,); the texts that have fewer than `LEAST_WORDS`.
        wholes: uint64 (n,); a hash of the normal form of each text without its white space, and 0
            of a text that has nothing else.
    """

    hashes: Numbers
    offsets: npt.NDArray[np.int64]
    short: npt.NDArray[np.bool_]
    wholes: Numbers


def words_of(texts: pa.Array) -> Words:
    """Find the words of a string or large_string array without nulls, of valid UTF-8.

    A word is a token of `unicode-words-v1`. In a script that is written without spaces between
    words such a token would be a clause, and each character stands as a word.
    """
    normal = normalize(texts)
    spaceless = pc.replace_substring_regex(normal, _WIDE_SPACES, "")
    wholes = _wholes(*string_buffers(spaceless))
    dense = pc.count_substring_regex(normal, WITHOUT_SPACES)
    some = pc.greater(dense, 0)
    if pc.any(some).as_py():
        apart = [_EACH.sub(r" \1", text) for text in normal.filter(some).to_pylist()]
        normal = pc.replace_with_mask(normal, some, pa.array(apart, pa.large_string()))
    found = tokens_in(normal)
    characters = dense.to_numpy()  # some are marks, which are no words of their own
    words = np.maximum(np.diff(found.offsets) - characters, 0) + characters / CHARACTERS
    return Words(found.hashes, found.offsets, words < LEAST_WORDS, wholes)


def joined(parts: Sequence[Words]) -> Words:
    """Join batches of words; there is at least one."""
    before = np.cumsum([0, *(len(part.hashes) for part in parts)])
    offsets = [part.offsets[1:] + start for part, start in zip(parts, before, strict=False)]
    return Words(
        np.concatenate([part.hashes for part in parts]),
        np.concatenate([np.zeros(1, np.int64), *offsets]),
        np.concatenate([part.short for part in parts]),
        np.concatenate([part.wholes for part in parts]),
    )


@compiled
def _wholes(data, offsets):  # type: ignore[no-untyped-def]
    """Hash the bytes of each text that are neither white space nor control characters of ASCII."""
    found = np.zeros(len(offsets) - 1, dtype=np.uint64)
    for text in range(len(found)):
        state, some = _SEED, False
        for position in range(offsets[text], offsets[text + 1]):
            if data[position] > 32:
                state = (state ^ np.uint64(data[position])) * _PRIME
                some = True
        if some:
            found[text] = mixed(state) | np.uint64(1)
    return found


@inlined
def mixed(state):  # type: ignore[no-untyped-def]
    """Return 64 bits that each depend on all 64 given (the finaliser of SplitMix64)."""
    state = (state ^ (state >> _HIGH)) * _FIRST
    state = (state ^ (state >> _MIDDLE)) * _SECOND
    return state ^ (state >> _LOW)


@compiled
def shingles_of(words, found):  # type: ignore[no-untyped-def]
    """Write the shingles of a text's words into `found`; return how many there are."""
    count = max(0, len(words) - WIDTH + 1)
    for first in range(count):
        state = words[first]
        for place in range(1, WIDTH):
            state = mixed(state) + words[first + place]
        found[first] = mixed(state)
    return count
