"""Word vectors as files: what other tools and our own reader find in them, to the last bit."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from gensim.models import KeyedVectors
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from quietcorpus.indexes.vectors import read
from quietcorpus.indexes.vectors.word2vec import as_binary, as_text

FORMATS = {"x.txt": as_text, "x.vec": as_text, "x.bin": as_binary}
WORDS = ["the", "caf\u00e9", "\u4e2d\u6587", "don't", "na\u00efvet\u00e9", "1", "\U0001f98a"]

# The ends of what float32 holds, subnormal numbers, and those beside a power of two.
EXTREMES = [3.4028235e38, 1e-45, 1.1754944e-38, 1.1754942e-38, 16777216.0, 16777218.0, 0.1, 1 / 3]
finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
entries = st.one_of(finite, st.sampled_from([*EXTREMES, *(-value for value in EXTREMES)]))


@st.composite
def vectors(draw: st.DrawFn) -> np.ndarray:
    """Float32 (n, d), no row all zeros: readers refuse those."""
    shape = draw(st.integers(2, len(WORDS))), draw(st.integers(1, 5))
    values = draw(arrays(np.float32, shape, elements=entries))
    values[~values.any(axis=1), 0] = 1
    return values


@pytest.mark.parametrize("name", FORMATS)
@settings(deadline=None)
@given(values=vectors())
def test_our_own_reader_finds_the_same(name: str, values: np.ndarray) -> None:
    # Kills: digits that round, a header of other numbers, words and vectors out of step.
    words = WORDS[: len(values)]
    content = FORMATS[name](words, values)
    found = read(name, lambda _: io.BytesIO(content))
    assert found.words == words
    assert found.values.tobytes() == values.tobytes()


@pytest.mark.parametrize("name", FORMATS)
def test_gensim_finds_the_same(name: str, tmp_path: Path) -> None:
    # 20,000 patterns of bits. Kills: digits that only our own reader understands, a line end that
    # is taken for a part of the next word.
    patterns = np.random.default_rng().integers(0, 1 << 32, (4000, 5), dtype=np.uint32)
    values = patterns.view(np.float32)
    values[~np.isfinite(values)] = 1e-40
    values[0] = EXTREMES[:5]
    words = [*WORDS, *(f"word{n}" for n in range(len(values) - len(WORDS)))]
    (tmp_path / name).write_bytes(FORMATS[name](words, values))
    found = KeyedVectors.load_word2vec_format(str(tmp_path / name), binary=name.endswith(".bin"))
    assert found.index_to_key == words
    assert found.vectors.dtype == np.float32
    np.testing.assert_array_equal(found.vectors.view(np.uint32), values.view(np.uint32))


def test_the_layouts() -> None:
    # By hand. Kills: reader and writer with the same mistake, bytes of the machine's own order.
    values = np.array([[0.1, -2], [1e-7, 2.5]], dtype=np.float32)
    assert as_text(["a", "\u00e9"], values) == "2 2\na 0.1 -2.0\n\u00e9 1e-07 2.5\n".encode()
    expected = (
        b"2 2\na \xcd\xcc\xcc\x3d\x00\x00\x00\xc0\n\xc3\xa9 \x95\xbf\xd6\x33\x00\x00\x20\x40\n"
    )
    for order in ("<f4", ">f4"):
        assert as_binary(["a", "\u00e9"], values.astype(order)) == expected
    assert as_binary(["a", "\u00e9"], np.asfortranarray(values)) == expected


def test_as_many_words_as_vectors() -> None:
    # Kills: a file whose header lies.
    for write in (as_text, as_binary):
        with pytest.raises(ValueError, match="argument"):
            write(["a"], np.ones((2, 2), np.float32))
