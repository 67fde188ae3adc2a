"""Verification of the files of word embeddings: what is changed is caught in every form of the
vectors, also where somebody covers it up."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from embedding_releases import FILES
from tampering import add, cover_up, edit_card, edit_index, flip, refused, rewrite

from quietcorpus.pipelines.card.verify import verify

Change = Callable[[Path], Any]


def change_column(table: pa.Table) -> pa.Table:
    vectors = np.array(table["vector"].to_pylist(), dtype=np.float32)
    vectors[3, 2] = np.nextafter(vectors[3, 2], np.float32(np.inf))
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    return table.set_column(1, "vector", column)


def change_text(release: Path) -> None:
    lines = (release / "vectors.txt").read_text().splitlines()
    word, first, *others = lines[5].split(" ")
    lines[5] = " ".join([word, str(np.nextafter(np.float32(first), np.float32(9))), *others])
    cover_up(release, "vectors.txt", ("\n".join(lines) + "\n").encode())


def change_binary(release: Path) -> None:
    content = bytearray((release / "vectors.bin").read_bytes())
    content[-2] ^= 1  # the last vector's last bytes, and a line end
    cover_up(release, "vectors.bin", bytes(content))


def change_index(release: Path, name: str = "vectors.npy", at: int = -2) -> None:
    """Another vector in the index, whose manifest has the digest of it."""
    content = bytearray((release / "index" / name).read_bytes())
    content[at] ^= 1
    cover_up(release, f"index/{name}", bytes(content))
    entry = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    edit_index(release, lambda m: next(f for f in m["files"] if f["path"] == name).update(entry))


def exchange_words(release: Path) -> None:
    """Two words that have each other's vectors, in the binary form."""
    content = (release / "vectors.txt").read_text().splitlines()
    (one, ones), (two, twos) = (line.split(" ", 1) for line in content[1:3])
    content[1:3] = [f"{two} {ones}", f"{one} {twos}"]
    cover_up(release, "vectors.txt", ("\n".join(content) + "\n").encode())


def remove(release: Path, path: str) -> None:
    (release / path).unlink()
    edit_card(
        release, lambda card: card.update(files=[f for f in card["files"] if f["path"] != path])
    )


FORMS: dict[str, tuple[Change, str]] = {
    "Parquet": (lambda r: rewrite(r, "vectors.parquet", change_column), "not the words and vec"),
    "text": (change_text, "vectors.txt: not the words and vectors of vectors.parquet"),
    "binary": (change_binary, "vectors.bin: not the words and vectors of vectors.parquet"),
    "index": (change_index, "index: not the words and vectors of vectors.parquet"),
    "words": (exchange_words, "vectors.txt: not the words and vectors of vectors.parquet"),
    "vocabulary": (
        lambda r: rewrite(r, "vocabulary.parquet", lambda t: t.slice(0, 0)),
        "vocabulary.parquet: ",
    ),
    "no text": (
        lambda r: cover_up(r, "vectors.txt", b"2 2\nthe 1\n"),
        "vectors.txt: ",
    ),
    "one word less": (
        lambda r: cover_up(
            r, "vectors.txt", b"\n".join((r / "vectors.txt").read_bytes().split(b"\n")[:-2])
        ),
        "vectors.txt: ",
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_that_do_not_agree(copy: Callable[[str], Path], form: str) -> None:
    # Kills: a form that nobody compares. The digests on the card are those of the changed files.
    change, message = FORMS[form]
    release = copy("sgd")
    change(release)
    assert message in refused(release)


@pytest.mark.parametrize("path", sorted(FILES))
def test_what_is_missing_or_changed(copy: Callable[[str], Path], path: str) -> None:
    release = copy("sgd")
    content = (release / path).read_bytes()
    flip(release, path)
    assert f"{path}: not the file that release.json describes" in refused(release)
    (release / path).unlink()
    assert f"{path}: missing or unreadable, though release.json lists it" in refused(release)
    (release / path).write_bytes(content)
    verify(str(release))
    # Kills: a form that is left out by somebody who tells nobody.
    remove(release, path)
    assert path.partition("/")[0] in refused(release)


def test_what_does_not_belong(copy: Callable[[str], Path]) -> None:
    # Kills: the pipeline's own files in a release.
    release = copy("sgd")
    add(release, "training/part-00000-of-00001.parquet.sealed")
    assert "not part of the release" in refused(release)
    digest = hashlib.sha256(b"x").hexdigest()
    entry = {"path": "training/part-00000-of-00001.parquet.sealed", "sha256": digest, "rows": 0}
    edit_card(release, lambda card: card["files"].append(entry))
    assert "training/part-00000" in refused(release)


@pytest.mark.parametrize("path", ["index/notes.txt", "index/raw.parquet", "vectors.txt.gz"])
def test_what_a_card_lists_and_does_not_belong(copy: Callable[[str], Path], path: str) -> None:
    # Kills: a name that begins like one of the forms', under which anything may be published.
    release = copy("sgd")
    add(release, path)
    digest = hashlib.sha256(b"x").hexdigest()
    entry = {"path": path, "sha256": digest, "rows": 1}
    edit_card(release, lambda card: card["files"].append(entry))
    assert path in refused(release)


INDEXES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "public": lambda m: m.update(provenance="public", guarantee=None),
    "public, with a guarantee": lambda m: m.update(provenance="public"),
    "cheaper": lambda m: m["guarantee"]["parameters"].update(epsilon=1.0, epsilon_exact="1"),
    "of another statement": lambda m: m["guarantee"].update(statement="It cost nothing."),
    "of another unit": lambda m: m["guarantee"].update(unit="one word"),
    "of no groups": lambda m: m["guarantee"]["parameters"].update(groups=[]),
}


@pytest.mark.parametrize("fault", INDEXES)
def test_an_index_that_does_not_tell_its_cost(copy: Callable[[str], Path], fault: str) -> None:
    # Kills: an index that a release of text takes for cheaper than it is.
    release = copy("sgd")
    edit_index(release, INDEXES[fault])
    assert "index" in refused(release)


def test_columns_that_are_none(copy: Callable[[str], Path]) -> None:
    # Kills: a column beside the vectors, or none of them.
    release = copy("cooccurrence")
    rewrite(release, "vectors.parquet", lambda t: t.append_column("users", t["word"]))
    assert "columns that release.json does not account for: users" in refused(release)
    table = pq.read_table(release / "vectors.parquet").drop_columns(["users", "vector"])
    pq.write_table(table, release / "vectors.parquet")
    cover_up(release, "vectors.parquet", (release / "vectors.parquet").read_bytes())
    assert "columns that release.json does not account for: vector" in refused(release)
