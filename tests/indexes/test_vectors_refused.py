"""Files of word vectors that are refused: damaged, cut short, evil, of something else."""

from __future__ import annotations

import gzip
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from gensim.models import FastText, KeyedVectors, Word2Vec
from vector_files import BINARY, GLOVE, SAVERS, VALUES, WORDS, files_in, keyed, load, npy, npz

from quietcorpus.indexes.vectors import VectorsError


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (b"", "holds 0 words; give at least two"),
        (b"the 1 2\n", "holds 1 words"),
        (b"0 3\n", "holds 0 words"),
        (b"the\nof 1\n", "line 1 holds no values"),
        (b"2 0\nthe\nof\n", "line 1 holds no values"),
        (b"the 1 2\nof 1 2 3\n", "line 2 has 3 values, not 2 as line 1 says, after 'of'"),
        (b"the 1 2\nof 1\n", "line 2 has 1 values, not 2"),
        (b"the 1 2\n\nof 1 2\n", "line 2 has 0 values, not 2 as line 1 says, after ''"),
        (b"2 3\nthe 1 2\nof 1 2\n", "line 2 has 2 values, not 3 as line 1 says, after 'the'"),
        (b"2 1\nthe 1 2\nof 1 2\n", "line 2 has 2 values, not 1"),
        (b"3 2\nthe 1 2\nof 1 2\n", "holds 2 rows, its header says 3"),
        (b"1 2\nthe 1 2\nof 1 2\n", "line 3 is one more than the 1 rows that the header says"),
        (b"the 1 2\nof 1 nan\n", "line 2: 'of' has a value that is not finite .1 such lines"),
        (b"2 2\nthe 1 -inf\nof nan 1\n", "line 2: 'the' has a value that is not finite .2 such"),
        (b"the 1 2\nof 1e39 1\n", "line 2: 'of' has a value that is not finite"),
        (b"the 1 2\nof 0 -0.0\n", "line 2: 'of' has a vector of zeros"),
        (b"the 1 2\nof 1e-60 0\n", "line 2: 'of' has a vector of zeros"),
        (b"2 2\nthe 1 2\nthe 1 3\n", r"line 3: 'the' stands there more than once \(1 such lines"),
        (
            b"a 1\na b 1\na b 2\na b 3\n",
            r"line 3: 'a b' stands there .* \(2 such lines\); remove them",
        ),
        (b"the 1 2\nof 1 two\n", "line 2 holds something that is not a number, after 'of'"),
        (b"the 1 2\nof one 2\n", "line 2 holds something that is not a number"),
        (b"the 1 2\nof 1 0x2\n", "line 2 holds something that is not a number"),
        (b"the 1 2\nof 1 2", "line 2 does not end: the file is cut short"),
        (
            b"5000 2 4 5 2 2166136261 < >\n0 1 2\n1 2 1\n",
            "is floret's table of hashed parts of wor",
        ),
        (b"9" * 5000 + b" 2\nof 1 2\n", "line 2 has 2 values, not 1"),
    ],
    ids=str,
)
def test_refused_text(lines: bytes, message: str) -> None:
    with pytest.raises(VectorsError, match=message):
        load("x.txt", {"x.txt": lines})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins neither with word2vec's header"),
        (b"\xba\x16O/\x0c\x00", "is not whole: the file is cut short"),
        (b"the 2\n" + BINARY, "begins neither with word2vec's header"),
        (BINARY.replace(b"2 2", b"3 2"), "row 3 of 3 is not whole: the file is cut short or its"),
        (BINARY.replace(b"2 2", b"1 2"), "holds more than the 1 vectors of 2 values"),
        (BINARY.replace(b"2 2", b"2 3"), "row 2 of 2 is not whole"),
        (BINARY.replace(b"2 2", b"2 1"), "is not UTF-8: the header lies"),
        (BINARY.replace(b"2 2", b"2 1").replace(VALUES[0].tobytes(), b"01234567"), "holds more"),
        (BINARY.replace(b"2 2", b"999999999999 999999"), "row 1 of 999999999999 is not whole"),
        (BINARY + b"\n\n", "holds more than"),
        (BINARY.replace(b"of", b"the"), "row 2: 'the' stands there more than once"),
        (BINARY.replace(b"of", b"o\xfff"), r"row 2: b'o\\xfff' is not UTF-8"),
        (b"2 1\nthe \0\0\0\0of \0\0\x80\x7f", "row 2: 'of' has a value that is not finite"),
        (b"2 1\nthe \0\0\0\0of \0\0\0\1", "row 1: 'the' has a vector of zeros"),
        (b"2 1\n" + b"x" * 100_000 + b" \1\1\1\1of \1\1\1\1", "row 1 of 2 is not whole"),
    ],
    ids=range(15),
)
def test_refused_binary(content: bytes, message: str) -> None:
    with pytest.raises(VectorsError, match=message):
        load("x.bin", {"x.bin": content})


