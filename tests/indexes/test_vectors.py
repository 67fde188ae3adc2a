"""Word vectors from files: each format as its own tool writes it, and every fault one can have."""

from __future__ import annotations

import io
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from gensim.models import KeyedVectors, Word2Vec
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from vector_files import SAVERS, VALUES, WORDS, assert_same, files_in, keyed, load, npy, npz

from quietcorpus.indexes.tokens.tokenizers import UNICODE_WORDS
from quietcorpus.indexes.vectors import VectorsError, WordVectors, reachable, read
from quietcorpus.indexes.words.embeddings import read_vectors


@pytest.mark.parametrize("name", SAVERS)
def test_what_gensim_saves(name: str, tmp_path: Path) -> None:
    # Kills: rows in another order, a header taken for a row, words from one file and values from
    # another, values through a narrower type, the sibling array forgotten.
    SAVERS[name](keyed(WORDS, VALUES), str(tmp_path / name))
    files = files_in(tmp_path)
    assert (f"{name}.vectors.npy" in files) == (name == "apart.kv")
    assert_same(load(name, files), WORDS, VALUES)


@pytest.mark.parametrize("name", ["x.kv", "apart.kv"])
@pytest.mark.parametrize("dtype", [np.float64, ">f4", np.float16])
@pytest.mark.parametrize("order", ["C", "F"])
def test_keyed_vectors_of_other_layouts(
    name: str, dtype: npt.DTypeLike, order: Any, tmp_path: Path
) -> None:
    # Kills: bytes taken for the machine's own order or for row-major ones, all taken for float32.
    vectors = keyed(WORDS, np.array([[0.5, 2], [3, -4], [5, 6]], dtype))
    vectors.vectors = np.asarray(vectors.vectors, order=order).astype(dtype)
    SAVERS[name](vectors, str(tmp_path / name))
    expected = np.array([[0.5, 2], [3, -4], [5, 6]], np.float32)
    assert_same(load(name, files_in(tmp_path)), WORDS, expected)


def test_keyed_vectors_of_a_trained_model(tmp_path: Path) -> None:
    # Counts, sampling thresholds and a log of events stand beside a trained model's vectors.
    model = Word2Vec([["a", "b", "c"]] * 9, vector_size=5, min_count=1, workers=1)
    model.wv.set_vecattr("a", "noted", "yes")
    model.wv.norms = np.float64(1)
    model.wv.save(str(tmp_path / "x.kv"))
    saved = (tmp_path / "x.kv").read_bytes()
    assert_same(load("x.kv", {"x.kv": saved}), model.wv.index_to_key, model.wv.vectors)


def test_keyed_vectors_pickled_by_numpy_1() -> None:
    new = pickle.dumps(keyed(WORDS, VALUES), protocol=3)  # which ends names by lines
    old = new.replace(b"numpy._core.", b"numpy.core.")
    assert old != new
    assert_same(load("x.kv", {"x.kv": old}), WORDS, VALUES)


def test_word2vec_itself_ends_lines_in_its_binary_files() -> None:
    rows = [w.encode() + b" " + v.tobytes() + b"\n" for w, v in zip(WORDS, VALUES, strict=True)]
    assert_same(load("x.bin", {"x.bin": b"3 2\n" + b"".join(rows)}), WORDS, VALUES)


def test_numpy_files() -> None:
    fortran = np.asfortranarray(VALUES.astype(np.float64))
    as_bytes = np.array([word.encode() for word in WORDS])
    for words in (np.array(WORDS), as_bytes):
        for values in (VALUES, fortran):
            content = npz(words=words, vectors=values, other=np.arange(3))
            assert_same(load("x.npz", {"x.npz": content}), WORDS, VALUES)
    for end in ("", "\n", "\r\n"):
        lines = ("\r\n" if end == "\r\n" else "\n").join(WORDS) + end
        files = {"a.b.npy": npy(VALUES), "a.b.txt": lines.encode()}
        assert_same(load("a.b.npy", files), WORDS, VALUES)


