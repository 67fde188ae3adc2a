"""Word vectors from NumPy's files: `.npz` with words and vectors, `.npy` beside a list of words."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from .rows import (
    Rows,
    VectorsError,
    decoded,
    encodable,
    matrix,
    words_in,
)


def read_npz(stream: IO[bytes]) -> Rows:
    """Read the arrays `words` and `vectors`; `stream` must be seekable."""
    arrays = {}
    try:
        with zipfile.ZipFile(stream) as archive:
            held = {name.removesuffix(".npy") for name in archive.namelist()}
            for name in sorted(held & {"words", "vectors"}):
                with archive.open(f"{name}.npy") as member:
                    arrays[name] = _array(member)
            words = _words(arrays["words"]) if "words" in arrays else []
    except VectorsError:
        raise
    except Exception as error:  # a damaged archive raises whatever its bytes lead to
        raise _unreadable(
            error, "np.savez(path, words=np.array(words), vectors=vectors)"
        ) from error
    if len(arrays) < 2:
        raise VectorsError(
            f"holds {', '.join(map(repr, sorted(held))) or 'no arrays'}; save it with "
            "np.savez(path, words=np.array(words), vectors=vectors)"
        )
    return Rows(words, matrix(arrays["vectors"]))


def read_npy(stream: IO[bytes], words: Iterable[bytes]) -> Rows:
    """Read the matrix of a `.npy` file, and the words from the lines of its companion file."""
    array = read_matrix(stream)
    return Rows(words_in(words), array)


def read_matrix(stream: IO[bytes]) -> npt.NDArray[np.float32]:
    """Read the matrix of a `.npy` file, as float32 (n, d)."""
    try:
        array = _array(stream)
    except Exception as error:  # a damaged header raises whatever its bytes lead to
        raise _unreadable(error, "np.save(path, vectors)") from error
    return matrix(array)


def _array(stream: IO[bytes]) -> npt.NDArray[Any]:
    """Read an array to the end; refuse one of Python objects, since reading it runs code."""
    # The end matters in an archive too, whose checksum is compared only there.
    array: npt.NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    if stream.read(1):
        raise ValueError("it does not end with its array")
    return array


def _words(array: npt.NDArray[Any]) -> list[str]:
    if array.ndim != 1 or array.dtype.kind not in "US":
        raise VectorsError(
            f"holds words of shape {array.shape} and dtype {array.dtype}; give a list of strings"
        )
    convert = decoded if array.dtype.kind == "S" else encodable
    return [convert(word) for word in array.tolist()]


def _unreadable(error: Exception, remedy: str) -> VectorsError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return VectorsError(f"cannot be read ({reason}); fetch it again, or save it with {remedy}")
