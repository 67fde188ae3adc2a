"""Word vectors in the formats of word2vec, GloVe and fastText: read and written.

Word vectors from fastText's own `.bin`: a model, whose words and parts of words have rows.

A word's vector is the mean of the word's row and the rows of its n-grams, which share a fixed
number of buckets by their hash (Bojanowski, Grave, Joulin and Mikolov, TACL 2017). The parts of a
file:

    magic, version     int32
    settings           12 of int32, of which the dimension is the first, and a float64
    sizes              int32 entries, words and labels; int64 tokens and pruned rows
    entries            a word's bytes and a zero, int64 count, int8 kind (0 a word, 1 a label)
    quantised          a byte
    matrix             int64 rows and columns, float32 values: words first, then the buckets
    the rest           what training needs, which is not read

Word vectors from a `.bin`: word2vec's binary format, or a model of fastText's.

A file of word2vec has a header, and for every word its bytes, a space and float32 values, with a
line end after each (the original tool) or without one (gensim).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import IO

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled

from .rows import Rows, VectorsError, decoded, lines_of, quoted

_HEADER = re.compile(rb"(\d{1,15})[ \t](\d{1,6})\s*")
_FLORET = re.compile(rb"(\d+ ){6}\S+ \S+\s*")  # buckets, dimension, lengths, hashes, marks


def header(line: bytes) -> tuple[int, int] | None:
    """Return the numbers of rows and of dimensions, if the line is word2vec's header."""
    found = _HEADER.fullmatch(line)
    return (int(found[1]), int(found[2])) if found else None


