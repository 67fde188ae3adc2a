"""Texts of made-up words, and copies of them with some words edited."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pyarrow as pa

LETTERS = {
    "Latin": "abcdefghijklmnopqrstuvwxyz",
    "Cyrillic": "абвгдежзийклмнопрстуфхцчшщ",
    "Arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهوي",
    "Devanagari": "अआइउएकखगघचछजटडतदनपबमयरलवसह",
    "Han": "".join(map(chr, range(0x4E00, 0x4E00 + 2500))),
    "Thai": "".join(map(chr, range(0x0E01, 0x0E2F))),
}
"""Letters of six scripts, of which the last two have no spaces between words."""
WITHOUT_SPACES = "Han", "Thai"


def array(texts: Sequence[str]) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


def words_in(script: str, count: int, generator: Random) -> list[str]:
    """Draw different words, which are characters in a script without spaces."""
    if script in WITHOUT_SPACES:
        return list(LETTERS[script])
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(generator.choices(LETTERS[script], k=generator.randint(2, 7)))] = None
    return list(found)


def edited(words: Sequence[str], edits: int, known: Sequence[str], generator: Random) -> list[str]:
    """Replace, insert or remove a word at random, so many times."""
    found = list(words)
    for _ in range(edits):
        place = generator.randrange(len(found))
        match generator.randrange(3):
            case 0:
                found[place] = generator.choice(known)
            case 1:
                found.insert(place, generator.choice(known))
            case 2:
                del found[place]
    return found
