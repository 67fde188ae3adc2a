"""The vectors of a vocabulary's terms, from the text formats of word2vec and GloVe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from ..vectors.rows import VectorsError
from ..vectors.word2vec import TextRows


def read_vectors(lines: Iterable[bytes], terms: Sequence[str]) -> npt.NDArray[np.float32]:
    """Read the vectors of `terms`, float32 (V, d), scaled to length one; zero where there is none.

    `lines` are those of a word2vec text file (a header of two numbers) or a GloVe one (none). The
    other words' lines are not parsed. Raises VectorsError for rows of different dimensions, values
    that are not finite numbers, or no vector for any term.
    """
    rows = {term.encode(): row for row, term in enumerate(terms)}
    text = TextRows(lines)
    vectors: npt.NDArray[np.float32] | None = None
    for number, line in text:
        if text.word_of(line) not in rows:
            continue
        word, vector = _parsed(text, number, line)
        if word in rows:
            if vectors is None:
                vectors = np.zeros((len(terms), text.width), dtype=np.float32)
            vectors[rows[word]] = vector
    if vectors is None:
        raise VectorsError("has no vector for any term of the vocabulary")
    lengths: npt.NDArray[np.float32] = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    return vectors


def dimension_of(lines: Iterable[bytes]) -> int:
    """Return the dimension of a file's vectors, after parsing all of its lines.

    Raises VectorsError for the same faults as `read_vectors`, whatever the terms.
    """
    text = TextRows(lines)
    for number, line in text:
        _parsed(text, number, line)
    return text.width


def _parsed(text: TextRows, number: int, line: bytes) -> tuple[bytes, npt.NDArray[np.float32]]:
    word, vector = text.parse(number, line)
    if not np.isfinite(vector).all():
        raise VectorsError(f"line {number} holds a value that is not finite; remove the line")
    return word, vector