class TextRows:
    """The numbered lines that hold vectors.

    Attributes:
        count: the number that the header states; None if there is no header.
        width: the dimension, from the header or the first line.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        """Read the first line; raise VectorsError if it holds no values."""
        numbered = enumerate(lines_of(lines), start=1)
        first = next(numbered, (1, b"0 1"))  # an empty file has no rows, of any dimension
        if _FLORET.fullmatch(first[1]):
            raise VectorsError(
                "is floret's table of hashed parts of words, which names no words; give the words' "
                "vectors, as floret's save_vectors writes them"
            )
        size = header(first[1])
        rows = [first] if size is None else list(islice(numbered, 1))
        width = size[1] if size else None
        self._separator = b"\t" if rows and _is_tabbed(rows[0][1], width) else b" "
        self.count = size[0] if size else None
        self.width = size[1] if size else len(self._split(first[1])[1])
        if self.width == 0:
            raise VectorsError("line 1 holds no values; give a word and its vector on every line")
        self._lines = chain(rows, numbered)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        return self._lines

    def parse(self, number: int, line: bytes) -> tuple[bytes, npt.NDArray[np.float32]]:
        """Parse a line's word and its vector, float32 (width,); too large values become infinite.

        Raises VectorsError for another number of values, or for a value that is not a number.
        """
        word, fields = self._split(line)
        if len(fields) > self.width and (not _is_number(fields[0]) or _is_number(word)):
            # GloVe's 840B file has words with spaces in them, and other files have "10 000".
            word, *fields = line.rsplit(maxsplit=self.width)
        if len(fields) != self.width:
            raise VectorsError(
                f"line {number} has {len(fields)} values, not {self.width} as line 1 says, after "
                f"{quoted(word)}; the line is damaged or the header lies: save the file again"
            )
        try:
            with np.errstate(over="ignore"):
                return word, np.array(fields, dtype=np.float32)
        except ValueError:
            raise VectorsError(
                f"line {number} holds something that is not a number, after {quoted(word)}; "
                "remove the line"
            ) from None

    def word_of(self, line: bytes) -> bytes:
        """Return what stands before the first separator of a line."""
        return line.partition(self._separator)[0]

    def _split(self, line: bytes) -> tuple[bytes, list[bytes]]:
        word, _, values = line.rstrip(b"\r\n \t").partition(self._separator)
        return word, values.split()


def read_text(lines: Iterable[bytes]) -> Rows:
    """Read all rows of a file; raise VectorsError if it is damaged or its header lies.

    A last line without an end is refused: a number cut short is still a number.
    """
    text = TextRows(lines)
    words: list[str] = []
    values = bytearray()  # grows in place, so that there is never a second copy
    for number, line in text:
        if not line.endswith(b"\n"):
            raise VectorsError(
                f"line {number} does not end: the file is cut short; fetch it again, or end the "
                "line if that is all"
            )
        if len(words) == text.count:
            raise VectorsError(
                f"line {number} is one more than the {text.count} rows that the header says: it "
                "lies; correct it or save the file again"
            )
        word, vector = text.parse(number, line)
        words.append(decoded(word))
        values += vector.tobytes()
    if text.count not in (None, len(words)):
        raise VectorsError(
            f"holds {len(words)} rows, its header says {text.count}: the file is cut short or its "
            "header lies; fetch or save it again"
        )
    array = np.frombuffer(values, dtype=np.float32).reshape(-1, text.width)
    return Rows(words, array, "line", 1 if text.count is None else 2)


def _is_tabbed(row: bytes, width: int | None) -> bool:
    """Return whether a tab ends the word; else a space does, and the word may hold tabs."""
    _, _, values = row.partition(b"\t")
    fields = values.split()
    ends = bool(fields) and not values[:1].isspace() and all(map(_is_number, fields))
    return ends and width in (None, len(fields))


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


MAGIC = struct.pack("<i", 793712314)
_VERSIONS = (11, 12)
_SUPERVISED = 3
_FLORET_MODES = (1, 2)
"""Floret has two more settings here, so that two integers are read as the threshold of frequent
words: a number below all real ones."""
_END_OF_SENTENCE = b"</s>"  # which fastText gives no n-grams
_BLOCK = 1 << 22
_LONGEST_WORD = 1 << 16
_LEAST_THRESHOLD = 1e-300
_CUT_SHORT = "is not whole: the file is cut short or damaged; fetch it again"


def read_fasttext(stream: IO[bytes]) -> Rows:
    """Read the vectors of all words after the magic number; raise VectorsError if it is damaged.

    The whole matrix is in memory while words are composed, buckets included.
    """
    (version,) = _numbers(stream, "<i")
    settings = _numbers(stream, "<12id")
    width, model, bucket, shortest, longest = (settings[place] for place in (0, 7, 8, 9, 10))
    if settings[11] in _FLORET_MODES and 0 < settings[12] < _LEAST_THRESHOLD:
        raise VectorsError(
            "is a model of floret's, whose words are made of hashed parts; give the words' "
            "vectors, as floret's save_vectors writes them"
        )
    if version not in _VERSIONS:
        raise VectorsError(f"is of version {version} of fastText's .bin; save it again as .vec")
    if version == _VERSIONS[0] and model == _SUPERVISED:
        longest = 0  # as fastText itself reads such files
    entries, count, labels, _, pruned = _numbers(stream, "<3i2q")
    if not (entries == count + labels and count > 0 <= labels and width > 0 <= bucket):
        raise VectorsError(f"{_CUT_SHORT} (its sizes cannot be)")
    words = list(_words(stream, entries))[:count]
    (quantised,) = _numbers(stream, "<?")
    if quantised or pruned >= 0:
        raise VectorsError("is a quantised model, of which vectors are lost; take the whole model")
    rows, columns = _numbers(stream, "<2q")
    if (rows, columns) != (count + bucket, width):
        raise VectorsError(f"{_CUT_SHORT} (its matrix is {rows} x {columns})")
    matrix = np.frombuffer(_read(stream, 4 * rows * columns), dtype="<f4").reshape(rows, columns)
    return Rows([decoded(word) for word in words], _composed(words, matrix, shortest, longest))


def _numbers(stream: IO[bytes], form: str) -> tuple[int, ...]:
    return struct.unpack(form, _read(stream, struct.calcsize(form)))


def _read(stream: IO[bytes], size: int) -> bytearray:
    """Read exactly `size` bytes; a false size allocates no more than the file has."""
    found = bytearray()  # grows in place, so that there is never a second copy
    while len(found) < size and (more := stream.read(min(_BLOCK, size - len(found)))):
        found += more
    if len(found) < size:
        raise VectorsError(_CUT_SHORT)
    return found


def _words(stream: IO[bytes], entries: int) -> Iterator[bytes]:
    """Yield the bytes of each entry; fastText writes words before labels."""
    for _ in range(entries):
        word = bytearray()
        while (byte := bytes(_read(stream, 1))) != b"\0":
            word += byte
            if len(word) > _LONGEST_WORD:
                raise VectorsError(_CUT_SHORT)
        _numbers(stream, "<qb")
        yield bytes(word)


def _composed(
    words: list[bytes], matrix: npt.NDArray[np.float32], shortest: int, longest: int
) -> npt.NDArray[np.float32]:
    """Compute the vectors of words, float32 (n, d), from the matrix of words and buckets."""
    bounded = [word if word == _END_OF_SENTENCE else b"<%b>" % word for word in words]
    offsets = np.cumsum([0, *map(len, bounded)])
    whole = np.array([word == _END_OF_SENTENCE for word in words])
    data = np.frombuffer(b"".join(bounded), dtype=np.uint8)
    found: npt.NDArray[np.float32] = _compose(data, offsets, whole, matrix, shortest, longest)
    return found


@compiled
def _compose(data, offsets, whole, matrix, shortest, longest):  # type: ignore[no-untyped-def]
    """Average each word's row and those of its n-grams, of whole characters of UTF-8."""
    count = len(whole)
    buckets = np.uint32(len(matrix) - count)
    vectors = np.empty((count, matrix.shape[1]), dtype=np.float32)
    for word in range(count):
        vectors[word] = matrix[word]
        parts = 1
        first, end = offsets[word], offsets[word + 1]
        start = first
        while start < end and buckets > 0 and not whole[word]:
            hashed = np.uint32(2166136261)  # FNV-1a, of bytes with their sign, as fastText has it
            at = start
            length = 0
            while at < end and length < longest:
                while True:  # a character: a byte, and those that go on with it
                    byte = np.uint32(data[at])
                    signed = byte | np.uint32(0xFFFFFF00) if byte & 0x80 else byte
                    hashed = np.uint32((hashed ^ signed) * np.uint32(16777619))
                    at += 1
                    if at == end or data[at] & 0xC0 != 0x80:
                        break
                length += 1
                alone = length == 1 and (start == first or at == end)
                if length >= shortest and not alone:
                    vectors[word] += matrix[count + np.int64(hashed % buckets)]
                    parts += 1
            start += 1
            while start < end and data[start] & 0xC0 == 0x80:
                start += 1
        vectors[word] /= np.float32(parts)
    return vectors


