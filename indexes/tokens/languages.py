"""The languages that artefacts and tokenisers are of, and how each one's words are spelled.

All spellings here are of normal forms: NFKC, lower case, straight apostrophes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Set

from .tokenizer import normal_form

LANGUAGES: Mapping[str, str] = {
    **{"af": "Afrikaans", "am": "Amharic", "ar": "Arabic", "az": "Azerbaijani", "be": "Belarusian"},
    **{"bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech", "cy": "Welsh"},
    **{"da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish"},
    **{"et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish", "fr": "French"},
    **{"ga": "Irish", "gl": "Galician", "gu": "Gujarati", "he": "Hebrew", "hi": "Hindi"},
    **{"hr": "Croatian", "hu": "Hungarian", "hy": "Armenian", "id": "Indonesian"},
    **{"is": "Icelandic", "it": "Italian", "ja": "Japanese", "ka": "Georgian", "kk": "Kazakh"},
    **{"km": "Khmer", "kn": "Kannada", "ko": "Korean", "ky": "Kyrgyz", "lo": "Lao"},
    **{"lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian", "ml": "Malayalam"},
    **{"mn": "Mongolian", "mr": "Marathi", "ms": "Malay", "mt": "Maltese", "my": "Burmese"},
    **{"nb": "Norwegian Bokmål", "ne": "Nepali", "nl": "Dutch", "nn": "Norwegian Nynorsk"},
    **{"no": "Norwegian", "pa": "Punjabi", "pl": "Polish", "ps": "Pashto", "pt": "Portuguese"},
    **{"ro": "Romanian", "ru": "Russian", "si": "Sinhala", "sk": "Slovak", "sl": "Slovenian"},
    **{"sq": "Albanian", "sr": "Serbian", "sv": "Swedish", "sw": "Swahili", "ta": "Tamil"},
    **{"te": "Telugu", "th": "Thai", "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian"},
    **{"ur": "Urdu", "uz": "Uzbek", "vi": "Vietnamese", "zh": "Chinese", "zu": "Zulu"},
}
"""By their primary subtags in BCP 47."""

_STANDARDS = frozenset({"hr", "sr"}), frozenset({"nb", "no"}), frozenset({"nn", "no"})
"""Codes of one language: two of its standards, or a standard and the whole."""

DOTLESS = frozenset({"az", "tr"})
"""The languages whose capital I is that of the dotless letter."""

ELIDED: Mapping[str, tuple[str, ...]] = {
    "ca": ("d", "l", "m", "n", "s", "t"),
    "fr": (*("c", "d", "j", "jusqu", "l", "lorsqu", "m", "n", "puisqu", "qu", "quoiqu", "s", "t"),),
    "it": (
        *("agl", "all", "c", "coll", "d", "dagl", "dall", "degl", "dell", "gl", "l", "m", "negl"),
        *("nell", "pell", "s", "sugl", "sull", "t", "un", "v"),
    ),
}
"""The words that end in an apostrophe before the next word: those of Lucene's filters."""

_ELISIONS = {
    language: re.compile(rf"(?<!\w)(?:(?:{'|'.join(words)})')+(?=\w)")
    for language, words in ELIDED.items()
}

# Harakat and Koranic signs; but not madda and hamza, which with a letter are another one.
_HARAKAT = (
    "\u0610-\u061a\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8"
    "\u06ea-\u06ed\u0898-\u089f\u08ca-\u08e1\u08e3-\u08ff"
)
_POINTS = "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
_TATWEEL = "\u0640"
# Soft hyphen, grapheme joiner, joiners and non-joiner, marks of direction, word joiner; variation
# selectors.
_INVISIBLE = (
    "\u00ad\u034f\u061c\u180e\u200c-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
    "\ufe00-\ufe0f\U000e0100-\U000e01ef"
)
IGNORED_MARKS = f"{_HARAKAT}{_POINTS}{_TATWEEL}"
"""Marks that make no difference between words, for a set of a regular expression."""
_IGNORED = re.compile(f"[{IGNORED_MARKS}{_INVISIBLE}]+")
CHANGED = f"[{_INVISIBLE}\u0590-\u08ff\u0e00-\u0eff]"
"""A pattern, for Arrow too, of a character in every text that `plain` changes."""

_GERESH = str.maketrans({"\u05f3": "'"})
_GERSHAYIM = re.compile('(?<=[\u05d0-\u05ea])["\u05f4](?=[\u05d0-\u05ea])')


def is_one_of(language: str, others: Set[str]) -> bool:
    """Return whether a language is one of these, or is written to a standard of one."""
    return language in others or any(language in one and one & others for one in _STANDARDS)


def dotless(text: str) -> str:
    """Lower the letter I as Turkish and Azerbaijani do, and return the form NFKC."""
    normal = unicodedata.normalize("NFKC", text)
    return normal.replace("\u0130", "i").replace("I", "\u0131")


def lowered_dotless(text: str) -> str:
    """Return the normal form of a text of a language in `DOTLESS`."""
    return normal_form(dotless(text))


def joined_am(text: str) -> str:
    """Join the vowel am of Thai and Lao, which NFKC parts."""
    return text.replace("\u0e4d\u0e32", "\u0e33").replace("\u0ecd\u0eb2", "\u0eb3")


def plain(text: str) -> str:
    """Leave out of a normal form what makes no difference between words.

    The marks within Hebrew acronyms go too. Letters that the form NFKC parts, and their language
    has in one, are joined.
    """
    kept = _GERSHAYIM.sub("", _IGNORED.sub("", text).translate(_GERESH))
    return joined_am(unicodedata.normalize("NFKC", kept))


def elided(text: str, language: str, separator: str) -> str:
    """Put a separator behind the apostrophe of each elided word before another one."""

    def parted(found: re.Match[str]) -> str:
        if _is_inside(text, found.start()):
            return found[0]
        return found[0].replace("'", f"'{separator}")

    return _ELISIONS[language].sub(parted, text)


def _is_inside(text: str, place: int) -> bool:
    """Return whether the letter at a place goes on a run that has begun before it."""
    before = place - 1
    if before > 0 and text[before] == "'":
        before -= 1
    while before >= 0 and unicodedata.category(text[before])[0] == "M":
        before -= 1
    return before >= 0 and (text[before].isalnum() or text[before] == "_")
