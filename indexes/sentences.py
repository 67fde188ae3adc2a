"""The sentences of documents, found by sentencex, which knows abbreviations of many languages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

NAME = "sentencex-1"
"""The rule below, as cards and candidates name it."""


# Next to some of these sentencex fails, with a message that quotes the text.
_SPACES = dict.fromkeys(
    map(
        ord,
        "\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B))),
    ),
    " ",
)


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

    Spaces of every kind but tabs and line ends become plain ones.

    What is nothing but space is no sentence. Which ones count depends on their places alone, so
    that replacing a sentence by another replaces one of the result, or none.
    """
    import sentencex  # of the extra [sentences]

    texts: list[str] = []
    offsets = [0]
    for document in documents:
        plain = document.translate(_SPACES)
        stripped = (part.strip() for part in sentencex.segment(language, plain))
        texts += [part for part in stripped if part][:most]
        offsets.append(len(texts))
    return Sentences(texts, np.array(offsets, dtype=np.int64))
