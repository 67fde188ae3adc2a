"""Word vectors, from the files that word2vec, GloVe, fastText, gensim, NumPy and FAISS write."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress
from typing import IO, TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..tokens.tokenizers import Tokenizer
from ..tokens.vocabulary import is_reachable
from .arrays import read_faiss, read_keyed_vectors, read_npy, read_npz
from .rows import Rows, VectorsError
from .word2vec import read_binary, read_text

if TYPE_CHECKING:
    from ..search.inverted_lists import InvertedLists

__all__ = ["VectorsError", "WordVectors", "reachable", "read"]

_ZIPPABLE: dict[str, Callable[[IO[bytes]], Rows]] = {
    ".txt": read_text,
    ".vec": read_text,
    ".bin": read_binary,
}
_FORMATS = (
    ".txt, .vec (text), .bin (word2vec's binary or fastText's model; all with or without .gz), "
    ".kv, .npz, .npy, .faiss"
)


@dataclass(frozen=True)
class WordVectors:
    """At least two distinct words, and a finite vector other than zero for each.

    Attributes:
        words: n of them, in the file's order; none holds a lone surrogate.
        values: float32 (n, d), C-contiguous.
        lists: the inverted lists of these vectors, if the file has some.
    """

    words: list[str]
    values: npt.NDArray[np.float32]
    lists: InvertedLists | None = None

    def restricted(self, kept: npt.NDArray[np.bool_]) -> WordVectors:
        """Return some of the words, bool (n,), in their order."""
        if kept.all():
            return self
        lists = None if self.lists is None else self.lists.restricted(kept)
        return WordVectors(list(compress(self.words, kept)), self.values[kept], lists)


def read(
    name: str,
    open_sibling: Callable[[str], IO[bytes]],
    open_words: Callable[[], IO[bytes]] | None = None,
    tokenizer: Tokenizer | None = None,
) -> WordVectors:
    """Read the vectors of the file `name`, in the format of its extension.

    With a tokenizer, only the words that it yields are kept, as in `reachable`, and only these need
    usable vectors: a fastText model may have zeros for a string that is not a word.


    `open_sibling` opens a file of the same folder by its name, as a binary stream (a seekable one
    for `.npz`); it raises FileNotFoundError if there is none. `open_words` opens the words of a
    `.faiss` or `.npy` file, which otherwise are in a `.txt` of the same folder. Raises VectorsError
    for a file that is damaged, lies about its size, or holds words or vectors of no use.
    """
    with open_sibling(name) as stream:
        stem, extension = os.path.splitext(name)
        lists = None
        if extension in {".faiss", ".npy"}:
            with _words(f"{stem}.txt", open_sibling, open_words) as words:
                if extension == ".npy":
                    rows = read_npy(stream, words)
                else:
                    rows, lists = read_faiss(stream, words)
        elif open_words is not None:
            raise VectorsError("names its words itself; give none beside it")
        else:
            rows = _rows(name, stream, open_sibling)
    rows.check_shape()
    if tokenizer is None:
        rows.check(None)
        return WordVectors(rows.words, rows.values, lists)
    spelled, kept = _kept(rows.words, tokenizer)
    rows.check(kept)
    return WordVectors(spelled, rows.values, lists).restricted(kept)


def reachable(vectors: WordVectors, tokenizer: Tokenizer) -> WordVectors:
    """Keep the words that the tokeniser yields, each as its own one token, in their order.

    Words in lower case are spelled as the tokeniser has them. Of words that are spelled alike then,
    the first is kept.

    Raises VectorsError if fewer than two are left.
    """
    words, kept = _kept(vectors.words, tokenizer)
    return WordVectors(words, vectors.values, vectors.lists).restricted(kept)


def _kept(words: list[str], tokenizer: Tokenizer) -> tuple[list[str], npt.NDArray[np.bool_]]:
    """Return words as the tokeniser spells them, and which of them it yields.

    Raises VectorsError for fewer than two.
    """
    terms = tokenizer.respelled(pa.array(words, pa.large_string()))
    kept = is_reachable(terms, tokenizer.spelled(terms), tokenizer)
    spelled: list[str] = terms.to_pylist()
    first = dict(zip(reversed(spelled), range(len(words) - 1, -1, -1), strict=True))
    # A word that is there twice is a fault, which is found later, and no other spelling.
    others = (
        first[spelled[n]] == n or words[first[spelled[n]]] == words[n] for n in range(len(words))
    )
    kept &= np.fromiter(others, np.bool_, len(words))
    if kept.sum() < 2:
        raise VectorsError(
            f"holds {kept.sum()} words (of {len(kept)}) that the tokeniser {tokenizer.name} "
            "yields; give vectors of at least two lower-case words of letters alone"
        )
    return spelled, kept


def _rows(name: str, stream: IO[bytes], open_sibling: Callable[[str], IO[bytes]]) -> Rows:
    stem, extension = os.path.splitext(name)
    if extension == ".gz" and (reader := _ZIPPABLE.get(os.path.splitext(stem)[1])):
        return _unzipped(stream, reader)
    if reader := (_ZIPPABLE | {".npz": read_npz}).get(extension):
        return reader(stream)
    if extension == ".kv":
        return read_keyed_vectors(name, stream, open_sibling)
    raise VectorsError(f"has an extension that says no format; give one of {_FORMATS}")


def _unzipped(stream: IO[bytes], reader: Callable[[IO[bytes]], Rows]) -> Rows:
    try:
        with io.BufferedReader(gzip.GzipFile(fileobj=stream)) as unzipped:
            return reader(unzipped)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise VectorsError(f"is not a gzip file, or damaged ({error}); fetch it again") from None


def _words(
    sibling: str,
    open_sibling: Callable[[str], IO[bytes]],
    open_words: Callable[[], IO[bytes]] | None,
) -> IO[bytes]:
    if open_words is not None:
        return open_words()
    try:
        return open_sibling(sibling)
    except FileNotFoundError:
        raise VectorsError(f"needs {sibling!r} beside it, with one word a line") from None
