"""The normal form of letters, and the scripts without spaces between words.

A check for scripts without spaces between words, whose tokens are clauses.

`unicode-words-v1` finds no words in such text.

The normal form of `unicode-words-v2` and `icu-words-v2`: one spelling for letters of one word.

To NFKC, lower case and straight apostrophes, which are the first versions' normal form, it adds:

- soft hyphens, joiners, marks of direction, variation selectors and all other characters that
  Unicode ignores by default are left out. A zero-width space is left out, too, but not beside a
  letter of a script without spaces between words, where it ends a word;
- other apostrophes, and the letters that look like them, are straight apostrophes;
- harakat, tatweel and Hebrew points are left out, and the marks within Hebrew acronyms and
  Armenian words;
- other dots between two l are the Catalan one, U+00B7;
- a Greek sigma is final where its word ends, and only there;
- Korean letters that stand alone are those of keyboards (U+3131 to U+3163), which NFKC replaces;
- letters that Malayalam and Bengali wrote with joiners are those of later versions of Unicode.

A language of `SPELLED` adds its own letters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quietcorpus.compiled import compiled, inlined

from .arrow_arrays import as_strings
from .languages import DOTLESS, IGNORED_MARKS, joined_am, lowered_dotless
from .tokenizer import LETTER, classes, code_point, normal_form, string_buffers

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


_ZERO_WIDTH_SPACE = "\u200b"
# Default_Ignorable_Code_Point of Unicode, without the zero-width space.
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
# Harakat by themselves, which NFKC parts from their word by a space.
_LONE_HARAKAT = "\ufc5e-\ufc63\ufe70-\ufe7f"
# Acute accent, turned comma, apostrophe, quotation marks, prime, Armenian apostrophe and geresh.
_APOSTROPHES = "\u00b4\u02bb\u02bc\u2018\u201b\u2032\u055a\u05f3"
_JAMO = "\u1100-\u11ff\u3131-\u318e\uffa1-\uffdc"
_DOTS = "\u2022\u2027\u2219\u22c5"
_QUOTES = '"\u201c-\u201e\u05f4'
_ARMENIAN = "\u055b\u055c\u055e"  # signs of emphasis, exclamation and question, upon a vowel

_IGNORED = re.compile(f"[{_IGNORABLE}{_LONE_HARAKAT}]+")
_LEFT_OUT = re.compile(f"[{_IGNORABLE}{_LONE_HARAKAT}{IGNORED_MARKS}]+")
_INNER_SPACE = re.compile(f"(?<![{WITHOUT_SPACES}]){_ZERO_WIDTH_SPACE}+(?![{WITHOUT_SPACES}])")
_MARKS = re.compile(f"[{IGNORED_MARKS}]+")
_GERSHAYIM = re.compile(f"(?<=[\u05d0-\u05ea])[{_QUOTES}](?=[\u05d0-\u05ea])")
_ARMENIAN_SIGNS = re.compile(f"(?<=[\u0561-\u0587])[{_ARMENIAN}]+(?=[\u0561-\u0587])")
_DOT_OF_L = re.compile(f"(?<=l)[{_DOTS}](?=l)")
_SIGMA = re.compile("[\u03c3\u03c2]")
_LONE_JAMO = re.compile("([\u3131-\u3163\uffa1-\uffbe\uffc2-\uffdc]+)")
_CONJOINING = re.compile("[\u1100-\u11ff]")
_WITH_JOINER = {
    **{f"{old}\u0d4d\u200d": new for old, new in zip("ണനരലളക", "ൺൻർൽൾൿ", strict=True)},
    "\u09a4\u09cd\u200d": "\u09ce",
}
_WRITTEN_ALIKE = (
    *((sign, "'") for sign in _APOSTROPHES),
    ("\u0149", "'n"),
    *(("\u2033", "''"), ("\u2034", "'''"), ("\u2057", "''''")),  # which NFKC parts
    *(("\u309b", "\u3099"), ("\u309c", "\u309a")),  # which NFKC puts a space before
)

_NEVER, _AM, _FEWER, _ALWAYS, _SIGMA_HERE, _FINAL_HERE, _CAPITAL_HERE, _QUOTE_HERE = range(8)
_DOT_HERE, _VIRAMA = 8, 9
_KINDS = {
    _AM: "\u0e33\u0e4d\u0eb3\u0ecd",
    _FEWER: f"{_IGNORABLE}{IGNORED_MARKS}",
    _ALWAYS: (
        f"{_APOSTROPHES}{_ZERO_WIDTH_SPACE}{_LONE_HARAKAT}{_JAMO}{_ARMENIAN}\u0149\u03f2\u03f9\u05f4"
        # NFKC turns these into such a character, or into a sigma: forms for compatibility.
        "\u2033\u2034\u2057\u309b\u309c\u3200-\u321e\u3260-\u327e\ufb1d-\ufdff\ufe70-\ufefc"
        "\U0001d6a8-\U0001d7cb"
    ),
    _SIGMA_HERE: "\u03c3",
    _FINAL_HERE: "\u03c2",
    _CAPITAL_HERE: "\u03a3",
    _QUOTE_HERE: '"\u201c\u201d\u201e\uff02',
    _DOT_HERE: _DOTS,
    _VIRAMA: "\u0d4d\u09cd",
}
"""The characters at which the second normal form may differ from the first, by how it does."""


def normalize(texts: pa.Array, language: str | None) -> pa.Array:
    """Return the texts of which the second versions' tokens are parts, large_string; idempotent."""
    texts = texts.cast(pa.large_string())
    spelled = SPELLED.get(language or "")
    if spelled is None and language not in DOTLESS:
        other = pc.invert(pc.string_is_ascii(texts))
        if not pc.any(other).as_py():
            return pc.ascii_lower(texts)
    else:
        other = pa.array(np.ones(len(texts), np.bool_))
    normal = _normal(texts.filter(other), lowered_dotless if language in DOTLESS else normal_form)
    if spelled is not None:
        # A letter in the place of another may compose with the mark that follows it.
        normal = [unicodedata.normalize("NFC", spelled(text)) for text in normal]
    return pc.ascii_lower(pc.replace_with_mask(texts, other, as_strings(normal)))


