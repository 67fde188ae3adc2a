"""Segmentation of texts: sentences, and words in scripts without spaces.

Words in scripts that are written without spaces between words, by the dictionaries of ICU.

Every run of letters and marks of such a script is divided alone, so that its words do not depend
on the text around it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .tokenizer import LETTER, MARK, classes

SEPARATOR = "\u200b"
"""A character that ends a token, but is not white space, so that a chunk goes on."""

# Han characters with the marks that repeat them, and kana.
_HAN = ("\u3005", "\u3005"), ("\u303b", "\u303b"), ("\u3400", "\u4dbf"), ("\u4e00", "\u9fff")
_HAN_BEYOND = ("\uf900", "\ufaff"), ("\U00020000", "\U0003ffff")
_KANA = (
    *(("\u3031", "\u3035"), ("\u3041", "\u30ff"), ("\u31f0", "\u31ff")),
    *(("\U0001aff0", "\U0001b16f"),),
)
_SCRIPTS = {
    "Han and kana": (*_HAN, *_HAN_BEYOND, *_KANA),
    "Khmer": (("\u1780", "\u17ff"),),
    "Lao": (("\u0e80", "\u0eff"),),
    "Myanmar": (("\u1000", "\u109f"), ("\ua9e0", "\ua9ff"), ("\uaa60", "\uaa7f")),
    "Thai": (("\u0e00", "\u0e7f"),),
}
"""The scripts that ICU has a dictionary for: the first and the last character of each range."""

WITHOUT_SPACES = f"[{''.join(f'{a}-{b}' for own in _SCRIPTS.values() for a, b in own)}]"
"""A pattern, for Arrow too, of a character in every text that `separated` changes."""

_ENDS = frozenset(",;!()[]\"'\u201c\u201d\u2018\u2026\u2014\u30fb") | frozenset(
    map(chr, [*range(0x3001, 0x3004), *range(0x3008, 0x3012), *range(0x3014, 0x3020)])
)
"""Punctuation at which an address ends if it is next to a script without spaces."""


_CHARACTERS = {
    name: re.compile(f"[{''.join(f'{a}-{b}' for a, b in own)}]")
    for name, own in {**_SCRIPTS, "kana": _KANA}.items()
}
_KANA_AMONG_HAN = 0.05  # Chinese has next to none
_LANGUAGE_OF = {"Khmer": "km", "Lao": "lo", "Myanmar": "my", "Thai": "th"}
DIVIDED = ("ja", "zh", *_LANGUAGE_OF.values())
"""The languages of these scripts."""


def letters_by_script(text: str) -> Counter[str]:
    """Count the characters of each script that is written without spaces, kana also by itself."""
    return Counter({name: len(own.findall(text)) for name, own in _CHARACTERS.items()})


def language_of(counts: Mapping[str, int], letters: int) -> str | None:
    """Return the language that a third of some letters are of, by their script; None if none is."""
    script = max(_SCRIPTS, key=lambda name: counts.get(name, 0))
    if 3 * counts.get(script, 0) < max(1, letters):
        return None
    if script in _LANGUAGE_OF:
        return _LANGUAGE_OF[script]
    return "ja" if counts.get("kana", 0) > _KANA_AMONG_HAN * counts[script] else "zh"


def icu_version() -> str | None:
    """Return the version of the ICU that is installed here, or None."""
    try:
        import icu4py
    except ImportError:
        return None
    version: str = icu4py.icu_version
    return version


def _ranges(points: np.ndarray) -> str:
    """Return code points in rising order as ranges in a set of a regular expression."""
    if not len(points):
        return ""
    breaks = np.flatnonzero(np.diff(points) != 1)
    firsts, lasts = points[np.r_[0, breaks + 1]], points[np.r_[breaks, len(points) - 1]]
    return "".join(
        f"\\U{first:08x}-\\U{last:08x}" for first, last in zip(firsts, lasts, strict=True)
    )


@cache
def _marks() -> str:
    """Return all combining marks, as ranges in a set of a regular expression."""
    return _ranges(np.flatnonzero(classes() == MARK))


@cache
def _runs() -> re.Pattern[str]:
    """Return the pattern of a run of a script that is written without spaces between words."""
    kinds = classes()
    runs = []
    for ranges in _SCRIPTS.values():
        points = np.concatenate([np.arange(ord(a), ord(b) + 1) for a, b in ranges])
        letters = _ranges(np.sort(points[kinds[points] == LETTER]))
        runs.append(f"[{letters}][{letters}{_marks()}]*")
    return re.compile("|".join(runs))


def separated(text: str, *, divided: bool) -> str:
    """Part the runs of scripts without spaces from other text, and if asked divide them into words.

    White space goes between such a run and a letter, a digit or the punctuation of sentences, so
    that an address ends there; elsewhere, a mere separator.
    """
    found = list(_runs().finditer(text))
    if not found:
        return text
    runs = [run[0] for run in found]
    words = _divided(runs) if divided else runs
    parts, last = [], 0
    for run, own in zip(found, words, strict=True):
        start, end = run.span()
        parts += [text[last:start], _edge(text[start - 1 : start]), own, _edge(text[end : end + 1])]
        last = end
    return "".join([*parts, text[last:]])


def _edge(beside: str) -> str:
    """Return what goes between a run and the character beside it, if there is one."""
    return " " if beside.isalnum() or beside in _ENDS else SEPARATOR


def _divided(runs: list[str]) -> list[str]:
    """Put separators between the words of each run."""
    from icu4py.breakers import WordBreaker  # of the extra [languages]

    # A line's end ends a word for ICU, and no run holds one.
    whole = SEPARATOR.join(WordBreaker("\n".join(runs), "root"))
    return [run.strip(SEPARATOR) for run in whole.split("\n")]


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
