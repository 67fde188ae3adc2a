"""Word vectors from files of arrays: NumPy's, gensim's and FAISS's.

Word vectors from gensim's own files (`KeyedVectors.save`), without gensim and without trust.

Such a file is a pickle, and a pickle can call any function that it names. Here it can name only the
parts of a KeyedVectors, and gets inert stand-ins for these. Neither gensim's code runs nor NumPy's
own unpickling, which trusts the sizes that a file states. A file that names anything else is
refused.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable, Iterable
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..search.protocol import SearchError
from .rows import (
    Rows,
    VectorsError,
    decoded,
    encodable,
    matrix,
    words_in,
)

if TYPE_CHECKING:
    from ..search.inverted_lists import InvertedLists


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


def read_faiss(stream: IO[bytes], words: Iterable[bytes]) -> tuple[Rows, InvertedLists | None]:
    """Read an index of FAISS's, and the words from the lines of another file.

    Returns the vectors in the order of FAISS's ids, and the inverted lists if there are any. Raises
    VectorsError for a file that is cut off, of another metric or of another kind of index.
    """
    from ..search import inverted_lists

    try:
        index = inverted_lists.parse_index(stream.read())
        lists = None
        if isinstance(index, inverted_lists.library().IndexFlat):
            inverted_lists.check_metric(index)
            values = index.reconstruct_n(0, index.ntotal)
        else:
            lists = inverted_lists.InvertedLists(index)
            values = lists.vectors()
    except SearchError as error:
        raise VectorsError(str(error)) from None
    return Rows(words_in(words), np.ascontiguousarray(values, dtype=np.float32)), lists
