"""Word vectors in the two formats of word2vec, which gensim and most tools open."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def as_text(words: Sequence[str], values: npt.NDArray[np.float32]) -> bytes:
    """Write a header, then a word and its vector on every line; `values` are float32 (n, d).

    Every number has enough digits to distinguish it from all other float32 numbers.
    """
    lines = [f"{values.shape[0]} {values.shape[1]}"]
    for word, vector in zip(words, values, strict=True):
        lines.append(f"{word} {' '.join(map(str, vector))}")
    return ("\n".join(lines) + "\n").encode()


def as_binary(words: Sequence[str], values: npt.NDArray[np.float32]) -> bytes:
    """Write the same as little-endian float32, with a line end after each vector."""
    parts = [f"{values.shape[0]} {values.shape[1]}\n".encode()]
    for word, vector in zip(words, values.astype("<f4"), strict=True):
        parts.append(word.encode() + b" " + vector.tobytes() + b"\n")
    return b"".join(parts)
