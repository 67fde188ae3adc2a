"""The sentences of documents, found by sentencex, which knows abbreviations of many languages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

NAME = "sentencex-1"
"""The rule below, as cards and candidates name it."""


class Sentences(NamedTuple):
    """The sentences of n documents.

    Attributes:
        texts: all of them, in order.
        offsets: int64 (n + 1,); document i has texts[offsets[i]:offsets[i + 1]].
    """

    texts: list[str]
    offsets: npt.NDArray[np.int64]


def split(documents: Iterable[str], most: int, language: str) -> Sentences:
    """The first `most` sentences of every document, without the space around them.

    What is nothing but space is no sentence. Which ones count depends on their places alone, so
    that replacing a sentence by another replaces one of the result, or none.
    """
    import sentencex  # of the extra [sentences]

    texts: list[str] = []
    offsets = [0]
    for document in documents:
        stripped = (part.strip() for part in sentencex.segment(language, document))
        texts += [part for part in stripped if part][:most]
        offsets.append(len(texts))
    return Sentences(texts, np.array(offsets, dtype=np.int64))
