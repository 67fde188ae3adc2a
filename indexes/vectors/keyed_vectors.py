"""Word vectors from gensim's own files (`KeyedVectors.save`), without gensim and without trust.

Such a file is a pickle, and a pickle can call any function that it names. Here it can name only the
parts of a KeyedVectors, and gets inert stand-ins for these. Neither gensim's code runs nor NumPy's
own unpickling, which trusts the sizes that a file states. A file that names anything else is
refused.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from .numpy_files import read_matrix
from .rows import Rows, VectorsError, encodable, matrix

_REMEDY = "save the vectors in word2vec's format, with save_word2vec_format"
_FLOATS = {"f2", "f4", "f8"}


class _Inert:
    """The content of a pickled object: the arguments of its class, and its state.

    `__setstate__` is necessary: without it, a pickle could set any attribute of the class itself.
    """

    arguments: tuple[Any, ...]
    state: Any = None

    def __new__(cls, *arguments: Any) -> _Inert:
        self = super().__new__(cls)
        self.arguments = arguments
        return self

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _KeyedVectors(_Inert):
    pass


class _Array(_Inert):
    def values(self) -> npt.NDArray[Any]:
        _, shape, dtype, fortran, raw = self.state
        kind, order = dtype.arguments[0], dtype.state[1]
        if kind not in _FLOATS:
            raise VectorsError(f"holds vectors of dtype {kind!r}; {_REMEDY}")
        flat = np.frombuffer(raw, dtype=np.dtype(kind).newbyteorder(order))
        return flat.reshape(shape, order="F" if fortran else "C").copy()


class _Scalar(_Inert):
    def text(self) -> str:
        """Return a string of NumPy's; raises an error for any other scalar."""
        dtype, raw = self.arguments
        if not dtype.arguments[0].startswith("U"):
            raise VectorsError(f"holds a key of dtype {dtype.arguments[0]!r}; {_REMEDY}")
        order = "be" if dtype.state[1] == ">" else "le"
        found: str = raw.decode(f"utf-32-{order}", "surrogatepass")
        return found.rstrip("\0")


_ALLOWED: dict[tuple[str, str], type[_Inert]] = {
    ("gensim.models.keyedvectors", "KeyedVectors"): _KeyedVectors,
    ("numpy", "ndarray"): _Inert,
    ("numpy", "dtype"): _Inert,
    # NumPy 2's names, and those of 1.
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "scalar"): _Scalar,
    ("numpy.core.multiarray", "scalar"): _Scalar,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type[_Inert]:
        allowed = _ALLOWED.get((module, name))
        if allowed is not None:
            return allowed
        if module == "gensim.models.keyedvectors":
            raise VectorsError(f"was saved by gensim 3; load it with gensim 4 and {_REMEDY}")
        raise VectorsError(
            f"names {module + '.' + name!r}, which is not part of a KeyedVectors, and so was not "
            f"loaded; {_REMEDY}"
        )


def read_keyed_vectors(
    name: str, stream: IO[bytes], open_sibling: Callable[[str], IO[bytes]]
) -> Rows:
    """Read the keys and vectors of the KeyedVectors `name`, whose array may lie in a sibling."""
    data = io.BytesIO(stream.read())
    try:
        state = _state(data)
        words = [_checked_key(key) for key in state["index_to_key"]]
        apart = "vectors" in state.get("__numpys", [])
        values = None if apart else state["vectors"].values()
    except VectorsError:
        raise
    except Exception as error:  # a damaged pickle raises whatever its bytes lead to
        raise VectorsError(
            f"is not a KeyedVectors, or damaged ({type(error).__name__}); fetch it again, or "
            f"{_REMEDY}"
        ) from error
    return Rows(words, matrix(values) if values is not None else _apart(name, open_sibling))


def _state(data: io.BytesIO) -> dict[str, Any]:
    saved = _Unpickler(data).load()
    if not isinstance(saved, _KeyedVectors):
        raise VectorsError(f"holds no KeyedVectors of gensim's; {_REMEDY}")
    state: dict[str, Any] = saved.state
    return state


def _checked_key(key: object) -> str:
    if isinstance(key, _Scalar):
        key = key.text()
    if isinstance(key, int):
        key = str(key)
    if not isinstance(key, str):
        raise VectorsError(f"holds a key that is not a string ({type(key).__name__}); {_REMEDY}")
    return encodable(key)


def _apart(name: str, open_sibling: Callable[[str], IO[bytes]]) -> npt.NDArray[np.float32]:
    sibling = f"{name}.vectors.npy"
    try:
        with open_sibling(sibling) as stream:
            return read_matrix(stream)
    except FileNotFoundError:
        raise VectorsError(f"needs {sibling!r}, saved with it; put it beside it") from None
    except VectorsError as error:
        raise VectorsError(f"has a part, {sibling!r}, that {error}") from None
