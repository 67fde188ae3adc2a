"""The rule by which every tokeniser finds words: lower-case words of letters, and nothing else.

`tokens/tokenizers.py` has all tokenisers, which read texts by this rule. `unicode-words-v1` is the
rule alone; its text is normalised (NFKC) and lower-cased. `tokens/letters.py` has the normal form
of the second versions.

A chunk (a maximal run without white space) that holds `@` or `://`, or begins with `www.`, yields
no token. In the other chunks a token is a maximal run of letters and marks that begins with a
letter, with single apostrophes inside it; a run that also holds digits or underscores (`mp3`,
`user_17`) yields none. Numbers, e-mail addresses, URLs, punctuation and emoji (variation selectors
and all) are thus never tokens. For the second versions, U+00B7 between two l is a letter.
"""

from __future__ import annotations

import functools
import sys
import unicodedata
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quietcorpus.compiled import compiled, inlined, lowest

from .arrow_arrays import as_strings
from .byte_masks import BLOCK, bytes_within, padded

FIRST_NAME = "unicode-words-v1"
NAME = "unicode-words-v2"
"""The default."""

_HASH_SEED, _HASH_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_ONE, _ALL = np.uint64(1), np.uint64(2**64 - 1)
_OTHER, LETTER, _BARRED, _SPACE, _APOSTROPHE, MARK, _SPECIAL, _DOT_OF_L = range(8)
_ASSIGNED_PLANES = (0, 1, 2, 3, 14)  # of Unicode: no letter, digit or space lies elsewhere
_CLASS_OF_CATEGORY = {
    **dict.fromkeys(("Lu", "Ll", "Lt", "Lm", "Lo"), LETTER),
    **dict.fromkeys(("Mn", "Mc", "Me"), MARK),
    **dict.fromkeys(("Nd", "Nl", "No"), _BARRED),
    **dict.fromkeys(("Zs", "Zl", "Zp"), _SPACE),
    **dict.fromkeys(("Cc", "Cf", "Cs", "Co", "Cn"), _OTHER),
    **dict.fromkeys(("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So"), _OTHER),
}


class Tokens(NamedTuple):
    """The tokens of a batch of texts, as spans of one byte buffer.

    Attributes:
        data: uint8; the normalised texts' UTF-8 bytes.
        offsets: int64 (n + 1,); text i has the tokens offsets[i] .. offsets[i + 1].
        starts, ends: int64; where in `data` each token lies.
    """

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]

    @property
    def hashes(self) -> npt.NDArray[np.uint64]:
        """Compute FNV-1a of each token, folded so that the low bits depend on all bits; uint64."""
        found: npt.NDArray[np.uint64] = _hashes(self.data, self.starts, self.ends)
        return found


def tokenize(texts: pa.Array) -> Tokens:
    """Tokenise a string or large_string array by `unicode-words-v1`, without nulls, of valid UTF-8.

    In ASCII, the second version finds the same words.
    """
    return tokens_in(normalize(texts))


def tokens_in(texts: pa.Array, *, dotted: bool = False) -> Tokens:
    """Find the words of normalised texts, large_string; if `dotted`, of which l·l is a part."""
    data, offsets = padded_buffers(texts)
    return Tokens(data, *_spans(data, offsets, *tables(dotted)))


def normalize(texts: pa.Array) -> pa.Array:
    """Return the normal form of the first versions, as large_string; idempotent.

    It is NFKC, in lower case, with straight apostrophes.
    """
    texts = texts.cast(pa.large_string())
    other = pc.invert(pc.string_is_ascii(texts))
    if not pc.any(other).as_py():
        return pc.ascii_lower(texts)
    normal = [normal_form(text) for text in texts.filter(other).to_pylist()]
    texts = pc.replace_with_mask(texts, other, as_strings(normal))
    return pc.ascii_lower(texts)


def normal_form(text: str) -> str:
    """Return the normal form of one text.

    Arrow's `utf8_normalize` does not compose (apache/arrow#51225), and lower-casing can leave a
    letter and a mark that compose, so NFKC comes before it and after it.
    """
    lowered = unicodedata.normalize("NFKC", text).lower()
    return unicodedata.normalize("NFKC", lowered).replace("\u2019", "'")


