"""What every reader of word vectors hands over, and the checks that are the same for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_LONGEST_QUOTE = 40


class VectorsError(ValueError):
    """Word vectors that cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class Rows:
    """The words of a file and their vectors, as they stand there.

    Attributes:
        words: n of them.
        values: float32 (n, d), C-contiguous.
        place: what an error calls a row, "line" or "row".
        first: the number of the first one.
    """

    words: list[str]
    values: npt.NDArray[np.float32]
    place: str = "row"
    first: int = 1

    def check(self) -> None:
        """Raise VectorsError for fewer than two words, or for words or vectors of no use."""
        words, (rows, dimensions) = self.words, self.values.shape
        if len(words) != rows:
            raise VectorsError(f"holds {len(words)} words and {rows} vectors; give one a word")
        if rows < 2:
            raise VectorsError(f"holds {rows} words; give at least two")
        if dimensions == 0:
            raise VectorsError("holds vectors of dimension 0; give at least one value a word")
        self._require(np.isfinite(self.values).all(axis=1), "has a value that is not finite")
        self._require(self.values.any(axis=1), "has a vector of zeros")
        self._require(self._first_of_its_kind(), "stands there more than once")

    def _first_of_its_kind(self) -> npt.NDArray[np.bool_]:
        first = np.ones(len(self.words), dtype=np.bool_)
        if len(set(self.words)) < len(self.words):
            seen: set[str] = set()
            for row, word in enumerate(self.words):
                first[row] = word not in seen
                seen.add(word)
        return first

    def _require(self, good: npt.NDArray[np.bool_] | np.bool_, fault: str) -> None:
        faulty = np.flatnonzero(~np.asarray(good))
        if len(faulty):
            raise VectorsError(
                f"{self.place} {self.first + faulty[0]}: {quoted(self.words[faulty[0]])} {fault} "
                f"({len(faulty)} such {self.place}s); remove them"
            )


def decoded(word: bytes) -> str:
    r"""A word of UTF-8; a byte that is none becomes \xNN.

    The tokeniser yields no backslash, so such a word is none of a text's. Should another word be
    spelled with that very backslash, `Rows.check` finds it twice: words are never merged.
    """
    return word.decode(errors="backslashreplace")


def quoted(word: str | bytes) -> str:
    """A word for an error message; the bytes themselves where they are no text."""
    if isinstance(word, bytes) and "\\" not in decoded(word):
        word = decoded(word)
    return repr(word[:_LONGEST_QUOTE])


def encodable(word: str) -> str:
    """A word as UTF-8 can hold it: half a surrogate pair is treated like bytes that are no text."""
    return decoded(word.encode(errors="surrogatepass"))


def matrix(array: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """An array of any real type as float32 (n, d), C-contiguous; raises VectorsError for others."""
    if array.dtype.kind not in "fiu":
        raise VectorsError(f"holds vectors of dtype {array.dtype}; give real numbers")
    if array.ndim != 2:
        raise VectorsError(f"holds vectors of shape {array.shape}; give a row for every word")
    # What float32 cannot hold becomes infinite, which `Rows.check` refuses.
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32)
