"""A word index on disk: what is read is what was written, or it is refused with a reason."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from manifests import PRIVATE, digest_of, edit
from small_indexes import FILES, WORDS, manifest, random_index, refusal, write

from quietcorpus.indexes.folder import ArtefactError
from quietcorpus.indexes.tokens.tokenizer import tokenize
from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.indexes.words.manifest import Part
from quietcorpus.indexes.words.word_index import WordIndex, open_index, save
from quietcorpus.indexes.words.word_table import WordTable


@pytest.fixture(scope="module", params=FILES, ids=["format 1", "format 2"])
def version(request: pytest.FixtureRequest) -> int:
    """Each version of the format that can be read."""
    return int(request.param)


@pytest.fixture(scope="module")
def original(version: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of random vectors and codes."""
    return random_index(tmp_path_factory.mktemp("indexes") / "index", version)


@pytest.fixture
def folder(tmp_path: Path, original: Path) -> Path:
    """A copy that a test may spoil."""
    return shutil.copytree(original, tmp_path / "index")


def test_what_was_saved_is_opened(version: int, tmp_path: Path) -> None:
    random = np.random.default_rng()
    vectors = random.normal(size=(len(WORDS), 3)).astype(np.float32)
    codes = random.integers(0, 1 << 64, (len(WORDS), 2), dtype=np.uint64)
    # Kills: arrays that are written as they lie in memory, transposed or strided.
    strided = np.repeat(codes, 2, axis=1)[:, ::2]
    made = WordIndex(manifest(**PRIVATE), Vocabulary(WORDS), np.asfortranarray(vectors), strided)
    write(tmp_path, version, made)
    index = open_index(str(tmp_path), digest_of(tmp_path))
    files = FILES[version]
    assert [file["path"] for file in index.manifest.files] == files
    expected = replace(manifest(**PRIVATE), version=version, files=index.manifest.files)
    assert index.manifest == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*files, "manifest.json"])
    assert index.vocabulary.terms.to_pylist() == WORDS
    assert (index.vectors == vectors).all()
    assert (index.codes == codes).all()
    assert (index.vectors.dtype, index.codes.dtype) == (np.float32, np.uint64)


def test_the_stored_vocabulary_looks_up_like_the_one_it_was_made_from(original: Path) -> None:
    tokens = tokenize(
        pa.array(["Quiet NAÏVE hasn\u2019t hasn't", "alph alphaa", "", "world gamma"])
    )
    mapped = open_index(str(original)).vocabulary
    for unknown in (False, True):
        found = mapped.look_up(tokens, unknown=unknown)
        expected = Vocabulary(WORDS).look_up(tokens, unknown=unknown)
        assert all((a == b).all() for a, b in zip(found, expected, strict=True))
    assert len(mapped.look_up(tokens)[1]) == 6


def test_an_index_is_mapped_and_cannot_be_changed(original: Path) -> None:
    # Kills: a copy of the vectors in every worker's memory.
    gc.collect()  # or what earlier tests left goes in the middle of this one
    before = pa.total_allocated_bytes()
    index = open_index(str(original))

    def file_of(array: npt.NDArray[Any]) -> str:
        while not isinstance(array, np.memmap):
            assert isinstance(array.base, np.ndarray)
            array = array.base
        assert array.filename is not None
        return Path(array.filename).name

    held = {"vectors.npy": index.vectors, "codes.npy": index.codes}
    match index.vocabulary:
        case Vocabulary() as words:
            held["slots.npy"] = words.slots
        case WordTable() as table:
            held |= {"words.npy": table.words, "order.npy": table.order}
    for name, array in held.items():
        assert file_of(array) == name
        assert not array.flags.writeable
    assert pa.total_allocated_bytes() - before < 1 << 20


def test_a_file_that_is_listed_twice_is_refused(folder: Path) -> None:
    edit(folder, lambda m: m["files"].append(m["files"][0]))
    refusal(folder)


@pytest.mark.parametrize(
    "path", ["../../etc/passwd", "/etc/passwd", "manifest.json", "x/vectors.npy"]
)
def test_a_manifest_names_no_file_but_an_indexs(folder: Path, version: int, path: str) -> None:
    edit(folder, lambda m: m["files"].append(m["files"][0] | {"path": path}))
    names = {1: "words.arrow, slots.npy, vectors.npy, codes.npy"}
    names[2] = "words.npy, order.npy, codes.npy"
    assert f"does not list each of {names[version]} once" in refusal(folder)


def test_the_files_of_one_format_are_not_read_as_the_others(folder: Path, version: int) -> None:
    # Kills: files that are looked for whatever the version says.
    edit(folder, lambda m: m.update(version=3 - version))
    assert "does not list each of words." in refusal(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(words=8), "holds files of other sizes than its manifest.json says"),
        (lambda m: m.update(dimensions=2), "holds files of other sizes than its manifest.json"),
        (lambda m: m.update(bits=64), "holds files of other sizes than its manifest.json says"),
        (lambda m: m.update(bits=129), "has a manifest.json with values that no index has"),
        (lambda m: m.update(tokenizer="bpe"), "was made for the tokenizer 'bpe'"),
    ],
)
def test_manifests_that_are_refused(
    folder: Path, change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    edit(folder, change)
    found = refusal(folder)
    assert found.startswith(message)


# An index of which only some files are there, or are needed.


@pytest.mark.parametrize(("part", "other"), [("vectors", "codes"), ("codes", "vectors")])
def test_only_what_is_needed_is_looked_at(folder: Path, part: Part, other: Part) -> None:
    # Kills: verifying, or mapping, every file that the manifest lists.
    whole = open_index(str(folder))
    (folder / f"{other}.npy").unlink()
    index = open_index(str(folder), digest_of(folder), (part,))
    assert (getattr(index, part) == getattr(whole, part)).all()
    assert index.manifest == whole.manifest
    with pytest.raises(ArtefactError, match=f"was opened without its {other}"):
        getattr(index, other)
    assert refusal(folder) == f"lacks {other}.npy, or it cannot be read"


@pytest.mark.parametrize("part", ["vectors", "codes"])
def test_each_file_that_is_needed_is_verified(folder: Path, version: int, part: Part) -> None:
    # Kills: a part that is opened without the files of the words, or unverified.
    for name in (*FILES[version][:2], f"{part}.npy"):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(ArtefactError, match=f"^is damaged: {name} is not the file that"):
            open_index(str(folder), None, (part,))
        (folder / name).write_bytes(content)
    open_index(str(folder), None, (part,))


def test_an_index_of_codes_alone(tmp_path: Path) -> None:
    codes = np.random.default_rng().integers(0, 1 << 64, (len(WORDS), 2), dtype=np.uint64)
    saved = save(str(tmp_path), manifest(), Vocabulary(WORDS), None, codes)
    names = ["codes.npy", "manifest.json", "order.npy", "words.npy"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert saved.parts == ("codes",)
    for parts in (None, ("codes",)):
        assert (open_index(str(tmp_path), None, parts).codes == codes).all()
    # Kills: vectors that somebody has laid beside it, and that no digest stands for.
    np.save(tmp_path / "vectors.npy", np.ones((len(WORDS), 3), np.float32))
    with pytest.raises(ArtefactError) as raised:
        open_index(str(tmp_path), None, ("vectors",))
    assert str(raised.value) == (
        "has no vectors, for it was built with `--only codes`: use the mechanism brr, or build an "
        "index without that option"
    )
