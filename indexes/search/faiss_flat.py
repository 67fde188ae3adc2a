"""Exhaustive search by FAISS, whose answers are those of exact search.

FAISS computes in float32, in an order that depends on the library and the processor, and does not
promise which of equally near words it names. So it only proposes the few nearest: float64 decides
among them, where a rigorous bound on the error shows that no other can be nearer. Where it does
not, exact search decides.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled

from .euclidean import (
    EuclideanSearch,
    distance_error,
    put_in_order,
    require_as_many,
)
from .faiss_library import FaissMissing, faiss
from .hamming import HammingSearch
from .protocol import SearchError

PROPOSED = 8  # words; with twice as many, FAISS is slower by a third
_QUERIES_AT_ONCE = 1024
_LARGEST_ERROR = 2.0**60  # with a larger one, squares may not be within float32


class FlatSearch:
    """The search of vectors by FAISS's exhaustive search (IndexFlatL2's), decided in float64.

    Answers are those of `EuclideanSearch`, ties included. The vectors are searched where they lie:
    an index of FAISS's own would hold a copy in every worker.
    """

    def __init__(self, vectors: npt.NDArray[np.float32]) -> None:
        """Keep `vectors`, float32 (V, d), uncopied if C-contiguous, so that they may be mapped.

        Raises SearchError if FAISS is missing.
        """
        self._vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        self._proposed = min(PROPOSED, len(vectors))
        _imported()

    def nearest(self, queries: npt.NDArray[np.float32]) -> npt.NDArray[np.int32]:
        """Find the id of the vector nearest to each query, int32 (n,); queries: float32 (n, d).

        Raises ValueError for a query that is not finite, or longer than any noise makes one, and
        for vectors so long that products with them might overflow.
        """
        return self.several(queries, 1)[0][:, 0]

    def several(
        self, queries: npt.NDArray[np.float32], count: int
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Find the `count` vectors nearest to each query, of `PROPOSED`; see `VectorSearch`."""
        require_as_many(self._vectors[:PROPOSED], count)
        found = np.empty((len(queries), count), dtype=np.int32)
        squares = np.full((len(queries), count), np.inf)
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            own = slice(start, start + _QUERIES_AT_ONCE)
            chunk = np.ascontiguousarray(queries[own])
            error = distance_error(chunk, self._exact.longest)
            distances, ids = self._propose(chunk)
            _nearest_of(self._vectors, chunk, ids, found[own], squares[own])
            open_ = np.flatnonzero(~self._settled(distances, error, count))
            if len(open_):
                found[start + open_], squares[start + open_] = self._exact.several(
                    chunk[open_], count
                )
        return found, squares

    @cached_property
    def _exact(self) -> EuclideanSearch:
        # It reads all vectors, and the launcher makes a search only to see whether it can.
        return EuclideanSearch(self._vectors)

    def _propose(
        self, queries: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """Return float32 distances and ids of the words that FAISS finds nearest, in order."""
        found: tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]] = faiss().knn(
            queries, self._vectors, self._proposed
        )
        return found

    def _settled(
        self, distances: npt.NDArray[np.float32], error: npt.NDArray[np.float64], count: int
    ) -> npt.NDArray[np.bool_]:
        """Return whether the nearest words must be among those proposed, for each query."""
        if self._proposed == len(self._vectors):
            return np.ones(len(distances), dtype=bool)
        return settled(distances, error, count)


def settled(
    distances: npt.NDArray[np.float32], error: npt.NDArray[np.float64], count: int = 1
) -> npt.NDArray[np.bool_]:
    """Return whether only proposed words can be the `count` nearest, bool (n,).

    A word that is not proposed is no nearer than the last proposed one, by float32. So its true
    distance is at least that one less `error`, and those of the first `count` are at most the last
    one's of them plus `error`.

    Args:
        distances: float32 (n, k), increasing; infinite where there are no more words.
        error: float64 (n,), a bound on the error of each distance.
        count: the number of nearest words, below k.
    """
    near, last = distances[:, count - 1].astype(np.float64), distances[:, -1].astype(np.float64)
    # Not a number compares as False, and so do distances that overflow.
    bounded: npt.NDArray[np.bool_] = (near + error < last - error) & (error < _LARGEST_ERROR)
    return bounded


@compiled
def _nearest_of(vectors, queries, ids, found, least):  # type: ignore[no-untyped-def]
    """Write the nearest of each query's words, in float64, and their squared distances.

    `ids` is int64 (n, k); negative ones stand for none. `found`, int32 (n, few), gets -1 where
    there are no more, and `least`, float64 (n, few), is infinite before.
    """
    found[:] = -1
    for i in range(len(queries)):
        for j in range(ids.shape[1]):
            word = ids[i, j]
            if word < 0:
                continue
            distance = 0.0
            for k in range(vectors.shape[1]):
                difference = np.float64(queries[i, k]) - np.float64(vectors[word, k])
                distance += difference * difference
            put_in_order(least[i], found[i], distance, word)


