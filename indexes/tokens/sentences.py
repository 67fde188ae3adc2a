"""The sentences of documents, found by sentencex, which knows abbreviations of many languages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

NAME = "sentencex-1"
"""The name of the rule below, in cards and candidates."""
LANGUAGES = (
    *("am", "ar", "bg", "bn", "ca", "da", "de", "el", "en", "es", "fa", "fi", "fr", "gu", "he"),
    *("hi", "hy", "it", "ja", "kk", "kn", "ko", "ml", "mr", "my", "nl", "pa", "pl", "pt", "ru"),
    *("sk", "ta", "te", "uk", "ur", "zh"),
)
"""The languages whose sentences are found: those that sentencex has rules for, and Persian, Hebrew,
Korean, Urdu and Chinese, which need none but the signs that end a sentence.

It would take every other language for English or for a neighbour. Thai, Lao and Khmer are not among
them: where nothing ends a sentence, a document would be one."""


# sentencex fails next to some of these, and its message quotes the text, which may be private.
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
    """Return the first `most` sentences of every document, without the space around them.

    Spaces of every kind except tabs and line ends become plain ones.

    A sentence of nothing but space is left out. The choice of sentences depends on their places
    alone, so that replacing a sentence by another replaces one of the result, or none.
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
