"""Word vectors from the text formats of word2vec and GloVe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt


class EmbeddingError(ValueError):
    """A file of vectors that cannot be used; the message says why and what to do."""


def read_vectors(lines: Iterable[bytes], terms: Sequence[str]) -> npt.NDArray[np.float32]:
    """The vectors of `terms`, float32 (V, d), scaled to length one; zero where there is none.

    `lines` are those of a word2vec text file (a header of two numbers) or a GloVe one (none).
    Raises EmbeddingError for rows of different dimensions, values that are not finite numbers, or
    no vector for any term.
    """
    rows = {term.encode(): row for row, term in enumerate(terms)}
    vectors: npt.NDArray[np.float32] | None = None
    for number, line in enumerate(lines, start=1):
        word, _, values = line.rstrip(b"\r\n ").partition(b" ")
        if number == 1:
            header = values.isdigit() and word.isdigit()
            width = int(values) if header else len(values.split())
            if header:
                continue
        if word not in rows or _is_phrase(values, width):
            continue
        vector = _parse(values, number)
        if vectors is None:
            vectors = np.zeros((len(terms), len(vector)), dtype=np.float32)
        if len(vector) != vectors.shape[1]:
            raise EmbeddingError(
                f"line {number} has {len(vector)} values, not {vectors.shape[1]} as before it"
            )
        vectors[rows[word]] = vector
    if vectors is None:
        raise EmbeddingError("has no vector for any term of the vocabulary")
    lengths: npt.NDArray[np.float32] = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    return vectors


def _is_phrase(values: bytes, width: int) -> bool:
    """Whether the row's word goes on after its first space, as some do in GloVe's 840B file."""
    fields = values.split()
    if len(fields) <= width:
        return False
    try:
        float(fields[0])
    except ValueError:
        return True
    return False


def _parse(values: bytes, number: int) -> npt.NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):  # such a value becomes infinite, and is refused below
            vector = np.array(values.split(), dtype=np.float32)
    except ValueError:
        raise EmbeddingError(f"line {number} holds something that is not a number") from None
    if not len(vector) or not np.isfinite(vector).all():
        raise EmbeddingError(f"line {number} holds no values, or one that is not finite")
    return vector