def string_buffers(texts: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the bytes of a large_string or large_binary array, and its (n + 1) offsets."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    raw = np.frombuffer(data, dtype=np.uint8) if data else np.empty(0, dtype=np.uint8)
    return raw, bounds


def padded_buffers(texts: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return what `string_buffers` does, with 64 bytes behind the last text."""
    data, offsets = string_buffers(texts)
    return padded(data, int(offsets[-1])), offsets


def tables(dotted: bool) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Return the classes of bytes and those of code points, as `find_words` takes them."""
    return _byte_classes(), _dotted() if dotted else classes()


@functools.cache
def classes() -> npt.NDArray[np.uint8]:
    """Return the class of each code point in the token rule."""
    found = np.full(sys.maxunicode + 1, _OTHER, dtype=np.uint8)
    for plane in _ASSIGNED_PLANES:
        points = range(plane << 16, (plane + 1) << 16)
        # A loop of Python's own would take three times as long, in every process that starts.
        categories = map(unicodedata.category, map(chr, points))
        found[points.start : points.stop] = np.fromiter(
            map(_CLASS_OF_CATEGORY.__getitem__, categories), np.uint8, len(points)
        )
    for character in "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85":
        found[ord(character)] = _SPACE
    found[ord("_")] = _BARRED
    found[ord("'")] = _APOSTROPHE
    return found


@functools.cache
def _dotted() -> npt.NDArray[np.uint8]:
    """Return the classes of the second versions."""
    found = classes().copy()
    found[0xB7] = _DOT_OF_L
    return found


@functools.cache
def _byte_classes() -> npt.NDArray[np.uint8]:
    """Return the class of each byte; `_SPECIAL` for those that need a second look."""
    found = classes()[:256].copy()
    found[128:] = _SPECIAL
    found[[ord("@"), ord(":")]] = _SPECIAL
    return found


@compiled
def _spans(data, offsets, byte_classes, classes):  # type: ignore[no-untyped-def]
    """Find the tokens of all texts; 64 bytes lie behind the last one."""
    texts = len(offsets) - 1
    # Between two tokens of a text there is at least one other byte.
    capacity = (offsets[texts] - offsets[0]) // 2 + texts
    token_offsets = np.zeros(texts + 1, dtype=np.int64)
    starts = np.empty(capacity, dtype=np.int64)
    ends = np.empty(capacity, dtype=np.int64)
    found = 0
    for text in range(texts):
        first, last = offsets[text], offsets[text + 1]
        found += find_words(data, first, last, byte_classes, classes, starts[found:], ends[found:])
        token_offsets[text + 1] = found
    return token_offsets, starts[:found], ends[:found]


@compiled
def find_words(  # type: ignore[no-untyped-def]
    data, begin, stop, byte_classes, classes, starts, ends
):
    """Write where the tokens of one text lie; return their number. 64 bytes lie behind the text.

    Blocks of 64 bytes are looked at as masks, of which bit i is byte i. In a block, the runs of
    ASCII letters and digits that end before the first `odd` byte are taken as they are. The byte
    itself and a run beside it are read one byte after the other.
    """
    found = np.uint64(0)
    position = begin
    while position < stop:
        inside = _ALL
        if stop - position < BLOCK:
            inside = (_ONE << np.uint64(stop - position)) - _ONE
        letters = bytes_within(data, position, 0x20, 97, 26)
        barred = bytes_within(data, position, 0, 48, 10) | bytes_within(data, position, 0, 95, 1)
        runs = (letters | barred) & inside
        firsts = runs & ~(runs << _ONE)
        odd = (
            bytes_within(data, position, 0, 39, 1)  # an apostrophe
            | bytes_within(data, position, 0, 64, 1)  # @
            | bytes_within(data, position, 0, 58, 1)  # :
            | bytes_within(data, position, 0, 128, 128)
            | firsts & _www(data, position)
        ) & inside
        before = (odd - _ONE) & ~odd  # all bits if none is odd
        lasts = ~runs & (runs << _ONE) & before  # each is the byte behind a run
        while lasts:
            first, last = lowest(firsts), lowest(lasts)
            starts[found] = position + first
            ends[found] = position + last
            found += np.uint64(barred >> np.uint64(first) << np.uint64(first + 64 - last) == 0)
            firsts &= firsts - _ONE
            lasts &= lasts - _ONE
        plain = min(lowest(firsts), lowest(odd))
        position += plain
        if position < stop and (odd or plain == 0):
            found, position = _step(
                data, begin, position, stop, byte_classes, classes, starts, ends, found
            )
    return np.int64(found)


@inlined
def _www(data, position):  # type: ignore[no-untyped-def]
    """Return a mask of the next 64 bytes at which `www.` begins, unless it goes beyond them."""
    letter, dot = bytes_within(data, position, 0x20, 119, 1), bytes_within(data, position, 0, 46, 1)
    two = letter & (letter >> np.uint64(1))
    return two & (letter >> np.uint64(2)) & (dot >> np.uint64(3))


@compiled
def _step(  # type: ignore[no-untyped-def]
    data, begin, position, stop, byte_classes, classes, starts, ends, found
):
    """Read one run, character or chunk byte by byte; return the number of tokens, and its end."""
    start = position
    position, barred = _run(data, start, stop, byte_classes, classes)
    if position > start:
        if _is_www(data, start, stop) and _chunk_begin(data, begin, start, classes) == start:
            return found, _chunk_end(data, start, stop, classes)
        if not barred:
            starts[found] = start
            ends[found] = position
            found += np.uint64(1)
        return found, position
    point, width = code_point(data, position)
    if point == 64 or _is_scheme(data, position, stop):  # 64 is `@`
        # A chunk that yields no token takes back those already found in it.
        chunk = _chunk_begin(data, begin, position, classes)
        while found > 0 and starts[found - np.uint64(1)] >= chunk:
            found -= np.uint64(1)
        return found, _chunk_end(data, position, stop, classes)
    return found, position + width


@compiled
def _run(data, start, stop, byte_classes, classes):  # type: ignore[no-untyped-def]
    """Read the run of letters, marks, digits and inner apostrophes at `start`.

    Returns the run's end, and whether it holds a digit or an underscore.
    """
    position = start
    barred = False
    while position < stop:
        kind = byte_classes[data[position]]
        if kind == LETTER:
            position += 1
            continue
        if kind == _SPACE or kind == _OTHER:
            break
        point, width = code_point(data, position)
        kind = classes[point]
        if kind == _APOSTROPHE and start < position and position + 1 < stop:
            following, _ = code_point(data, position + 1)
            # 39 is the apostrophe: two of them in a row end the run.
            if data[position - 1] != 39 and classes[following] in (LETTER, _BARRED):
                kind = LETTER
        if kind == MARK and start < position:
            kind = LETTER
        # 108 is l; the dot has two bytes.
        inner = kind == _DOT_OF_L and start < position and position + 2 < stop
        if inner and data[position - 1] == 108 and data[position + 2] == 108:
            kind = LETTER
        if kind != LETTER and kind != _BARRED:
            break
        barred |= kind == _BARRED
        position += width
    return position, barred


@compiled
def _chunk_begin(data, begin, position, classes):  # type: ignore[no-untyped-def]
    """Return the position behind the last white space before `position`, or the text's begin."""
    while position > begin:
        before = position - 1
        while data[before] & 0xC0 == 0x80:  # a byte within a character
            before -= 1
        point, _ = code_point(data, before)
        if classes[point] == _SPACE:
            break
        position = before
    return position


@compiled
def _chunk_end(data, position, stop, classes):  # type: ignore[no-untyped-def]
    """Return the position of the next white space, or the end."""
    while position < stop:
        point, width = code_point(data, position)
        if classes[point] == _SPACE:
            break
        position += width
    return position


@inlined
def code_point(data, position):  # type: ignore[no-untyped-def]
    """Return the code point at `position` of valid UTF-8, and its width in bytes."""
    lead = np.int64(data[position])
    if lead < 0x80:
        return lead, 1
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | (data[position + 1] & 0x3F), 2
    if lead < 0xF0:
        return (
            (lead & 0x0F) << 12 | (data[position + 1] & 0x3F) << 6 | (data[position + 2] & 0x3F),
            3,
        )
    return (
        (lead & 0x07) << 18
        | (data[position + 1] & 0x3F) << 12
        | (data[position + 2] & 0x3F) << 6
        | (data[position + 3] & 0x3F),
        4,
    )


@inlined
def _is_scheme(data, position, stop):  # type: ignore[no-untyped-def]
    """Return whether `://` stands at `position`."""
    return (
        position + 2 < stop
        and data[position] == 58
        and data[position + 1] == 47
        and data[position + 2] == 47
    )


@inlined
def _is_www(data, position, stop):  # type: ignore[no-untyped-def]
    """Return whether `www.` stands at `position`."""
    return (
        position + 3 < stop
        and data[position] == 119
        and data[position + 1] == 119
        and data[position + 2] == 119
        and data[position + 3] == 46
    )


@compiled
def _hashes(data, starts, ends):  # type: ignore[no-untyped-def]
    found = np.empty(len(starts), dtype=np.uint64)
    for token in range(len(starts)):
        state = _HASH_SEED
        for position in range(starts[token], ends[token]):
            state = (state ^ np.uint64(data[position])) * _HASH_PRIME
        found[token] = state ^ (state >> np.uint64(32))
    return found
