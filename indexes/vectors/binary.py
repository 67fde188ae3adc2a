"""Word vectors from a `.bin`: word2vec's binary format, or a model of fastText's.

A file of word2vec has a header, and for every word its bytes, a space and float32 values, with a
line end after each (the original tool) or without one (gensim).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import numpy as np

from .fasttext import MAGIC, read_fasttext
from .rows import Rows, VectorsError, decoded, quoted
from .text import header

_BLOCK = 1 << 22
_LONGEST_WORD = 1 << 16
_LONGEST_HEADER = 64


def read_binary(stream: IO[bytes]) -> Rows:
    """Read all rows of a file; raise VectorsError if it is damaged or its header lies."""
    begin = stream.read(len(MAGIC))
    if begin == MAGIC:
        return read_fasttext(stream)
    rest = b"" if begin.endswith(b"\n") else stream.readline(_LONGEST_HEADER)
    size = header(begin + rest)
    if size is None:
        raise VectorsError(
            "begins neither with word2vec's header, the numbers of words and of dimensions, nor as "
            "a model of fastText's; give one of these two binary formats"
        )
    count, width = size
    words: list[str] = []
    values = bytearray()  # grows in place, so that there is never a second copy
    for word, vector in _rows(stream, count, 4 * width):
        words.append(_word(word, len(words) + 1))
        values += vector
    array = np.frombuffer(values, dtype="<f4").reshape(count, width)
    return Rows(words, np.ascontiguousarray(array, dtype=np.float32))


def _rows(stream: IO[bytes], count: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield each word and the `size` bytes of its vector."""
    block, at = b"", 0
    for row in range(1, count + 1):
        while len(block) - at < _LONGEST_WORD + size and (more := stream.read(_BLOCK)):
            block, at = block[at:] + more, 0
        start = block.find(b" ", at, at + _LONGEST_WORD) + 1
        if start == 0 or len(block) < start + size:
            raise VectorsError(
                f"row {row} of {count} is not whole: the file is cut short or its header lies; "
                "fetch or save it again"
            )
        yield block[at : start - 1], block[start : start + size]
        at = start + size
    if (block[at:] or stream.read(2)) not in (b"", b"\n"):
        raise VectorsError(
            f"holds more than the {count} vectors of {size // 4} values that its header says: it "
            "lies; save the file again"
        )


def _word(word: bytes, row: int) -> str:
    """Decode the row's word: UTF-8, or cut within its last character, as word2vec cuts long words.

    Anything else is a sign that words and vectors are out of step, as after a word with a space.
    """
    word = word.removeprefix(b"\n")
    try:
        return word.decode()
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":
            raise VectorsError(
                f"row {row}: {quoted(word)} is not UTF-8: the header lies about the dimension, or "
                "a word holds a space; save the file again, as text"
            ) from None
        return decoded(word)
