"""The engines of search, opened on an index's vectors or codes; those that need FAISS import it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..search.euclidean import EuclideanSearch
from ..search.euclidean_integers import IntegerSearch, is_installed
from ..search.faiss_search import BinaryFlatSearch, FlatSearch, GpuFlatSearch, ListSearch
from ..search.hamming import HammingSearch
from ..search.inverted_lists import InvertedLists
from ..search.protocol import (
    DEFAULT_PROBES,
    Search,
    SearchEngine,
    SearchError,
    Searching,
    VectorSearch,
)

if TYPE_CHECKING:
    from .word_index import WordIndex


def part_search(searching: Searching, index: WordIndex, part: str) -> Search:
    """Return the search of an index's vectors or codes; raises SearchError as the two below do."""
    if part == "codes":
        return code_search(searching, index.codes)
    lists = index.lists if searching.approximate else None
    return vector_search(searching, index.vectors, lists)


def vector_search(
    searching: Searching, vectors: npt.NDArray[np.float32], lists: InvertedLists | None = None
) -> VectorSearch:
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
    match searching.engine:
        case SearchEngine.EXACT:
            # The same words, sooner.
            return IntegerSearch(vectors) if is_installed() else EuclideanSearch(vectors)
        case SearchEngine.FAISS_FLAT:
            return FlatSearch(vectors)
        case SearchEngine.FAISS_GPU_FLAT:
            return GpuFlatSearch(vectors)
        case SearchEngine.FAISS_IVF:
            if lists is None:
                raise SearchError("the index has no inverted lists; build it with --search ivf")
            return ListSearch(lists, searching.probes or DEFAULT_PROBES, vectors)
    raise SearchError(f"{searching.engine.value} searches codes, and these are vectors")


def code_search(searching: Searching, codes: npt.NDArray[np.uint64]) -> Search:
    """Return the search of codes, uint64 (V, words of 64 bits), by Hamming distance.

    They are not copied, so that they may be mapped. Raises SearchError if FAISS is missing, or the
    engine is not one of `CODE_ENGINES`.
    """
    match searching.engine:
        case SearchEngine.EXACT:
            return HammingSearch(codes)
        case SearchEngine.FAISS_BINARY_FLAT:
            return BinaryFlatSearch(codes)
    raise SearchError(f"{searching.engine.value} searches vectors, and these are codes")
