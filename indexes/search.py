"""The search for a noisy query's word, and the engines that do it.

Every engine answers from the query and the public index alone. That makes it post-processing of
the noisy query, whatever it answers: if M(w), the noisy vector or code of a word, gives
Pr[M(w) in S] <= exp(epsilon d(w, w')) Pr[M(w') in S] for every set S, and f is a function of the
query and of public data, then {f(M(w)) = v} is the event that M(w) lies in the set f^-1(v), which
does not depend on w; so the same inequality holds for the word that is found. Nothing is asked of
f: not that v is nearest, nor that another engine finds it too. It would fail if f saw more of the
word than the query, such as a list or an entry point near it: then the set would depend on w. So
`Search.nearest` takes queries and nothing else, and no engine keeps anything of one query for the
next.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from quietcorpus.indexes.euclidean import EuclideanSearch
from quietcorpus.indexes.hamming import HammingSearch

if TYPE_CHECKING:
    from quietcorpus.indexes.inverted_lists import InvertedLists

DEFAULT_PROBES = 32


class Engine(StrEnum):
    """The engines. All find the same words as `exact`, save `faiss-ivf`, which is approximate."""

    EXACT = "exact"
    FAISS_FLAT = "faiss-flat"
    FAISS_GPU_FLAT = "faiss-gpu-flat"
    FAISS_IVF = "faiss-ivf"
    FAISS_BINARY_FLAT = "faiss-binary-flat"


VECTOR_ENGINES = Engine.EXACT, Engine.FAISS_FLAT, Engine.FAISS_GPU_FLAT, Engine.FAISS_IVF
CODE_ENGINES = Engine.EXACT, Engine.FAISS_BINARY_FLAT


class SearchError(ValueError):
    """A search that cannot be done here, or of these vectors; the message says why."""


class Search(Protocol):
    """A search of a vocabulary for the words of queries."""

    def nearest(self, queries: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """Find the id of each query's word, int32 (n,), from that query alone.

        Args:
            queries: float32 (n, d) for vectors, uint64 (n, words of 64 bits) for codes.

        Raises:
            ValueError: a query of floats is not finite, or longer than any noise makes one.
        """


@dataclass(frozen=True)
class Searching:
    """The choice of an engine.

    Attributes:
        engine: the engine.
        probes: for `faiss-ivf`, the number of lists that are searched; None for the others.
    """

    engine: Engine = Engine.EXACT
    probes: int | None = None

    def __str__(self) -> str:
        """Return the engine and its settings as a command line names them."""
        return self.engine.value + (f":probes={self.probes}" if self.probes else "")

    @property
    def approximate(self) -> bool:
        """Return whether a word may be found that is not the nearest one."""
        return self.engine is Engine.FAISS_IVF

    @property
    def law(self) -> dict[str, Any]:
        """Return the parameters of the law of the words that are found, besides the index.

        There are none for the engines that find the same words as `exact`: a release by one of them
        is the same release, and may be resumed or repeated by another.
        """
        return {"search": self.engine.value, "probes": self.probes} if self.approximate else {}


EXACT = Searching()


def vector_search(
    searching: Searching, vectors: npt.NDArray[np.float32], lists: InvertedLists | None = None
) -> Search:
    """Return the search of vectors by Euclidean distance.

    Args:
        searching: the engine, one of `VECTOR_ENGINES`.
        vectors: float32 (V, d); not copied, so that they may be mapped, except to a GPU.
        lists: the index's inverted lists, for `faiss-ivf` alone.

    Raises:
        SearchError: FAISS or a GPU is missing, there are no lists, or fewer than `probes`.
        ValueError: for `exact`, vectors are so long that products with them might overflow; other
            engines say so when they search.
    """
    if searching.engine is Engine.EXACT:
        return EuclideanSearch(vectors)
    from quietcorpus.indexes import faiss_flat

    match searching.engine:
        case Engine.FAISS_FLAT:
            return faiss_flat.FlatSearch(vectors)
        case Engine.FAISS_GPU_FLAT:
            return faiss_flat.GpuFlatSearch(vectors)
        case Engine.FAISS_IVF:
            if lists is None:
                raise SearchError("the index has no inverted lists; build it with --search ivf")
            from quietcorpus.indexes.faiss_ivf import ListSearch

            return ListSearch(lists, searching.probes or DEFAULT_PROBES, vectors)
    raise SearchError(f"{searching.engine.value} searches codes, and these are vectors")


def code_search(searching: Searching, codes: npt.NDArray[np.uint64]) -> Search:
    """Return the search of codes, uint64 (V, words of 64 bits), by Hamming distance.

    They are not copied, so that they may be mapped. Raises SearchError if FAISS is missing, or the
    engine is not one of `CODE_ENGINES`.
    """
    match searching.engine:
        case Engine.EXACT:
            return HammingSearch(codes)
        case Engine.FAISS_BINARY_FLAT:
            from quietcorpus.indexes.faiss_flat import BinaryFlatSearch

            return BinaryFlatSearch(codes)
    raise SearchError(f"{searching.engine.value} searches vectors, and these are codes")
