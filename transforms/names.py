"""Names of columns, groups and files: which are shown as they are, and which look alike."""

from __future__ import annotations

import re
from collections.abc import Iterable
from unicodedata import category, normalize

_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
"""Control characters, formats that turn a text's direction round or are not seen, characters that
Unicode has not assigned, for private use or halves of others, ends of lines and paragraphs."""
# Unicode's default-ignorable characters of other classes, and the braille pattern without dots
_BLANK = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    r"\U000e0100-\U000e01ef]"
)
# Persian and the scripts of India spell words with these, between letters.
_JOINED = re.compile(r"(?<=[^\W\d_])[\u200c\u200d](?=[^\W\d_])")


def is_plain(text: str) -> bool:
    """Return whether a text is one line, of characters that are shown in the order they have."""
    if text.isascii():
        return text.isprintable()
    rest = _JOINED.sub("", text)
    return _BLANK.search(rest) is None and _HIDDEN.isdisjoint(map(category, rest))


def look_alike(names: Iterable[str]) -> bool:
    """Return whether two names are the same to a reader, or one of them is blank."""
    shown = [folded(name, case=False) for name in names]
    return not all(shown) or len(set(shown)) < len(shown)


def folded(name: str, *, case: bool = True) -> str:
    """Return what is alike of all names that a reader takes for one.

    Compatibility forms (NFKC), spaces and characters that are not shown make no difference. With
    `case`, whatever their case: of the columns `Text` and `text`, DuckDB and Spark may give
    either.
    """
    found = normalize("NFKC", name)
    found = _BLANK.sub("", normalize("NFKC", found.casefold()) if case else found)
    return " ".join("".join(one for one in found if category(one) not in _HIDDEN).split())