def _normal(texts: pa.Array, lower: Callable[[str], str]) -> list[str]:
    """Return the normal forms of texts, large_string, without the letters of a language."""
    kinds = _changed(*string_buffers(texts), _beginnings(), _kinds(), classes())
    given = texts.to_pylist()
    for text in np.flatnonzero(kinds == _FEWER).tolist():
        given[text] = _LEFT_OUT.sub("", given[text])
    normal = list(map(lower, given))
    changed = np.flatnonzero(kinds)
    for text, kind in zip(changed.tolist(), kinds[changed].tolist(), strict=True):
        normal[text] = joined_am(normal[text] if kind != _ALWAYS else _folded(given[text], lower))
    return normal


def _folded(text: str, lower: Callable[[str], str]) -> str:
    """Return the normal form of any text, but for the vowel am and the letters of a language."""
    if "\u200d" in text:
        for old, new in _WITH_JOINER.items():
            text = text.replace(old, new)
    text = _IGNORED.sub("", text)
    if _ZERO_WIDTH_SPACE in text:
        text = _INNER_SPACE.sub("", text)
    for old, new in _WRITTEN_ALIKE:
        text = text.replace(old, new)
    text = _composed(text, lower)
    text, fewer = _MARKS.subn("", text)
    if fewer:  # what they were between may compose
        text = _composed(text, lower)
    text = _DOT_OF_L.sub("\u00b7", _ARMENIAN_SIGNS.sub("", _GERSHAYIM.sub("", text)))
    return _SIGMA.sub(_sigma, text) if "\u03c3" in text or "\u03c2" in text else text


