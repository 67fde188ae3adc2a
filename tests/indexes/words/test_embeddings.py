"""Word vectors from text files: both formats, and every fault that a file can have."""

from __future__ import annotations

import numpy as np
import pytest

from quietcorpus.indexes.vectors import VectorsError
from quietcorpus.indexes.words.embeddings import dimension_of, read_vectors

GLOVE = [b"the 3 4\n", b"caf\xc3\xa9 0 -2\n", b"unused 1 1\n"]


def test_glove_has_no_header() -> None:
    # Kills: the first word taken for a header, rows in the file's order, lengths left as they are.
    vectors = read_vectors(GLOVE, ["caf\u00e9", "missing", "the"])
    np.testing.assert_allclose(vectors, [[0, -1], [0, 0], [0.6, 0.8]], rtol=1e-6)
    assert vectors.dtype == np.float32


def test_word2vec_has_one() -> None:
    # Kills: the header taken for the vector of the word "3".
    lines = [b"3 2\n", *GLOVE]
    np.testing.assert_array_equal(read_vectors(lines, ["the"]), read_vectors(GLOVE, ["the"]))
    with pytest.raises(VectorsError, match="no vector for any term"):
        read_vectors(lines, ["3"])


def test_a_header_stands_on_the_first_line_alone() -> None:
    assert read_vectors([b"a 1\n", b"7 2\n"], ["7"]).tolist() == [[1.0]]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b" \n", b" ", b""])
def test_line_ends(end: bytes) -> None:
    # word2vec ends its lines with a space.
    assert read_vectors([b"a 0.0 2e-1" + end], ["a"]).tolist() == [[0.0, 1.0]]


def test_zero_vectors_stay_zero() -> None:
    # Kills: a division by zero (a warning, and NaN in every distance).
    assert read_vectors([b"a 0 0\n", b"b 1 0\n"], ["a", "b"]).tolist() == [[0, 0], [1, 0]]


def test_words_with_spaces_are_other_words() -> None:
    # GloVe 840B holds rows such as "at name@domain.com 0.1 ...". Kills: a row of the word "at", or
    # a refusal of the whole file.
    lines = [b"the 1 0\n", b"at name@domain.com 5 5\n", b". . 2 2\n", b"at 0 1\n"]
    assert read_vectors(lines, ["at", "the"]).tolist() == [[0, 1], [1, 0]]
    with_header = [b"2 2\n", b"at 0 1\n", b"at name@domain.com 5 5\n"]
    assert read_vectors(with_header, ["at"]).tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([b"a 1 2\n", b"b 1 2 3\n"], "line 2 has 3 values, not 2"),
        ([b"a 1 2\n", b"x 1 2\n", b"b 1\n"], "line 3 has 1 values, not 2"),
        ([b"a 1 nan\n"], "line 1 .*not finite"),
        ([b"a inf 1\n"], "line 1 .*not finite"),
        ([b"2 2\n", b"a 1 -inf\n"], "line 2 .*not finite"),
        ([b"a 1 1e39\n"], "line 1 .*not finite"),
        ([b"a 1 two\n"], "line 1 holds something that is not a number"),
        ([b"x 1 1\n", b"a one 1\n"], "line 2 holds something that is not a number"),
        ([b"a\n"], "line 1 holds no values"),
        ([b"x 1 2\n"], "no vector for any term"),
        ([], "no vector for any term"),
    ],
    ids=str,
)
def test_refusals(lines: list[bytes], message: str) -> None:
    with pytest.raises(VectorsError, match=message):
        read_vectors(lines, ["a", "b"])


def test_the_dimension_of_a_whole_file() -> None:
    # Kills: a header taken for a word and its vector.
    assert dimension_of(GLOVE) == 2
    assert dimension_of([b"3 2\n", *GLOVE]) == 2


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (b"b 1 2 3\n", "line 3 has 3 values, not 2"),
        (b"b 1 nan\n", "line 3 .*not finite"),
        (b"b 1 two\n", "line 3 holds something that is not a number"),
    ],
)
def test_the_dimension_of_a_file_with_a_fault(last: bytes, message: str) -> None:
    # Of any word, since the terms are not known yet. Kills: a look at the first line alone.
    with pytest.raises(VectorsError, match=message):
        dimension_of([b"a 1 2\n", b"x 1 2\n", last])
