"""Word vectors from fastText's own `.bin`: a model, whose words and parts of words have rows.

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
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import IO

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled

from .rows import Rows, VectorsError, decoded

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
