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
        "release.json: files: compression.parquet is missing",
    ),
    "strange path": (
        lambda r: edit_card(r, lambda card: card["files"][0].update(path="../out/" + DATA)),
        "is not a plain path",
    ),
    "edited page": (lambda r: flip(r, "page.html"), "page.html: "),
    "missing page": (lambda r: (r / "page.html").unlink(), "page.html: missing"),
    "a page that the card does not list": (
        lambda r: edit_card(r, lambda card: card.pop("page_sha256")),
        "release.json: page_sha256: not what a release of this kind states there",
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
    "a smaller decimal in a stage": (
        lambda r: edit_card(
            r, lambda c: c["budget"]["stages"][-1]["parameters"].update(epsilon=0.01)
        ),
        "release.json: budget: the decimals of a stage are not its rationals",
    ),
    "a smaller decimal of delta in a stage": (
        lambda r: edit_card(r, lambda c: c["budget"]["stages"][0]["parameters"].update(delta=0.5)),
        "release.json: budget: the decimals of a stage are not its rationals",
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


def mechanism(**values: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda card: card["mechanism"].update(values)


# What the mechanism's block of a card may say otherwise, and what is said to that.
OF_BAGS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "epsilon": (mechanism(epsilon=0.5), "mechanism: epsilon is not the budget's"),
    "precision": (mechanism(precision=7), "mechanism: precision is not the budget's"),
    "accounting": (mechanism(accounting="per-entry"), "mechanism: epsilon is not the budget's"),
    "histogram_epsilon": (
        mechanism(histogram_epsilon=0.5),
        "mechanism: histogram_epsilon is not the budget's",
    ),
    "no histogram": (
        lambda card: card["mechanism"].pop("histogram_epsilon"),
        "mechanism: histogram_epsilon: missing; the terms of a bin are drawn by the private "
        "histogram, so give its epsilon (or compression: {method: none})",
    ),
    "noise_rate": (mechanism(noise_rate="1/100"), "mechanism: noise_rate is not the budget's"),
    "no rate": (mechanism(noise_rate="0"), "mechanism: noise_rate is not the budget's"),
    "bins": (mechanism(bins=3), "mechanism: bins is not the size of the compression map"),
    "no vocabulary": (
        mechanism(vocabulary_size=0),
        "mechanism: vocabulary_size is not the number of terms",
    ),
    "a private vocabulary": (
        mechanism(vocabulary={"private": {"epsilon": 1.0, "delta": 1e-8}}),
        "artefacts: not those that the mechanism names",
    ),
    "a vocabulary of neither kind": (
        mechanism(vocabulary={"private": 1}),
        "mechanism: vocabulary.private: expected a mapping, got 1; give the keys epsilon, delta",
    ),
    "another stage": (
        lambda card: card["budget"]["stages"][-1].update(stage="histogram"),
        "budget: its stages are not the mechanism's",
    ),
}


@pytest.mark.parametrize("change", OF_BAGS)
def test_numbers_of_the_mechanism_are_the_budgets(release: Path, change: str) -> None:
    edit, message = OF_BAGS[change]
    edit_card(release, edit)
    with pytest.raises(InputError) as raised:
        verify(str(release))
    assert str(raised.value) == f"{release}/release.json: {message}"


OF_A_HISTOGRAM: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "epsilon": (mechanism(epsilon=0.5), "mechanism: epsilon is not the budget's"),
    "precision": (mechanism(precision=2), "mechanism: precision is not the budget's"),
    "a cheaper vocabulary": (
        lambda card: card["mechanism"]["vocabulary"]["private"].update(epsilon=1.0),
        "budget: the vocabulary's cost is not the mechanism's",
    ),
    "a smaller delta": (
        lambda card: card["mechanism"]["vocabulary"]["private"].update(delta=1e-9),
        "budget: the vocabulary's cost is not the mechanism's",
    ),
    "a public vocabulary": (
        mechanism(vocabulary={"public": "words.txt"}),
        "artefacts: not those that the mechanism names",
    ),
}


def test_a_histogram_of_a_private_vocabulary(workspace: Workspace) -> None:
    workspace.json_lines([{"text": "quiet world"}] * 200)
    private = {"private": {"epsilon": 4, "delta": 1e-3}}
    workspace.release(
        {
            "mechanism": {
                "kind": "histogram",
                "precision": 1,
                "epsilon": 1,
                "vocabulary": private,
            }
        }
    )
    verify(str(workspace.output))
    card = (workspace.output / "release.json").read_text()
    for change, message in OF_A_HISTOGRAM.values():
        (workspace.output / "release.json").write_text(card)
        edit_card(workspace.output, change)
        with pytest.raises(InputError) as raised:
            verify(str(workspace.output))
        assert str(raised.value) == f"{workspace.output}/release.json: {message}"


def test_the_papers_accounting(workspace: Workspace) -> None:
    workspace.json_lines([{"text": "quiet world"}] * 40)
    workspace.release(
        {
            "mechanism.accounting": "per-entry",
            "mechanism.compression": {"method": "random", "size": 2},
            "mechanism.histogram_epsilon": 1,
        }
    )
    verify(str(workspace.output))
    edit_card(workspace.output, mechanism(accounting="tight"))
    with pytest.raises(InputError, match="mechanism: epsilon is not the budget's"):
        verify(str(workspace.output))


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
