"""Where a spec's files lie: input, output and rejects are kept apart."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from loaded_specs import loaded, refusal

import quietcorpus as qc
from quietcorpus.transforms.errors import InputError

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("input/*.jsonl", "input/out"),
        ("input/*.jsonl", "input"),
        ("input/*.jsonl", "elsewhere/../input/out"),
        ("input/../input/*.jsonl", "input/out"),
        ("input/*.jsonl", "link/out"),
        ("input/**", "input/a/b/out"),
        ("in*/corpus.jsonl", "input/out"),
        ("released/out/corpus.jsonl", "released/out"),
        ("s3://bucket/in/*.jsonl", "s3://bucket/in/out"),
        ("s3://bucket/in/*.jsonl", "s3://bucket/in/"),
    ],
)
def test_the_output_is_never_in_the_input(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, source: str, output: str
) -> None:
    monkeypatch.chdir(workspace.folder)
    (workspace.folder / "link").symlink_to(workspace.input)
    message = refusal(workspace.spec({"input.path": source, "output": output}))
    assert message.startswith("output: ")
    assert " overlaps with the input " in message
    assert message.endswith("; keep them apart")


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("input/*.jsonl", "input-released"),
        ("input/corpus.jsonl", "corpus.jsonl"),
        ("s3://bucket/in/*.jsonl", "s3://bucket/inner/out"),
        ("s3://bucket/in/*.jsonl", "in/out"),
    ],
)
def test_an_output_beside_the_input_is_good(workspace: Workspace, source: str, output: str) -> None:
    loaded(workspace, {"input.path": source, "output": output})


@pytest.mark.parametrize(
    "rejects", ["released/out", "released/out/rejects", "released/x/../out", "released"]
)
def test_rejects_never_lie_in_the_output(workspace: Workspace, rejects: str) -> None:
    # The last one: rejects go to a folder of the release's name, here the output itself.
    changes = {"release": "out", "rejects": {"path": rejects}}
    assert refusal(workspace.spec(changes)).startswith("rejects.path: ")


def test_rejects_never_become_input(workspace: Workspace) -> None:
    changes = {"input.path": "input/**.jsonl", "rejects": {"path": "input/rejects"}}
    assert refusal(workspace.spec(changes)).startswith("rejects.path: ")


@pytest.mark.parametrize(
    ("place", "written"),
    [
        ("s3a://b/x.csv", "s3://b/x.csv"),
        ("s3n://b/x.csv", "s3://b/x.csv"),
        ("S3://b/x.csv", "s3://b/x.csv"),
        ("s3:/b/x.csv", "s3://b/x.csv"),
        ("gcs://b/x.csv", "gs://b/x.csv"),
        ("abfss://c@account.dfs.core.windows.net/x/*.csv", "azfs://account/c/x/*.csv"),
        ("wasbs://c@account.blob.core.windows.net/x.csv", "azfs://account/c/x.csv"),
        ("abfs://c/x.csv", "azfs://ACCOUNT/c/x.csv"),
        ("az://c/x.csv", "azfs://ACCOUNT/c/x.csv"),
        ("file:///data/x.csv", "/data/x.csv"),
        ("dbfs:/data/x.csv", "/dbfs/data/x.csv"),
        ("s3://", "s3://BUCKET"),
    ],
)
def test_places_as_other_systems_write_them(workspace: Workspace, place: str, written: str) -> None:
    # Kills: advice to check credentials where a scheme is another's; a `Path` that lost a slash,
    # taken for a local one.
    said = f"{place!r} is not written as Beam's file systems expect it; write {written}"
    for key in ("input.path", "output"):
        assert refusal(workspace.spec({key: place})).endswith(f"{key}: {said}")
    with pytest.raises(InputError, match=f"^corpus: {re.escape(said)}$"):
        qc.propose_spec(place, want="counts")


def test_brackets_in_the_place_of_the_corpus(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a folder's brackets taken for a set, so that its parent is kept apart from the output.
    monkeypatch.chdir(workspace.folder)
    (workspace.folder / "in [old]").mkdir()
    loaded(workspace, {"input.path": "in [old]/*.jsonl", "output": "out"})


def test_local_paths_become_absolute(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace.folder)
    spec = loaded(workspace, {"input.path": "input/../input/*.jsonl", "output": "~/out"})
    assert spec.input.path == f"{workspace.folder}/input/../input/*.jsonl"
    assert spec.output == f"{Path.home()}/out"
    assert loaded(workspace, {"output": "s3://b/c/"}).output == "s3://b/c"