def test_binary_out_of_step(tmp_path: Path) -> None:
    # gensim writes words with spaces into binary files, which nothing can read: after "new", the
    # rest of that word would be the beginning of its vector. Kills: garbage taken for vectors.
    values = np.full((2, 2), -1e-3, np.float32)
    SAVERS["x.bin"](keyed(["new york", "the"], values), str(tmp_path / "x.bin"))
    with pytest.raises(VectorsError, match=r"row 2: .*is not UTF-8: .*or a word holds a space"):
        load("x.bin", files_in(tmp_path))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"vectors": VALUES}, r"holds 'vectors'; save it with np\.savez"),
        ({"words": np.array(WORDS), "embeddings": VALUES}, "holds 'embeddings', 'words'; save"),
        ({"words": np.array(WORDS, dtype=object), "vectors": VALUES}, "allow_pickle=False"),
        ({"words": np.arange(3), "vectors": VALUES}, r"words of shape \(3,\) and dtype int64"),
        ({"words": np.array([WORDS]), "vectors": VALUES}, r"words of shape \(1, 3\)"),
        ({"words": np.array(WORDS[:2]), "vectors": VALUES}, "holds 2 words and 3 vectors"),
        ({"words": np.array(["a"]), "vectors": VALUES[:1]}, "holds 1 words"),
        ({"words": np.array(["a", "b"]), "vectors": VALUES[:2, :0]}, "vectors of dimension 0"),
        ({"words": np.array(["a", "b"]), "vectors": VALUES[:2, 0]}, r"vectors of shape \(2,\)"),
        ({"words": np.array(WORDS), "vectors": VALUES[None]}, r"vectors of shape \(1, 3, 2\)"),
        ({"words": np.array(WORDS), "vectors": VALUES.astype(complex)}, "dtype complex128"),
        ({"words": np.array(WORDS), "vectors": VALUES.astype(str)}, "vectors of dtype <U"),
        ({"words": np.array(WORDS), "vectors": VALUES.astype(float) * 10}, "row 2: .*not finite"),
        ({"words": np.array(WORDS), "vectors": VALUES * 0}, r"row 1: .*zeros \(3 such rows\)"),
        ({"words": np.array(["a", "b", "a"]), "vectors": VALUES}, "row 3: 'a' stands there more"),
    ],
    ids=range(15),
)
def test_refused_npz(arrays: dict[str, npt.NDArray[Any]], message: str) -> None:
    with pytest.raises(VectorsError, match=message):
        load("x.npz", {"x.npz": npz(**arrays)})


def test_a_damaged_npz() -> None:
    # Kills: the checksum, which is compared only when all has been read.
    content = npz(words=np.array(WORDS), vectors=VALUES)
    at = content.index(VALUES.tobytes())
    damaged = content[:at] + b"\1" + content[at + 1 :]
    with pytest.raises(VectorsError, match=r"cannot be read \(Bad CRC-32"):
        load("x.npz", {"x.npz": damaged})


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"x.npy": npy(VALUES)}, "needs 'x.txt' beside it, with one word a line"),
        ({"x.npy": npy(VALUES), "x.txt": b"a\nb\n"}, "holds 2 words and 3 vectors"),
        ({"x.npy": npy(VALUES), "x.txt": b"a\nb\nc\n\n"}, "holds 4 words and 3 vectors"),
        ({"x.npy": npy(VALUES[0]), "x.txt": b"a\nb\n"}, r"vectors of shape \(2,\)"),
        ({"x.npy": npy(np.array([object()])), "x.txt": b""}, "allow_pickle=False"),
        ({"x.npy": npy(VALUES) + b"\n", "x.txt": b""}, "it does not end with its array"),
        ({"x.npy": npy(VALUES).replace(b"(3, 2)", b"(9, 2)"), "x.txt": b""}, "cannot be read"),
    ],
    ids=range(7),
)
def test_refused_npy(files: dict[str, bytes], message: str) -> None:
    with pytest.raises(VectorsError, match=message):
        load("x.npy", files)


def test_no_file_cut_short_is_read(tmp_path: Path) -> None:
    # Every cut of every format. Kills: each check of an end. (Without a header, text that is cut
    # between lines is a shorter file.)
    for name, save in SAVERS.items():
        save(keyed(WORDS, VALUES), str(tmp_path / name))
    (tmp_path / "x.npz").write_bytes(npz(words=np.array(WORDS), vectors=VALUES))
    (tmp_path / "y.npy").write_bytes(npy(VALUES))
    (tmp_path / "y.txt").write_text("\n".join(WORDS), encoding="utf-8")
    files = files_in(tmp_path)
    mains = {name: name for name in {*SAVERS, "x.npz", "y.npy"}}
    mains["apart.kv.vectors.npy"] = "apart.kv"
    for cut, main in mains.items():
        assert load(main, files).words == WORDS
        for size in range(len(files[cut])):
            if (
                cut == "x.txt"
                and files[cut][:size].count(b"\n") == 2
                and files[cut][size - 1] == 10
            ):
                continue
            with pytest.raises(VectorsError) as error:
                load(main, files | {cut: files[cut][:size]})
            assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["x.txt.gz", "x.bin.gz"])
