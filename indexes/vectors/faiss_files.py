"""Word vectors from FAISS's indexes: plain vectors (Flat), or inverted lists of them (IVF,Flat)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, TYPE_CHECKING

import numpy as np

from ..search.protocol import SearchError
from .rows import Rows, VectorsError, words_in

if TYPE_CHECKING:
    from ..search.inverted_lists import InvertedLists


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
