"""Word vectors, saved in each of the formats that are read."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gensim.models import KeyedVectors

from quietcorpus.indexes.vectors import WordVectors, read

WORDS = ["the", "caf\u00e9", "\u4e2d\u6587"]
VALUES = np.array([[0.1, -2.0], [3e-42, 1e38], [0.0, 1 / 3]], dtype=np.float32)
GLOVE = b"the 0.5 1\ncaf\xc3\xa9 2 -3e-1\n"
BINARY = b"2 2\nthe " + VALUES[0].tobytes() + b"of " + VALUES[1].tobytes()


def load(name: str, files: Mapping[str, bytes]) -> WordVectors:
    """Read `name` from a folder of `files`, and check that every stream is closed again."""
    opened = []

    def open_sibling(base_name: str) -> io.BytesIO:
        if base_name not in files:
            raise FileNotFoundError(base_name)
        opened.append(io.BytesIO(files[base_name]))
        return opened[-1]

    try:
        return read(name, open_sibling)
    finally:
        assert all(stream.closed for stream in opened)


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def keyed(words: list[str], values: npt.NDArray[Any]) -> KeyedVectors:
    vectors = KeyedVectors(values.shape[1], dtype=values.dtype)
    vectors.add_vectors(words, values)
    return vectors


def npz(**arrays: object) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def npy(array: npt.NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def assert_same(vectors: WordVectors, words: list[str], values: npt.NDArray[np.float32]) -> None:
    assert vectors.words == words
    assert vectors.values.tobytes() == values.tobytes()
    assert vectors.values.shape == values.shape
    assert vectors.values.dtype == np.float32
    assert vectors.values.flags.c_contiguous
    assert vectors.values.flags.writeable  # PyTorch warns of others


SAVERS: dict[str, Callable[[KeyedVectors, str], None]] = {
    "x.kv": lambda v, path: v.save(path),
    "apart.kv": lambda v, path: v.save(path, sep_limit=0),
    "x.vec": lambda v, path: v.save_word2vec_format(path),
    "x.txt": lambda v, path: v.save_word2vec_format(path, write_header=False),
    "x.bin": lambda v, path: v.save_word2vec_format(path, binary=True),
    "x.vec.gz": lambda v, path: v.save_word2vec_format(path),
    "x.txt.gz": lambda v, path: v.save_word2vec_format(path, write_header=False),
    "x.bin.gz": lambda v, path: v.save_word2vec_format(path, binary=True),
}