class BinaryFlatSearch:
    """The search of codes by FAISS's exhaustive search (IndexBinaryFlat's).

    Distances are whole numbers, so only ties are left to decide: of several nearest codes the
    lowest id is found, as by `HammingSearch`, which decides where FAISS may not have named all.
    """

    def __init__(self, codes: npt.NDArray[np.uint64]) -> None:
        """Keep `codes`, uint64 (V, words), uncopied if C-contiguous, so that they may be mapped.

        Raises SearchError if FAISS is missing.
        """
        self._codes = np.ascontiguousarray(codes, dtype="<u8")
        self._exact = HammingSearch(codes)
        self._proposed = min(PROPOSED, len(codes))
        _imported()

    def nearest(self, queries: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
        """Find the id of the code nearest to each query, int32 (n,); queries: uint64 (n, words)."""
        found = np.empty(len(queries), dtype=np.int32)
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            chunk = np.ascontiguousarray(queries[start : start + _QUERIES_AT_ONCE], dtype="<u8")
            distances, ids = faiss().knn_hamming(
                chunk.view(np.uint8), self._codes.view(np.uint8), self._proposed
            )
            nearest = distances.min(axis=1, keepdims=True)
            own = np.where(distances == nearest, ids, len(self._codes)).min(axis=1)
            open_ = distances.max(axis=1) == nearest[:, 0]
            if self._proposed < len(self._codes) and open_.any():
                own[open_] = self._exact.nearest(chunk[open_])
            found[start : start + len(chunk)] = own
        return found


class GpuFlatSearch(FlatSearch):
    """The search of vectors on a GPU by FAISS, decided on the processor in float64.

    The bound of `FlatSearch` holds for float32. A GPU may round products to TF32 instead, so that
    is switched off, and then it is measured that it is.
    """

    def __init__(self, vectors: npt.NDArray[np.float32]) -> None:
        """Copy `vectors`, float32 (V, d), to this machine's first GPU.

        Raises SearchError where FAISS has no part for GPUs, there is no GPU, its memory is too
        small, or it does not compute in float32.
        """
        module = _imported()
        check_gpu(module)
        super().__init__(vectors)
        os.environ["NVIDIA_TF32_OVERRIDE"] = "0"  # read when cuBLAS is loaded
        try:
            self._resources = module.StandardGpuResources()
            self._check_float32(vectors.shape[1])
            self._index = self._copied(self._vectors)
        except RuntimeError:
            raise SearchError(
                f"the GPU cannot hold the vectors, {self._vectors.nbytes:,} bytes and room to "
                "work; take faiss-flat, or a larger GPU"
            ) from None

    def _copied(self, vectors: npt.NDArray[np.float32]) -> Any:
        module = faiss()
        settings = module.GpuIndexFlatConfig()
        settings.useFloat16 = False
        index = module.GpuIndexFlatL2(self._resources, vectors.shape[1], settings)
        index.add(vectors)
        return index

    def _propose(
        self, queries: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        found: tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]] = self._index.search(
            queries, self._proposed
        )
        return found

    def _check_float32(self, dimensions: int) -> None:
        # TF32 keeps 10 bits after the point, and rounds all of these numbers in one direction.
        vectors = np.full((2 * _QUERIES_AT_ONCE, dimensions), 1 + 2.0**-12, dtype=np.float32)
        queries = -vectors[:_QUERIES_AT_ONCE]
        distances, _ = self._copied(vectors).search(queries, 1)
        true = 4 * np.square(vectors[0], dtype=np.float64).sum()
        error = distance_error(queries, float(np.sqrt(true) / 2))
        if not (np.abs(distances[:, 0] - true) <= error).all():
            raise SearchError("the GPU does not compute in float32 (TF32?); take faiss-flat")


def check_gpu(module: Any) -> None:
    """Raise SearchError if this FAISS (the module) finds no GPU, or has no part for GPUs."""
    if not hasattr(module, "StandardGpuResources"):
        raise SearchError(
            "the installed FAISS has no part for GPUs; install a build that has (in place of "
            "faiss-cpu), or take faiss-flat"
        )
    if module.get_num_gpus() < 1:
        raise SearchError("FAISS finds no GPU on this machine; take faiss-flat")


def _imported() -> Any:
    try:
        return faiss()
    except FaissMissing as error:
        raise SearchError(str(error)) from None