odd_words = st.lists(
    st.text(st.characters(exclude_characters=" \n", exclude_categories=["Cs"]), max_size=4),
    min_size=2,
    max_size=5,
    unique=True,
)


@st.composite
def odd_vectors(draw: st.DrawFn) -> tuple[list[str], npt.NDArray[np.float32]]:
    words = draw(odd_words)
    finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
    values = draw(arrays(np.float32, (len(words), draw(st.integers(1, 4))), elements=finite))
    values[~values.any(axis=1), 0] = 1
    return words, values


@pytest.mark.parametrize("name", SAVERS)
@given(vectors=odd_vectors())
def test_odd_words_come_back(
    name: str,
    vectors: tuple[list[str], npt.NDArray[np.float32]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    # Kills: lines split at what only str takes for a line's end, words split or stripped at other
    # white space, an empty word taken for none, subnormal values and signs of zero lost.
    folder = tmp_path_factory.mktemp("odd")
    SAVERS[name](keyed(*vectors), str(folder / name))
    assert_same(load(name, files_in(folder)), *vectors)


@pytest.mark.parametrize("header", [b"", b"4 2\n"])
def test_words_with_spaces(header: bytes) -> None:
    # GloVe 840B has such rows. Kills: the row of another word, and the first line's words counted.
    lines = b"the 1 0\n. . . 2 2\nat name@domain.com 5 5 \r\nat 0 1\n"
    assert load("x.txt", {"x.txt": header + lines}).words == [
        "the",
        ". . .",
        "at name@domain.com",
        "at",
    ]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("header", [b"", b"4 2\n", b"4\t2\r\n"])
@pytest.mark.parametrize("separators", [(b" ", b" "), (b"\t", b"\t"), (b"\t", b" ")])
def test_marks_and_tabs(mark: bytes, header: bytes, separators: tuple[bytes, bytes]) -> None:
    # Kills: a first word that is lost, since it begins with a byte order mark; a tab in a word; a
    # number taken for a value of the word before it.
    words = ["the", "10 000", "New York", "1990"]
    first, between = separators
    rows = [word.encode() + first + b"1" + between + b"0.5\n" for word in words]
    content = mark + header + b"".join(rows)
    assert load("x.vec", {"x.vec": content}).words == words
    lists = {"x.npy": npy(VALUES), "x.txt": mark + b"the\nof\nand\n"}
    assert load("x.npy", lists).words == ["the", "of", "and"]
    vectors = read_vectors(io.BytesIO(content).readlines(), ["the", "of"])
    assert vectors.any(axis=1).tolist() == [True, False]


def test_keys_of_numpy(tmp_path: Path) -> None:
    # Kills: keys out of an array of NumPy's, or numbers, that no KeyedVectors may have.
    vectors = KeyedVectors(2)
    vectors.add_vectors(
        [*np.array(["the", "na\u00efve"]), np.str_("\U0001f642"), 7], VALUES[[0, 1, 2, 0]]
    )
    vectors.save(str(tmp_path / "x.kv"))
    found = load("x.kv", files_in(tmp_path))
    assert found.words == ["the", "na\u00efve", "\U0001f642", "7"]
    bad = keyed(WORDS, VALUES)
    bad.index_to_key[1] = np.float64(1.5)
    with pytest.raises(VectorsError, match="holds a key of dtype 'f8'"):
        load("x.kv", {"x.kv": pickle.dumps(bad, protocol=4)})


def test_only_words_of_use_need_vectors_of_use() -> None:
    # Kills: a model that is refused for a row of zeros of "</s>", or for a number that is there
    # twice; a word of use without a vector.
    lines = b"the 1 2\n</s> 0 0\n10 1 2\n10 1 2\n-- nan 1\nof 2 1\n"
    found = read("x.txt", lambda _: io.BytesIO(lines), tokenizer=UNICODE_WORDS)
    assert found.words == ["the", "of"]
    with pytest.raises(VectorsError, match="line 2: '</s>' has a vector of zeros"):
        read("x.txt", lambda _: io.BytesIO(b"the 1 2\n</s> 0 0\nof 2 1\n"))
    content = lines.replace(b"of 2 1", b"of 0 0")
    with pytest.raises(VectorsError, match="line 6: 'of' has a vector of zeros"):
        read("x.txt", lambda _: io.BytesIO(content), tokenizer=UNICODE_WORDS)


def test_words_that_are_not_utf8_stay_apart() -> None:
    # Kills: U+FFFD for both, which makes them one; lone surrogates, which nothing can encode.
    files = {
        "x.txt": b"\xff 1\n\xfe 2\nok 3\n",
        "x.bin": b"2 1\ncaf\xc3 " + VALUES[0, :1].tobytes() + b"ok " + VALUES[0, :1].tobytes(),
        "x.npz": npz(words=np.array(["\ud800", "\udcff"]), vectors=VALUES[:2]),
        "x.kv": pickle.dumps(keyed(["\ud800", "\udcff"], VALUES[:2]), protocol=4),
    }
    assert load("x.txt", files).words == ["\\xff", "\\xfe", "ok"]
    assert load("x.bin", files).words == ["caf\\xc3", "ok"]
    for name in ("x.npz", "x.kv"):
        assert load(name, files).words == ["\\xed\\xa0\\x80", "\\xed\\xb3\\xbf"]
    with pytest.raises(VectorsError, match=r"line 2: '\\\\xff' stands there more than once"):
        load("x.txt", {"x.txt": b"\xff 1\n\\xff 2\n"})


class Dripping(io.RawIOBase):
    """A stream that gives a few bytes at a time, as sockets do, and cannot seek."""

    def __init__(self, content: bytes) -> None:
        self._content = io.BytesIO(content)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._content.read(min(len(buffer), 7))
        buffer[: len(part)] = part
        return len(part)


@pytest.mark.parametrize("name", SAVERS)
def test_streams_that_drip(name: str, tmp_path: Path) -> None:
    # Kills: what one `read` gives taken for all there is; seeking where a stream cannot.
    SAVERS[name](keyed(WORDS, VALUES), str(tmp_path / name))
    files = files_in(tmp_path)
    assert_same(read(name, lambda base_name: Dripping(files[base_name])), WORDS, VALUES)  # type: ignore


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rows", "blocks"), [("x.vec", 4_000, 0), ("x.bin", 24_000, 2)])
def test_memory_is_one_array_and_the_words(
    name: str, rows: int, blocks: int, tmp_path: Path
) -> None:
    # More than two blocks of the binary file. Kills: a list of rows, a second copy while the array
    # grows, and a row lost where blocks meet.
    values = np.random.default_rng().normal(size=(rows, 100)).astype(np.float32)
    words = [f"word{row}" for row in range(len(values))]
    SAVERS[name](keyed(words, values), str(tmp_path / name))
    tracemalloc.start()
    try:
        with (tmp_path / name).open("rb") as stream:
            vectors = read(name, lambda _: stream)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert_same(vectors, words, values)
    assert peak < 1.5 * values.nbytes + 200 * rows + blocks * (4 << 20)


def test_reachable_words() -> None:
    # Kills: words compared by their tokens' number alone, values of other rows.
    words = ["the", "The", "mp3", "7", "a b", "don't", ".", "", "caf\u00e9", "cafe\u0301", "\\xff"]
    values = np.arange(2 * len(words), dtype=np.float32).reshape(-1, 2)
    kept = reachable(WordVectors(words, values), UNICODE_WORDS)
    expected = [0, 5, 8]
    assert_same(kept, [words[row] for row in expected], values[expected])


def test_too_few_reachable_words() -> None:
    vectors = WordVectors(["The", "the", "."], VALUES)
    message = r"holds 1 words \(of 3\) that the tokeniser unicode-words-v2 yields; give"
    with pytest.raises(VectorsError, match=message):
        reachable(vectors, UNICODE_WORDS)
    assert len(reachable(WordVectors(["The", "the", "of"], VALUES), UNICODE_WORDS).words) == 2
