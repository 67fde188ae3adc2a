"""`index build` with inverted lists and of FAISS's own files: what is made, and what is refused."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from noisy_queries import clustered

from quietcorpus.indexes.folder import ArtefactError
from quietcorpus.indexes.search import inverted_lists
from quietcorpus.indexes.search.faiss_library import faiss
from quietcorpus.indexes.search.inverted_lists import library
from quietcorpus.indexes.words.word_index import open_index
from quietcorpus.pipelines.prepare import word_index as index
from quietcorpus.transforms.errors import InputError

COUNT, DIMENSIONS = 300, 8
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = [f"w{a}{b}" for a in LETTERS for b in LETTERS][:COUNT]
SETTINGS = {"provenance": "public", "guarantee": None, "bits": 64, "seed": 1}


@pytest.fixture
def vectors(tmp_path: Path) -> np.ndarray:
    made = clustered(COUNT, DIMENSIONS)
    np.save(tmp_path / "v.npy", made)
    (tmp_path / "v.txt").write_text("".join(f"{word}\n" for word in WORDS))
    return made


def build(folder: Path, name: str = "v.npy", **options: Any) -> Path:
    index.build(f"{folder}/{name}", f"{folder}/made", **SETTINGS | options)
    return folder / "made"


def refusal(folder: Path, name: str = "v.npy", **options: Any) -> str:
    before = sorted(folder.rglob("*"))
    with pytest.raises(InputError) as raised:
        build(folder, name, **options)
    assert sorted(path for path in folder.rglob("*") if path.name != "made") == before
    assert "\n" not in str(raised.value)
    return str(raised.value)


def ivf(vectors: np.ndarray, lists: int = 10) -> Any:
    return inverted_lists.train(vectors, lists, seed=5, threads=1).faiss_index


def test_lists_are_in_the_manifest_and_the_digest(tmp_path: Path, vectors: np.ndarray) -> None:
    # Kills: a file that the manifest does not list, a seed that is not recorded.
    made = build(tmp_path, search="ivf:lists=12", seed=7)
    manifest = json.loads((made / "manifest.json").read_text())
    files = {file["path"]: file["sha256"] for file in manifest["files"]}
    content = (made / "search.faiss").read_bytes()
    assert files["search.faiss"] == hashlib.sha256(content).hexdigest()
    assert manifest["search"] == {"lists": 12, "seed": 7, "vectors": files["vectors.npy"]}
    opened = open_index(str(made))
    assert opened.lists is not None
    np.testing.assert_array_equal(opened.lists.vectors(), vectors)
    assert faiss().read_index(str(made / "search.faiss")).nlist == 12
    assert "lists 12, seed 7" in "\n".join(index.show(str(made), []))


def test_an_index_without_lists_is_as_before(tmp_path: Path, vectors: np.ndarray) -> None:
    # Kills: a key that appears in every manifest, and so a new digest of every index.
    made = build(tmp_path)
    assert "search" not in json.loads((made / "manifest.json").read_text())
    assert not (made / "search.faiss").exists()
    assert open_index(str(made)).lists is None


def test_lists_of_faiss_are_imported(tmp_path: Path, vectors: np.ndarray) -> None:
    # Two of the words are none that the tokeniser yields, so that the others move up. Kills: words
    # with the vectors of their neighbours.
    faiss().write_index(ivf(vectors), str(tmp_path / "my.faiss"))
    words = [*WORDS]
    words[3], words[200] = "two words", "UPPER"
    (tmp_path / "words.txt").write_text("".join(f"{word}\n" for word in words))
    made = open_index(str(build(tmp_path, "my.faiss", words=f"{tmp_path}/words.txt")))
    kept = np.delete(np.arange(COUNT), [3, 200])
    np.testing.assert_array_equal(made.vectors, vectors[kept])
    assert made.vocabulary.terms.to_pylist() == [words[i] for i in kept]
    assert made.lists is not None
    np.testing.assert_array_equal(made.lists.vectors(), vectors[kept])
    assert made.manifest.search is not None
    assert (made.manifest.search["lists"], made.manifest.search["seed"]) == (10, None)


def test_plain_vectors_of_faiss_are_imported(tmp_path: Path, vectors: np.ndarray) -> None:
    flat = faiss().IndexFlatL2(DIMENSIONS)
    flat.add(vectors)
    faiss().write_index(flat, str(tmp_path / "v.faiss"))
    made = open_index(str(build(tmp_path, "v.faiss", search="ivf:lists=6")))
    np.testing.assert_array_equal(made.vectors, vectors)
    assert made.lists is not None
    assert made.lists.number == 6


def test_files_of_faiss_of_no_use(tmp_path: Path, vectors: np.ndarray) -> None:
    module = faiss()
    whole = inverted_lists.InvertedLists(ivf(vectors)).to_bytes()
    by_angle = module.IndexFlatIP(DIMENSIONS)
    by_angle.add(vectors)
    graph = module.IndexHNSWFlat(DIMENSIONS, 4)
    graph.add(vectors)
    fewer = "".join(f"{word}\n" for word in WORDS[:-1])
    (tmp_path / "fewer.txt").write_text(fewer)
    for name, content, options, message in (
        ("cut.faiss", whole[:-9], {}, "cut off or damaged"),
        ("none.faiss", b"words", {}, "is not a file of FAISS's"),
        ("angle.faiss", library().serialize_index(by_angle).tobytes(), {}, "of another metric"),
        ("graph.faiss", library().serialize_index(graph).tobytes(), {}, "cannot be searched here"),
        ("my.faiss", whole, {"words": f"{tmp_path}/fewer.txt"}, "holds 299 words and 300 vectors"),
        ("my.faiss", whole, {"words": f"{tmp_path}/none.txt"}, "none.txt cannot be read"),
        ("my.faiss", whole, {"search": "ivf:lists=3"}, "has inverted lists of its own"),
    ):
        (tmp_path / name).write_bytes(content)
        given = {"words": f"{tmp_path}/v.txt"} | options
        assert message in refusal(tmp_path, name, **given)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ("hnsw", "search: 'hnsw' is not allowed; give ivf:lists=NUMBER"),
        ("ivf", "give ivf:lists=NUMBER"),
        ("ivf:lists=0", "give ivf:lists=NUMBER"),
        ("ivf:lists=many", "give ivf:lists=NUMBER"),
        ("ivf:lists=301", "search: lists: 301 is not allowed; give 1 to 300, the words"),
    ],
)
def test_searches_of_no_use(tmp_path: Path, vectors: np.ndarray, search: str, message: str) -> None:
    assert message in refusal(tmp_path, search=search)


def test_lists_without_vectors_are_refused(tmp_path: Path, vectors: np.ndarray) -> None:
    # And a file's own lists are left out with its vectors. Kills: lists of vectors that are gone.
    assert "give `search` or `only`, not both" in refusal(
        tmp_path, search="ivf:lists=3", only="codes"
    )
    faiss().write_index(ivf(vectors), str(tmp_path / "v.faiss"))
    made = open_index(str(build(tmp_path, "v.faiss", only="codes")))
    assert (made.manifest.parts, made.manifest.search) == (("codes",), None)


def test_a_seed_that_faiss_does_not_take(tmp_path: Path, vectors: np.ndarray) -> None:
    assert "seed: 2147483648 is not allowed" in refusal(tmp_path, search="ivf:lists=3", seed=2**31)


def test_lists_of_other_vectors_are_refused(tmp_path: Path, vectors: np.ndarray) -> None:
    # By the digest of the vectors that they were made of, by number and size; and what is damaged.
    made = build(tmp_path, search="ivf:lists=12")
    manifest = json.loads((made / "manifest.json").read_text())

    def refused(change: dict[str, Any]) -> str:
        search = manifest["search"] | change
        (made / "manifest.json").write_text(json.dumps(manifest | {"search": search}))
        with pytest.raises(ArtefactError) as raised:
            open_index(str(made))
        return str(raised.value)

    for change in ({"vectors": "0" * 64}, {"lists": "many"}, {"lists": 0}, {"note": 1}):
        assert "search.faiss of other vectors than its own" in refused(change)
    (made / "manifest.json").write_text(json.dumps(manifest))
    (made / "search.faiss").write_bytes((made / "search.faiss").read_bytes()[:-1])
    with pytest.raises(ArtefactError, match=r"is damaged: search\.faiss"):
        open_index(str(made))