def _sigma(found: re.Match[str]) -> str:
    """Return the sigma that a place in a normal form asks for."""
    text, start, end = found.string, found.start(), found.end()
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    if _is_cased(after):
        return "\u03c3"
    within = after == "'" and text[end + 1 : end + 2].isalpha()
    if within or not _is_cased(before) or unicodedata.category(after or " ")[0] == "M":
        return found[0]
    return "\u03c2"


def _is_cased(letter: str) -> bool:
    return letter.lower() != letter.upper()


def _composed(text: str, lower: Callable[[str], str]) -> str:
    """Return the first versions' normal form of a text, but for Korean letters that stand alone."""
    parts = _LONE_JAMO.split(text)
    if len(parts) > 1:
        given = enumerate(parts)
        parts = [part.translate(_narrow()) if odd % 2 else lower(part) for odd, part in given]
        text = "".join(parts)
    else:
        text = lower(text)
    return text.translate(_jamo()) if _CONJOINING.search(text) else text


@cache
def _narrow() -> dict[int, str]:
    """Return the letters of keyboards by their half-width forms."""
    points = [*range(0xFFA1, 0xFFBF), *range(0xFFC2, 0xFFDD)]
    found = {point: unicodedata.decomposition(chr(point)).split() for point in points}
    return {point: chr(int(parts[1], 16)) for point, parts in found.items() if parts}


@cache
def _jamo() -> dict[int, str]:
    """Return the letters of keyboards by the conjoining ones, which are left alone by NFKC."""
    found = {}
    for point in (*range(0x1100, 0x1113), *range(0x1161, 0x1176), *range(0x11A8, 0x11C3)):
        letter = unicodedata.name(chr(point)).split(" ", 2)[2]
        found[point] = unicodedata.lookup(f"HANGUL LETTER {letter}")
    return found


@cache
def _kinds() -> npt.NDArray[np.uint8]:
    """Return the kind of each code point."""
    found = np.zeros(0x110000, np.uint8)
    for kind, characters in _KINDS.items():
        for first, last in re.findall("(.)(?:-(.))?", characters, re.S):
            found[ord(first) : ord(last or first) + 1] = kind
    return found


@cache
def _beginnings() -> npt.NDArray[np.bool_]:
    """Return of each pair of bytes whether a character that has a kind begins so; (256, 256)."""
    found = np.zeros((256, 256), np.bool_)
    for point in np.flatnonzero(_kinds()).tolist():
        spelled = list(chr(point).encode())
        found[spelled[0], spelled[1] if len(spelled) > 1 else slice(None)] = True
    return found


@compiled
def _changed(data, offsets, begins, kinds, classes):  # type: ignore[no-untyped-def]
    """Return how each text, of UTF-8 with n + 1 offsets, may differ from its first normal form.

    It is `_NEVER`, `_AM` for the vowel, `_FEWER` where characters are left out, or `_ALWAYS`.
    """
    found = np.full(len(offsets) - 1, _NEVER, np.uint8)
    for text in range(len(found)):
        position, stop = offsets[text], offsets[text + 1]
        most = _NEVER
        while position < stop - 1 and most != _ALWAYS:
            if not begins[data[position], data[position + 1]]:
                position += 1
                continue
            point, width = code_point(data, position)
            position += width
            kind = kinds[point]
            if kind > _ALWAYS:
                following = np.int64(0)
                if position < stop:
                    following, width = code_point(data, position)
                unknown = kinds[following] == _FEWER  # what is beyond it, once it is left out
                if unknown or _changes(kind, following, classes[following] == LETTER):
                    most = _ALWAYS
            elif kind > most:
                most = kind
        found[text] = most
    return found