_LONGEST_HEADER = 64


def read_binary(stream: IO[bytes]) -> Rows:
    """Read all rows of a file; raise VectorsError if it is damaged or its header lies."""
    begin = stream.read(len(MAGIC))
    if begin == MAGIC:
        return read_fasttext(stream)
    rest = b"" if begin.endswith(b"\n") else stream.readline(_LONGEST_HEADER)
    size = header(begin + rest)
    if size is None:
        raise VectorsError(
            "begins neither with word2vec's header, the numbers of words and of dimensions, nor as "
            "a model of fastText's; give one of these two binary formats"
        )
    count, width = size
    words: list[str] = []
    values = bytearray()  # grows in place, so that there is never a second copy
    for word, vector in _rows(stream, count, 4 * width):
        words.append(_word(word, len(words) + 1))
        values += vector
    array = np.frombuffer(values, dtype="<f4").reshape(count, width)
    return Rows(words, np.ascontiguousarray(array, dtype=np.float32))


def _rows(stream: IO[bytes], count: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield each word and the `size` bytes of its vector."""
    block, at = b"", 0
    for row in range(1, count + 1):
        while len(block) - at < _LONGEST_WORD + size and (more := stream.read(_BLOCK)):
            block, at = block[at:] + more, 0
        start = block.find(b" ", at, at + _LONGEST_WORD) + 1
        if start == 0 or len(block) < start + size:
            raise VectorsError(
                f"row {row} of {count} is not whole: the file is cut short or its header lies; "
                "fetch or save it again"
            )
        yield block[at : start - 1], block[start : start + size]
        at = start + size
    if (block[at:] or stream.read(2)) not in (b"", b"\n"):
        raise VectorsError(
            f"holds more than the {count} vectors of {size // 4} values that its header says: it "
            "lies; save the file again"
        )


def _word(word: bytes, row: int) -> str:
    """Decode the row's word: UTF-8, or cut within its last character, as word2vec cuts long words.

    Anything else is a sign that words and vectors are out of step, as after a word with a space.
    """
    word = word.removeprefix(b"\n")
    try:
        return word.decode()
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":
            raise VectorsError(
                f"row {row}: {quoted(word)} is not UTF-8: the header lies about the dimension, or "
                "a word holds a space; save the file again, as text"
            ) from None
        return decoded(word)


def as_text(words: Sequence[str], values: npt.NDArray[np.float32]) -> bytes:
    """Write a header, then a word and its vector on every line; `values` are float32 (n, d).

    Every number has enough digits to distinguish it from all other float32 numbers.
    """
    lines = [f"{values.shape[0]} {values.shape[1]}"]
    for word, vector in zip(words, values, strict=True):
        lines.append(f"{word} {' '.join(map(str, vector))}")
    return ("\n".join(lines) + "\n").encode()


def as_binary(words: Sequence[str], values: npt.NDArray[np.float32]) -> bytes:
    """Write the same as little-endian float32, with a line end after each vector."""
    parts = [f"{values.shape[0]} {values.shape[1]}\n".encode()]
    for word, vector in zip(words, values.astype("<f4"), strict=True):
        parts.append(word.encode() + b" " + vector.tobytes() + b"\n")
    return b"".join(parts)