def test_damaged_gzip(name: str) -> None:
    content = gzip.compress(GLOVE if name == "x.txt.gz" else BINARY)
    for damaged in (GLOVE, content[:-8] + bytes(8), content[:12] + b"\xff" + content[13:]):
        with pytest.raises(
            VectorsError, match=r"is not a gzip file, or damaged .*; fetch it again"
        ):
            load(name, {name: damaged})


class Evil:
    """Makes a file when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self._target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self._target}",)


def test_an_evil_pickle_does_not_run(tmp_path: Path) -> None:
    # Kills: pickle's own `find_class`, for the whole file or for what a KeyedVectors holds.
    target = tmp_path / "made"
    hidden = keyed(WORDS, VALUES)
    hidden.expandos["count"] = Evil(target)
    hidden.save(str(tmp_path / "hidden.kv"))
    contents = [pickle.dumps(Evil(target), protocol) for protocol in range(6)]
    for content in (*contents, (tmp_path / "hidden.kv").read_bytes()):
        with pytest.raises(VectorsError, match=f"names '{os.name}.system', .* was not loaded"):
            load("x.kv", {"x.kv": content})
        assert not target.exists()
    # The control: where it is unpickled, it does run.
    pickle.loads(contents[0])
    assert target.exists()


KEYED = b"cgensim.models.keyedvectors\nKeyedVectors\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93.", "names 'numpy.ndarray.tofile'"),
        (b"\x80\x04\x8c\x05numpy\x8c\x04load\x93.", "names 'numpy.load'"),
        (b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.", "names 'builtins.eval'"),
        (b"cgensim.models.keyedvectors\nWord2VecKeyedVectors\n.", "was saved by gensim 3; load it"),
        (b"cgensim.models.keyedvectors\nVocab\n.", "was saved by gensim 3"),
        (b"(dp0\n.", "holds no KeyedVectors of gensim's"),
        (KEYED + b".", "holds no KeyedVectors of gensim's"),
        (KEYED + b")\x81.", r"is not a KeyedVectors, or damaged \(TypeError\)"),
        (KEYED + b")\x81}b.", r"is not a KeyedVectors, or damaged \(KeyError\)"),
        (
            KEYED + b"N}X\x05\0\0\0stateK\x01s\x86b.",
            r"is not a KeyedVectors, or damaged \(TypeError",
        ),
        (b"Pid\n.", r"damaged \(UnpicklingError\)"),
        (b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.", "is not a KeyedVectors, or damaged"),
        (b"3 2\nthe 1 2\n", "is not a KeyedVectors, or damaged"),
    ],
    ids=range(13),
)
def test_refused_pickles(content: bytes, message: str) -> None:
    # Kills: dotted names followed, a state set on the stand-in's class, other errors than ours.
    with pytest.raises(VectorsError, match=message):
        load("x.kv", {"x.kv": content})
    assert load("x.kv", {"x.kv": pickle.dumps(keyed(WORDS, VALUES), protocol=4)}).words == WORDS


def test_refused_gensim_files(tmp_path: Path) -> None:
    text = [["a", "b", "c"]] * 9
    options: dict[str, Any] = {"vector_size": 5, "min_count": 1, "workers": 1}
    Word2Vec(text, **options).save(str(tmp_path / "model.kv"))
    FastText(text, bucket=10, **options).wv.save(str(tmp_path / "fasttext.kv"))
    numbered = KeyedVectors(2)
    numbered.add_vectors([b"3", 4], VALUES[:2])
    numbered.save(str(tmp_path / "numbered.kv"))
    whole = keyed(WORDS, VALUES)
    whole.vectors = np.ones((3, 2), dtype=np.int64)
    whole.save(str(tmp_path / "whole.kv"))
    keyed(WORDS, VALUES).save(str(tmp_path / "apart.kv"), sep_limit=0)
    files = files_in(tmp_path)
    for name, message in {
        "model.kv": "names 'gensim.models.word2vec.Word2Vec'.*save_word2vec_format",
        "fasttext.kv": "names 'gensim.models.fasttext.FastTextKeyedVectors'",
        "numbered.kv": r"holds a key that is not a string \(bytes\)",
        "whole.kv": "holds vectors of dtype 'i8'",
    }.items():
        with pytest.raises(VectorsError, match=message):
            load(name, files)
    with pytest.raises(VectorsError, match=r"needs 'apart\.kv\.vectors\.npy', saved with it; put"):
        load("apart.kv", {"apart.kv": files["apart.kv"]})
    flat = {"apart.kv.vectors.npy": npy(VALUES[0])}
    with pytest.raises(VectorsError, match=r"'apart\.kv\.vectors\.npy', that holds .* \(2,\)"):
        load("apart.kv", files | flat)


@pytest.mark.parametrize("name", ["x", "x.csv", "x.TXT", "x.kv.gz", "x.npz.gz", ".gz", "txt", ""])
def test_unknown_extensions(name: str) -> None:
    with pytest.raises(VectorsError, match=r"says no format; give one of \.txt, \.vec .*\.npy"):
        load(name, {name: GLOVE})


def test_a_missing_file_is_the_callers_to_name() -> None:
    with pytest.raises(FileNotFoundError):
        load("x.txt", {})
