"""Verification: every change to a release is caught, and named."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tampering import DATA, add, edit_card, flip, rewrite

from quietcorpus.pipelines.card.verify import verify
from quietcorpus.transforms.errors import InputError

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.fixture(scope="module")
def original(
    tmp_path_factory: pytest.TempPathFactory, new_workspace: Callable[[Path], Workspace]
) -> Path:
    """A release with every kind of file."""
    workspace = new_workspace(tmp_path_factory.mktemp("release"))
    workspace.json_lines([{"text": "quiet world", "product": "loan"}] * 40)
    workspace.release(
        {
            "input.keep": ["product"],
            "mechanism.compression": {"method": "frequency", "size": 2},
            "mechanism.histogram_epsilon": 1,
        }
    )
    return workspace.output


@pytest.fixture
def release(tmp_path: Path, original: Path) -> Path:
    """A copy that a test may spoil."""
    return shutil.copytree(original, tmp_path / "released" / "out")


def edit_rows(release: Path) -> None:
    table = pq.read_table(release / DATA)
    pq.write_table(pa.concat_tables([table.slice(1), table.slice(0, 1)]), release / DATA)


TAMPERINGS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "data byte": (lambda r: flip(r, DATA), f"{DATA}: not the file that release.json describes"),
    "vocabulary byte": (
        lambda r: flip(r, "vocabulary.parquet"),
        "vocabulary.parquet: not the file that release.json describes",
    ),
    "map byte": (
        lambda r: flip(r, "compression.parquet"),
        "compression.parquet: not the file that release.json describes",
    ),
    "missing data": (lambda r: (r / DATA).unlink(), f"{DATA}: missing or unreadable, though"),
    "missing map": (lambda r: (r / "compression.parquet").unlink(), "missing or unreadable"),
    "extra data": (
        lambda r: add(r, "data/part-00001-of-00001.parquet"),
        "part-00001-of-00001.parquet: not part of the release",
    ),
    "extra file": (lambda r: add(r, "notes.txt"), "notes.txt: not part of the release"),
    "extra hidden file": (lambda r: add(r, "data/.raw"), "data/.raw: not part of the release"),
    "extra folder": (lambda r: add(r, "a/b/raw.csv"), "a/b/raw.csv: not part of the release"),
    "edited rows": (edit_rows, f"{DATA}: not the file that release.json describes"),
    "extra column": (
        lambda r: rewrite(r, DATA, lambda t: t.append_column("text", t["id"])),
        f"{DATA}: columns that release.json does not account for: text",
    ),
    "extra vocabulary column": (
        lambda r: rewrite(r, "vocabulary.parquet", lambda t: t.append_column("n", t["weight"])),
        "vocabulary.parquet: columns that release.json does not account for: n",
    ),
    "lost column": (
        lambda r: rewrite(r, DATA, lambda t: t.drop_columns("counts")),
        f"{DATA}: columns that release.json does not account for: counts",
    ),
    "lost id": (
        lambda r: rewrite(r, DATA, lambda t: t.drop_columns("id")),
        f"{DATA}: columns that release.json does not account for: id",
    ),
    "lost kept column": (
        lambda r: rewrite(r, DATA, lambda t: t.drop_columns("product")),
        f"{DATA}: columns that release.json does not account for: product",
    ),
    "a column that was never there": (
        lambda r: edit_card(r, lambda card: card["columns"].append("case")),
        f"{DATA}: columns that release.json does not account for: case",
    ),
    "an id of no column": (
        lambda r: edit_card(r, lambda card: card["columns"].append("id")),
        "release.json: columns: it does not say which of the input's is copied as id",
    ),
    "the column of fresh ids": (
        lambda r: edit_card(r, lambda card: card.update(id_column="case")),
        "release.json: columns: it does not say which of the input's is copied as id",
    ),
    "fewer rows": (lambda r: rewrite(r, DATA, lambda t: t.slice(3)), "37 rows, but release.json"),
    "no Parquet": (
        lambda r: (
            (r / DATA).write_bytes(b"PAR1xPAR1"),
            edit_card(
                r,
                lambda card: next(f for f in card["files"] if f["path"] == DATA).update(
                    sha256=hashlib.sha256(b"PAR1xPAR1").hexdigest()
                ),
            ),
        ),
        f"{DATA}: not a Parquet file",
    ),
    "unlisted data": (
        lambda r: edit_card(r, lambda card: card["files"].pop(0)),
        "not part of the release; release.json lists no such file",
    ),
    "strange path": (
        lambda r: edit_card(r, lambda card: card["files"][0].update(path="../out/" + DATA)),
        "is not a plain path",
    ),
    "edited README": (lambda r: flip(r, "README.md"), "README.md: "),
    "missing README": (lambda r: (r / "README.md").unlink(), "README.md: "),
    "smaller epsilon in the guarantee": (
        lambda r: edit_card(r, lambda c: c["guarantee"]["parameters"].update(epsilon=0.5)),
        "release.json: ",
    ),
    "smaller epsilon in the total": (
        lambda r: edit_card(r, lambda c: c["budget"]["total"].update(epsilon_exact="1/2")),
        "release.json: ",
    ),
    "smaller epsilon in a stage": (
        lambda r: edit_card(
            r, lambda c: c["budget"]["stages"][0]["parameters"].update(epsilon_exact="1/100")
        ),
        "release.json: ",
    ),
    "no card": (lambda r: (r / "release.json").unlink(), "no release here: release.json is missi"),
    "no JSON": (lambda r: (r / "release.json").write_text("{"), "not a release card of version 1"),
    "unknown field": (
        lambda r: edit_card(r, lambda card: card.update(note="x")),
        "release.json: not a release card of version 1: note: ",
    ),
    "other version": (
        lambda r: edit_card(r, lambda card: card.update(schema_version=2)),
        "release.json: not a release card of version 1: schema_version: ",
    ),
}


def test_an_untouched_release_passes(release: Path) -> None:
    card = verify(str(release))
    assert {file.path for file in card.files} == {DATA, "vocabulary.parquet", "compression.parquet"}
    verify(f"{release}/")


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_tampering_is_caught(release: Path, tampering: str) -> None:
    change, message = TAMPERINGS[tampering]
    change(release)
    with pytest.raises(InputError) as raised:
        verify(str(release))
    assert message in str(raised.value)
    assert str(raised.value).startswith(str(release))
    assert "\n" not in str(raised.value)


def test_the_command_fails_with_one_line(workspace: Workspace, original: Path) -> None:
    release = shutil.copytree(original, workspace.output)
    flip(release, DATA)
    done = workspace.run("verify", "released/out")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"quietcorpus: error: {release}/{DATA}: not the file")
    assert done.stderr.count("\n") == 1
    flip(release, DATA)
    done = workspace.run("verify", "released/out")
    assert done.returncode == 0
    assert done.stdout.startswith("verified  released/out: 3 files are as release.json says")
    done = workspace.run("verify", "released")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no release here" in done.stderr
