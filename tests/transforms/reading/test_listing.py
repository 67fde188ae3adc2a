"""A place names files as a shell and Spark have it: no hidden ones, no markers, none of a table."""

from __future__ import annotations

import glob
import logging
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.reading.first_values import first_values
from quietcorpus.transforms.reading.listing import base, listed
from quietcorpus.transforms.reading.sources import plan


def made(folder: Path, *names: str) -> str:
    """Make files of one text each, and their folders; where they are."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text of a person\n")
    return str(folder)


def found(pattern: str) -> list[str]:
    return [metadata.path for metadata in listed(pattern).files]


def refusal(pattern: str) -> str:
    with pytest.raises(InputError) as raised:
        listed(pattern)
    assert "\n" not in str(raised.value)
    return str(raised.value)


HIDDEN = (
    ".b.txt",
    "_c.txt",
    "_temporary/0/x.txt",
    "_change_data/x.txt",
    ".ipynb_checkpoints/x.txt",
    "__MACOSX/._x.txt",
    "a/.x.txt",
    "a/_b/x.txt",
    "_day/x=1.txt",
    "_SUCCESS",
    "_committed_17",
    "_common_metadata",
    ".part-0.txt.crc",
    ".DS_Store",
    "cache-0123456789abcdef.arrow",
    "cache-0123456789abcdef_00001_of_00002.arrow",
)
SHOWN = ("b.txt", "a/x.txt", "_day=1/x.txt", "a_b/c.d_e.txt", "=/x.txt", "cache-01.arrow")


@pytest.mark.parametrize("name", HIDDEN)
def test_no_wildcard_matches_what_is_hidden(tmp_path: Path, name: str) -> None:
    # Kills: documents of a run that failed, of a change log, or that an editor keeps; a count that
    # leaves files out; markers that end a run though every writer leaves them.
    folder = made(tmp_path, "b.txt", name)
    assert listed(f"{folder}/**").files == listed(f"{folder}/b.txt").files
    assert listed(f"{folder}/**").skipped == 1
    assert found(f"{folder}/**/*") == [f"{folder}/b.txt"]
    # What is written out is meant.
    assert found(f"{folder}/{name}") == [f"{folder}/{name}"]
    each = "/".join(f"{part[:7]}*" for part in name.split("/"))
    assert found(f"{folder}/{each}") == [f"{folder}/{name}"]


def test_all_other_names_are_matched(tmp_path: Path) -> None:
    # Kills: a rule for every `_`, wherever it stands; Hive's partitions `_day=1` that vanish.
    folder = made(tmp_path, *SHOWN)
    assert found(f"{folder}/**") == sorted(f"{folder}/{name}" for name in SHOWN)
    # A folder above the glob may have any name.
    within = made(tmp_path / "_a" / ".b", "x.txt")
    assert found(f"{within}/*") == [f"{within}/x.txt"]
    assert found(f"{tmp_path}/_a/.*/*.txt") == [f"{within}/x.txt"]


def test_what_is_left_out_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = made(tmp_path, "b.txt", "_SUCCESS", ".b.txt.crc")
    with caplog.at_level(logging.INFO, "quietcorpus.reading"):
        assert len(plan(Corpus(f"{folder}/*")).splits) == 1
    assert caplog.messages == [
        f"input.path: 2 of 3 files that match {folder}/* are hidden or markers, and are not read"
    ]
    assert [one.name for one in first_values(f"{folder}/*", 9)] == ["text"]
    (tmp_path / "b.txt").unlink()
    assert refusal(f"{folder}/*").startswith(
        f"input.path: {folder}/* matches no file but 2 that ar"
    )


NAMES = st.text("ab[.-", min_size=1, max_size=3).filter(lambda name: name not in (".", ".."))
PARTS = st.sampled_from(
    ["*", "?", "**", "a", "b*", "*a", "[ab]", "[!a]*", "[[]*", ".*", "?b", "*.*"]
)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(NAMES, min_size=1, max_size=3).map("/".join), min_size=1, max_size=6),
    st.lists(PARTS, min_size=1, max_size=3).map("/".join),
)
def test_globs_are_pythons(names: list[str], pattern: str) -> None:
    # Kills: `**/` that needs a folder, `?` and sets that match a slash, hidden names that match.
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            path = Path(folder) / name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("x")
            except OSError:  # a file and a folder of one name
                continue
        expected = glob.glob(f"{folder}/{pattern}", recursive=True)
        files = sorted({os.path.normpath(one) for one in expected if os.path.isfile(one)})
        try:
            assert found(f"{folder}/{pattern}") == files
        except InputError:
            assert files == [] or "[" in pattern


TABLES = {
    "Delta": ("a Delta table", ("_delta_log/00000000000000000000.json",)),
    "Delta, after a checkpoint": ("a Delta table", ("_delta_log/_last_checkpoint",)),
    "Iceberg": ("an Iceberg table", ("metadata/00000-1f.metadata.json", "metadata/snap-1.avro")),
    "Iceberg, by Hadoop": ("an Iceberg table", ("metadata/v1.gz.metadata.json",)),
    "Hudi": ("a Hudi table", (".hoodie/hoodie.properties",)),
    "Paimon": ("a Paimon table", ("snapshot/LATEST", "snapshot/snapshot-1")),
    "Spark's streams": ("the output of a Spark stream", ("_spark_metadata/0",)),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    "place",
    ["/*.txt", "/**", "/**/*.txt", "/day=1/*.txt", "/day=1/x.txt", "/x.txt", "", "/d*/*.txt"],
)
def test_a_table_is_refused(tmp_path: Path, name: str, place: str) -> None:
    # Kills: the files of rows that were deleted, which may be of people who asked for that.
    kind, markers = TABLES[name]
    folder = made(tmp_path / "lake" / "table", "x.txt", "day=1/x.txt", *markers)
    said = f"input.path: {folder} is {kind}: its files also hold rows that were deleted"
    assert refusal(f"{folder}{place}").startswith(said)
    assert refusal(f"{tmp_path}/*/t*/x.txt").startswith(said)


@pytest.mark.parametrize("name", TABLES)
def test_what_lies_beside_a_table_is_read(tmp_path: Path, name: str) -> None:
    # Kills: a marker that counts for its whole neighbourhood; a folder that is merely called so.
    _, markers = TABLES[name]
    folder = made(tmp_path, "in/x.txt", "x.txt", *(f"in/table/{marker}" for marker in markers))
    made(tmp_path, "metadata/x.txt", "in/snapshot/x.txt", "_delta_log_of_mine/x.txt")
    assert found(f"{folder}/in/*.txt") == [f"{folder}/in/x.txt"]
    assert len(found(f"{folder}/*/*.txt")) == 2
    assert found(f"{folder}/metadata/x.txt") == [f"{folder}/metadata/x.txt"]


def test_brackets_in_names(tmp_path: Path) -> None:
    # Kills: a name that no way of writing reaches; a set of characters that a folder's name undoes.
    folder = made(tmp_path / "of [old]", "a [1].txt", "b1.txt", "b2.txt", "c[.txt")
    assert found(f"{folder}/a [1].txt") == found(f"{folder}/a [[]1].txt") == [f"{folder}/a [1].txt"]
    assert found(f"{folder}/b[12].txt") == [f"{folder}/b1.txt", f"{folder}/b2.txt"]
    assert found(f"{folder}/c[.txt") == found(f"{folder}/[c]*") == [f"{folder}/c[.txt"]
    assert base(f"{folder}/b[12].txt") == base(f"{folder}/*") == folder
    assert base(f"{folder}/a [1].txt") == f"{folder}/a [1].txt"
    assert refusal(f"{folder}/d[12].txt").endswith(
        f"; if its brackets are parts of names, write {folder.replace('[', '[[]')}/d[[]12].txt"
    )
    made(tmp_path / "of [old]", "b[12].txt")
    assert refusal(f"{folder}/b[12].txt").endswith(
        f"as a glob it matches {folder}/b1.txt; write [[] for a bracket to mean the file"
    )
    assert "brackets that are no set of characters" in refusal(f"{folder}/[z-a]*")


@pytest.mark.parametrize(
    ("names", "glob_of_all"),
    [
        (("part-0.txt", "part-1.txt", "_SUCCESS", ".part-0.txt.crc"), "/*.txt"),
        (("part-0.csv.gz", "part-1.csv.gz", "README.md"), "/*.csv.gz"),
        (("day=1/x.txt", "day=2/x.txt", "_SUCCESS"), "/**/*.txt"),
        (("a.jsonl", "b.jsonl", "notes.txt"), "/*.jsonl"),
    ],
)
def test_the_advice_for_a_folder_works(
    tmp_path: Path, names: tuple[str, ...], glob_of_all: str
) -> None:
    # Kills: advice that leads into an error about a marker, or to what is not the corpus.
    folder = made(tmp_path, *names)
    said = refusal(folder)
    assert said == f"input.path: {folder} is a folder; give a glob, such as {folder}{glob_of_all}"
    assert len(listed(said.rpartition(" ")[2]).files) == 2


def test_a_folder_without_files_to_read(tmp_path: Path) -> None:
    folder = made(tmp_path, "_SUCCESS", "x.orc")
    assert refusal(folder) == f"input.path: {folder} is a folder without files of a known format"
