"""The rules for every artefact's folder, whatever lies in it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from quietcorpus.indexes import folder
from quietcorpus.indexes.folder import ArtefactError

CONTENT = {"format": "quietcorpus-things", "version": 3, "provenance": "public", "things": 2}
KEYS = ["version", "provenance", "things"]


def parsed(**changes: Any) -> dict[str, Any]:
    text = json.dumps(CONTENT | changes)
    return folder.parse(text, "quietcorpus-things", (2, 3), KEYS, noun="a heap", source="pebbles")


def test_a_manifest_of_the_format() -> None:
    for version in (2, 3):
        assert parsed(version=version) == {"version": version, "provenance": "public", "things": 2}


@pytest.mark.parametrize("name", ["quietcorpus-index", "quietcorpus-thing", "", None, 3])
def test_a_manifest_of_another_format(name: object) -> None:
    # Kills: candidates taken for an index, or the reverse, wherever their keys agree.
    with pytest.raises(ArtefactError) as raised:
        parsed(format=name)
    assert str(raised.value) == "has a manifest.json that is not one of a heap; build it again"


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (1, "an older version (us 2, format 1; this one reads format 2 or 3): build it again"),
        (-1, "an older version (us 2, format -1; this one reads format 2 or 3): build it again"),
        (4, "a newer version (us 2, format 4; this one reads up to 3): update quietcorpus"),
    ],
)
def test_a_format_reads_no_other_version(version: int, message: str) -> None:
    # Kills: the remedy of a newer version for an older one, which no update can read.
    with pytest.raises(ArtefactError) as raised:
        parsed(version=version, builder="us 2")
    assert str(raised.value) == f"was built by {message}"


@pytest.mark.parametrize("version", ["3", 3.0, 2.5, None, [3], True])
def test_a_version_that_is_no_number(version: object) -> None:
    # Kills: a comparison that raises, or that takes 3.0 for 3.
    with pytest.raises(ArtefactError, match=r"manifest\.json that is not one of a heap; build"):
        parsed(version=version)


def test_errors_name_what_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match=r"--guarantee, or from public pebbles$"):
        parsed(provenance="private")
    with pytest.raises(
        ArtefactError, match=r"^is not a heap: it has no manifest\.json that can be"
    ):
        folder.read_manifest(str(tmp_path), "a heap")


def test_files_are_described_and_verified(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"alpha")
    (tmp_path / "b.txt").write_bytes(b"")
    files = folder.described(str(tmp_path), ["b.txt", "a.txt"])
    assert files == (
        {"path": "b.txt", "bytes": 0, "sha256": hashlib.sha256(b"").hexdigest()},
        {"path": "a.txt", "bytes": 5, "sha256": hashlib.sha256(b"alpha").hexdigest()},
    )
    folder.verify(str(tmp_path), files)
    (tmp_path / "b.txt").write_bytes(b"b")
    with pytest.raises(ArtefactError, match=r"^is damaged: b\.txt is not the file"):
        folder.verify(str(tmp_path), files)


@pytest.mark.parametrize("name", ["a", "a.txt", "part-00001.arrow", "_A.b-c"])
def test_plain_names(name: str) -> None:
    assert folder.plain_names([{"path": name}, {"path": "b"}]) == [name, "b"]
    folder.check_listed([{"path": name}, {"path": "b"}], ["b", name])


@pytest.mark.parametrize(
    "path",
    ["", ".", "..", "/a", "a/b", "../a", "a/", ".a", "-a", "a\0b", "a\n", "a*", "manifest.json"],
)
def test_names_that_are_not_plain(tmp_path: Path, path: str) -> None:
    # Kills: fetching a file to wherever a manifest says, or over the manifest that was checked.
    files = [{"path": path, "bytes": 0, "sha256": ""}]
    with pytest.raises(ArtefactError, match="lists files by other than plain names; build it aga"):
        folder.plain_names(files)
    with pytest.raises(ArtefactError, match="lists files by other than plain names"):
        folder.verify(str(tmp_path), files)
    with pytest.raises(ArtefactError, match="that does not list each of"):
        folder.check_listed(files, [path])


@pytest.mark.parametrize("files", [None, 3, "x", {"x": 1}, [{}], ["x"], [{"path": None}], [[]]])
def test_lists_of_something_else(files: object) -> None:
    with pytest.raises(ArtefactError, match="lists files by other than plain names"):
        folder.plain_names(files)
    with pytest.raises(ArtefactError, match="that does not list each of a, b once; build it again"):
        folder.check_listed(files, ["a", "b"])
