"""The rows that every reader of word vectors returns, and the checks that are the same for all."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_LONGEST_QUOTE = 40


class VectorsError(ValueError):
    """Word vectors that cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class Rows:
    """The words of a file and their vectors, as they are in the file.

    Attributes:
        words: n of them.
        values: float32 (n, d), C-contiguous.
        place: the name of a row in errors, "line" or "row".
        first: the number of the first row.
    """

    words: list[str]
    values: npt.NDArray[np.float32]
    place: str = "row"
    first: int = 1

    def check_shape(self) -> None:
        """Raise VectorsError for fewer than two words, or for more or fewer vectors than words."""
        words, (rows, dimensions) = self.words, self.values.shape
        if len(words) != rows:
            raise VectorsError(f"holds {len(words)} words and {rows} vectors; give one a word")
        if rows < 2:
            raise VectorsError(f"holds {rows} words; give at least two")
        if dimensions == 0:
            raise VectorsError("holds vectors of dimension 0; give at least one value a word")

    def check(self, kept: npt.NDArray[np.bool_] | None = None) -> None:
        """Raise VectorsError for a vector or a word that is unusable, or that occurs twice.

        `kept` are the words that matter, bool (n,); by default, all of them.
        """
        unused = np.zeros(len(self.words), dtype=np.bool_) if kept is None else ~kept
        finite = np.isfinite(self.values).all(axis=1)
        self._require(finite | unused, "has a value that is not finite")
        self._require(self.values.any(axis=1) | unused, "has a vector of zeros")
        self._require(self._first_of_its_kind() | unused, "stands there more than once")

    def _first_of_its_kind(self) -> npt.NDArray[np.bool_]:
        first = np.ones(len(self.words), dtype=np.bool_)
        if len(set(self.words)) < len(self.words):
            seen: set[str] = set()
            for row, word in enumerate(self.words):
                first[row] = word not in seen
                seen.add(word)
        return first

    def _require(self, good: npt.NDArray[np.bool_], fault: str) -> None:
        faulty = np.flatnonzero(~good)
        if len(faulty):
            raise VectorsError(
                f"{self.place} {self.first + faulty[0]}: {quoted(self.words[faulty[0]])} {fault} "
                f"({len(faulty)} such {self.place}s); remove them"
            )


def decoded(word: bytes) -> str:
    r"""Decode a word of UTF-8; a byte that is not UTF-8 becomes \xNN.

    The tokeniser yields no backslash, so no token equals such a word. If another word is spelled
    with that very backslash, `Rows.check` finds the word twice: words are never merged.
    """
    return word.decode(errors="backslashreplace")


def quoted(word: str | bytes) -> str:
    """Quote a word for an error message; quote the bytes where they are not text."""
    if isinstance(word, bytes) and "\\" not in decoded(word):
        word = decoded(word)
    return repr(word[:_LONGEST_QUOTE])


def lines_of(stream: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a text, without the byte order mark that some programs put first."""
    for number, line in enumerate(stream):
        yield line.removeprefix(codecs.BOM_UTF8) if number == 0 else line


def words_in(stream: Iterable[bytes]) -> list[str]:
    """Return the words of a text that has one in each line."""
    return [decoded(line.removesuffix(b"\n").removesuffix(b"\r")) for line in lines_of(stream)]


def encodable(word: str) -> str:
    """Make a word encodable as UTF-8: half a surrogate pair is escaped, as in `decoded`."""
    return decoded(word.encode(errors="surrogatepass"))


def matrix(array: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Convert a real array to float32 (n, d), C-contiguous; raise VectorsError for other arrays."""
    if array.dtype.kind not in "fiu":
        raise VectorsError(f"holds vectors of dtype {array.dtype}; give real numbers")
    if array.ndim != 2:
        raise VectorsError(f"holds vectors of shape {array.shape}; give a row for every word")
    # What float32 cannot hold becomes infinite, which `Rows.check` refuses.
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32)
