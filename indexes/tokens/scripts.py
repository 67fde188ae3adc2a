"""A check for scripts without spaces between words, whose tokens are clauses.

`unicode-words-v1` finds no words in such text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_KATAKANA = "\u30a0-\u30ff\u31f0-\u31ff"
# Han characters, hiragana, and (as UAX #14 has it) Yi, Tangut, Nushu, Khitan and old kana.
_IDEOGRAPHS = (
    "\u3005\u3007\u3040-\u309f\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uf900-\ufaff"
    "\U00016fe0-\U00018dff\U0001aff0-\U0001b2ff\U00020000-\U0003ffff"
)
# Thai, Lao, Myanmar, Khmer, Tai Le, New Tai Lue, Tai Tham, Balinese, Javanese, Tai Viet and Ahom:
# the class SA of Unicode's line breaking (UAX #14), and scripts like them (Bopomofo, Vai,
# Buginese, Batak, Makasar and Kawi). Tibetan and Ethiopic have marks between syllables or words,
# at which tokens end.
_SYLLABLES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u1aaf\u1b00-\u1b7f\u1bc0-\u1bff"
    "\u3100-\u312f\u31a0-\u31bf\ua500-\ua63f\ua980-\ua9ff\uaa60-\uaadf"
    "\U000116d0-\U000116ff\U00011700-\U0001174f\U00011ee0-\U00011eff\U00011f00-\U00011f5f"
)
WITHOUT_SPACES = f"{_IDEOGRAPHS}{_KATAKANA}{_SYLLABLES}"
"""The characters of all scripts without spaces between words, for a set of a regular expression."""

_RUNS = re.compile(f"[{_IDEOGRAPHS}{_KATAKANA}]+|[{_SYLLABLES}]+")
_SIGNS = re.compile(f"[^\\w{_SYLLABLES}]")  # marks of other scripts and apostrophes, among others


def _run(characters: str, least: int) -> str:
    """Return the pattern of a run that begins and ends with one of the characters.

    A run of other letters and digits within it counts as one character.
    """
    others = f"[^\\W{characters}]++"
    return f"[{characters}](?:[{characters}]|{others}){{{least - 2}}}(?:{others})?[{characters}]"


_LONG = re.compile(
    f"(?=[{_KATAKANA}]|[{_IDEOGRAPHS}])(?=[^\\W{_IDEOGRAPHS}]*[{_IDEOGRAPHS}])"
    f"{_run(_IDEOGRAPHS + _KATAKANA, 5)}|{_run(_KATAKANA, 13)}|{_run(_SYLLABLES, 11)}"
)
_TOLERATED = 20


def are_clauses(terms: Sequence[str]) -> bool:
    """Return whether too many terms are clauses: more than one in twenty of those without spaces.

    Only terms with a letter of a script that is written without spaces between words count. A term
    is a clause if it holds a run of more than 4 Han characters and kana, or of more than 12
    Katakana alone, or of more than 10 characters of Thai, Lao, Khmer, Myanmar or a similar script.
    Letters and digits of other scripts within a run count together as one of its characters; marks
    of other scripts and apostrophes do not count.

    The rule is fixed, and a function of the terms alone: applied to terms that a private mechanism
    has selected, it is post-processing. The lengths are ours. In 20,000 Thai and 10,000 Chinese and
    Japanese texts, 14, 13 and 18 in a hundred of the terms that 10 texts share are clauses. Where
    words were first separated by spaces (PyThaiNLP, jieba, Janome), fewer than 4 in a hundred of
    the terms that 2 texts share are.
    """
    found = [term for term in terms if _RUNS.search(term)]
    clauses = sum(_LONG.search(_SIGNS.sub(_unless_within, term)) is not None for term in found)
    return _TOLERATED * clauses > len(found)


def _unless_within(sign: re.Match[str]) -> str:
    """Return a sign at which a token ends, and nothing for one that may be within a token."""
    within = sign[0] in "'\u2019" or unicodedata.category(sign[0]).startswith("M")
    return "" if within else sign[0]
