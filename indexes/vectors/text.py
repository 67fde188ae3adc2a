"""Word vectors from text: word2vec's format, which has a header, and GloVe's, which has none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice

import numpy as np
import numpy.typing as npt

from .rows import Rows, VectorsError, decoded, lines_of, quoted

_HEADER = re.compile(rb"(\d{1,15})[ \t](\d{1,6})\s*")
_FLORET = re.compile(rb"(\d+ ){6}\S+ \S+\s*")  # buckets, dimension, lengths, hashes, marks


def header(line: bytes) -> tuple[int, int] | None:
    """Return the numbers of rows and of dimensions, if the line is word2vec's header."""
    found = _HEADER.fullmatch(line)
    return (int(found[1]), int(found[2])) if found else None


class TextRows:
    """The numbered lines that hold vectors.

    Attributes:
        count: the number that the header states; None if there is no header.
        width: the dimension, from the header or the first line.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        """Read the first line; raise VectorsError if it holds no values."""
        numbered = enumerate(lines_of(lines), start=1)
        first = next(numbered, (1, b"0 1"))  # an empty file has no rows, of any dimension
        if _FLORET.fullmatch(first[1]):
            raise VectorsError(
                "is floret's table of hashed parts of words, which names no words; give the words' "
                "vectors, as floret's save_vectors writes them"
            )
        size = header(first[1])
        rows = [first] if size is None else list(islice(numbered, 1))
        width = size[1] if size else None
        self._separator = b"\t" if rows and _is_tabbed(rows[0][1], width) else b" "
        self.count = size[0] if size else None
        self.width = size[1] if size else len(self._split(first[1])[1])
        if self.width == 0:
            raise VectorsError("line 1 holds no values; give a word and its vector on every line")
        self._lines = chain(rows, numbered)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        return self._lines

    def parse(self, number: int, line: bytes) -> tuple[bytes, npt.NDArray[np.float32]]:
        """Parse a line's word and its vector, float32 (width,); too large values become infinite.

        Raises VectorsError for another number of values, or for a value that is not a number.
        """
        word, fields = self._split(line)
        if len(fields) > self.width and (not _is_number(fields[0]) or _is_number(word)):
            # GloVe's 840B file has words with spaces in them, and other files have "10 000".
            word, *fields = line.rsplit(maxsplit=self.width)
        if len(fields) != self.width:
            raise VectorsError(
                f"line {number} has {len(fields)} values, not {self.width} as line 1 says, after "
                f"{quoted(word)}; the line is damaged or the header lies: save the file again"
            )
        try:
            with np.errstate(over="ignore"):
                return word, np.array(fields, dtype=np.float32)
        except ValueError:
            raise VectorsError(
                f"line {number} holds something that is not a number, after {quoted(word)}; "
                "remove the line"
            ) from None

    def word_of(self, line: bytes) -> bytes:
        """Return what stands before the first separator of a line."""
        return line.partition(self._separator)[0]

    def _split(self, line: bytes) -> tuple[bytes, list[bytes]]:
        word, _, values = line.rstrip(b"\r\n \t").partition(self._separator)
        return word, values.split()


def read_text(lines: Iterable[bytes]) -> Rows:
    """Read all rows of a file; raise VectorsError if it is damaged or its header lies.

    A last line without an end is refused: a number cut short is still a number.
    """
    text = TextRows(lines)
    words: list[str] = []
    values = bytearray()  # grows in place, so that there is never a second copy
    for number, line in text:
        if not line.endswith(b"\n"):
            raise VectorsError(
                f"line {number} does not end: the file is cut short; fetch it again, or end the "
                "line if that is all"
            )
        if len(words) == text.count:
            raise VectorsError(
                f"line {number} is one more than the {text.count} rows that the header says: it "
                "lies; correct it or save the file again"
            )
        word, vector = text.parse(number, line)
        words.append(decoded(word))
        values += vector.tobytes()
    if text.count not in (None, len(words)):
        raise VectorsError(
            f"holds {len(words)} rows, its header says {text.count}: the file is cut short or its "
            "header lies; fetch or save it again"
        )
    array = np.frombuffer(values, dtype=np.float32).reshape(-1, text.width)
    return Rows(words, array, "line", 1 if text.count is None else 2)


def _is_tabbed(row: bytes, width: int | None) -> bool:
    """Return whether a tab ends the word; else a space does, and the word may hold tabs."""
    _, _, values = row.partition(b"\t")
    fields = values.split()
    ends = bool(fields) and not values[:1].isspace() and all(map(_is_number, fields))
    return ends and width in (None, len(fields))


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