@inlined
def _changes(kind, following, is_letter):  # type: ignore[no-untyped-def]
    """Return whether a character of a kind may change before another one."""
    greek = is_letter and (0x370 <= following <= 0x3FF or 0x1F00 <= following <= 0x1FFF)
    greek &= following != 0x37A  # NFKC makes a space and a mark of it
    if kind == _SIGMA_HERE:
        return not greek
    if kind == _CAPITAL_HERE:
        # Python looks for a cased letter beyond these: ' . : ^ and a grave accent.
        beyond = following in (39, 46, 58, 94, 96)
        return not greek and (following >= 0x80 or is_letter or beyond)
    if kind == _FINAL_HERE:
        # All that may become a letter: not ASCII but for letters, not common punctuation.
        plain = following in (0xAB, 0xBB) or 0x2010 <= following <= 0x2027
        return is_letter or (following >= 0x80 and not plain)
    if kind == _QUOTE_HERE:
        return 0x5D0 <= following <= 0x5EA
    if kind == _DOT_HERE:
        return following in (76, 108)  # L and l
    return following == 0x200D


def _replacing(
    *pairs: tuple[str, str], then: Callable[[str], str] | None = None
) -> Callable[[str], str]:
    """Return a function that replaces the first letter of each pair by the second."""

    def replaced(text: str) -> str:
        for old, new in pairs:
            if old in text:
                text = text.replace(old, new)
        return then(text) if then else text

    return replaced


_TONES = "\u0300\u0301\u0309\u0303\u0323"
_OLD_TONES = {
    unicodedata.normalize("NFC", f"{a}{tone}{b}"): unicodedata.normalize("NFC", f"{a}{b}{tone}")
    for a, b in ("oa", "oe", "uy")
    for tone in _TONES
}
_OLD_STYLE = re.compile("(?:[òóỏõọ][ae]|[ùúủũụ]y)(?!\\w)")
_LETTER_OF_UZBEK = re.compile("(?<=[og])['`]")
_INNER_YEH = re.compile("\u06cc(?=\\w)")


def _vietnamese(text: str) -> str:
    """Put the tone of an open syllable on its main vowel, as schools do: hoà, thuý."""
    return _OLD_STYLE.sub(lambda found: _OLD_TONES[found[0]], text)


def _uzbek(text: str) -> str:
    """Write the letters o and g with a turned comma, U+02BB."""
    return _LETTER_OF_UZBEK.sub("\u02bb", text).replace("`", "'")


def _arabic(text: str) -> str:
    """Write the Persian yeh, which has no dots where it ends a word, as Arabic does."""
    return _INNER_YEH.sub("\u064a", text).replace("\u06cc", "\u0649") if "\u06cc" in text else text


_CROATIAN = _replacing(("ð", "đ"))
_CEDILLAS = _replacing(("ș", "ş"), ("ț", "ţ"))

SPELLED: Mapping[str, Callable[[str], str]] = {
    "ar": _replacing(
        ("\u06a9", "\u0643"),
        ("\u06c1", "\u0647"),
        ("\u06be", "\u0647"),
        ("\u06d5", "\u0647"),
        then=_arabic,
    ),
    "az": _CEDILLAS,
    # The hamza upon a final heh is often left out.
    "fa": _replacing(
        ("\u0643", "\u06a9"),
        ("\u064a", "\u06cc"),
        ("\u0649", "\u06cc"),
        ("\u06c0", "\u0647"),
        then=lambda text: text.replace("\u0647\u0654", "\u0647"),
    ),
    "hr": _CROATIAN,
    "ps": _replacing(("\u0643", "\u06a9")),
    "ro": _replacing(("ş", "ș"), ("ţ", "ț")),
    "sr": _CROATIAN,
    "tr": _CEDILLAS,
    "ur": _replacing(
        ("\u0643", "\u06a9"),
        ("\u064a", "\u06cc"),
        ("\u0649", "\u06cc"),
        ("\u0647", "\u06c1"),
        ("\u06c0", "\u06c2"),
        ("\u0629", "\u06c3"),
    ),
    "uz": _uzbek,
    "vi": _replacing(("ð", "đ"), then=_vietnamese),
}
"""The languages with special letters, which writers replace by others: the change to a text."""
