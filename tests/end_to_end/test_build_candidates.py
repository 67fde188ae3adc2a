"""`quietcorpus index build-candidates`: what it makes of public documents, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from machine import without
from public_candidates import PUBLIC_TEXTS, build_candidates

from quietcorpus.indexes.documents.candidates import CandidatesManifest, read_names
from quietcorpus.indexes.tokens.segmentation import LANGUAGES, split
from quietcorpus.mechanisms.noise.exponential import LARGEST_SET
from quietcorpus.pipelines.prepare.candidates import _clusters
from quietcorpus.transforms.artefacts.encoder import EncoderSource
from quietcorpus.transforms.errors import InputError

if TYPE_CHECKING:
    from tests.conftest import Workspace


def test_the_command_says_what_candidates_it_made(candidates: Path) -> None:
    # Kills: lines of Ray's own, a folder with more or less than its manifest lists.
    printed = candidates.with_name("printed").read_text().splitlines()
    assert printed[0] == "candidates    built"
    assert printed[1] == "documents     40 candidates of 90 used"
    assert printed[1:] == CandidatesManifest.read(str(candidates)).lines()
    assert {path.name for path in candidates.iterdir()} == {
        "manifest.json",
        "embeddings.npy",
        "centre.npy",
        "box.npy",
        "recoder.npz",
        "projections.npy",
        "recoded.npy",
        "directions.npy",
        "radii.npy",
        "lifts.npy",
    }


@pytest.mark.slow
def test_candidates_are_made_alike_again(
    workspace: Workspace, candidates: Path, lee_texts: list[str]
) -> None:
    # Kills: a choice, clusters, a training or projections that no seed governs; sentences by the
    # order in which Ray's workers return them; candidates that depend on where they are made; lines
    # of Ray's own.
    # With names, they are the same but for the manifest: it lists one file more.
    done = build_candidates(
        workspace, "again", lee_texts[:PUBLIC_TEXTS], with_ray=True, id="number", keep="text"
    )
    assert done.returncode == 0, done.stderr
    assert all(line.startswith("INFO ") for line in done.stderr.splitlines()), done.stderr
    again = workspace.folder / "again"
    for path in sorted(candidates.iterdir(), reverse=True):
        if path.name != "manifest.json":
            assert (again / path.name).read_bytes() == path.read_bytes(), path.name
    found, named = (CandidatesManifest.read(str(folder)) for folder in (candidates, again))
    source = found.source | {"id": "number", "keep": ["text"]}
    assert named == replace(found, source=source, files=named.files)
    assert named.files[:-1] == found.files
    rows = read_names(str(again), named).to_pylist()
    assert [row["candidate"] for row in rows] == [*range(40)]
    for row in rows:
        assert row["text"] == lee_texts[int(row["id"].removeprefix("lee-"))]
    # Each is the document whose mean its embedding is.
    encoder = EncoderSource.resolve("encoder", "all-MiniLM-L6-v2").open()
    embeddings = np.load(again / "embeddings.npy")
    for row in rows[::13]:
        own = encoder.encode(split([row["text"]], 5, "en").texts)
        np.testing.assert_allclose(own.mean(axis=0), embeddings[row["candidate"]], atol=0.02)
    shown = workspace.run("index", "show", "again").stdout.splitlines()
    assert shown[-41] == "candidate\tid\ttext"
    assert shown[-1].startswith(f"39\t{rows[-1]['id']}\t")


def no_candidates(workspace: Workspace, output: str = "never", **options: object) -> str:
    """The line by which building is refused."""
    short = ["Police found him. It rained. Who knows?"] * 5
    done = build_candidates(workspace, output, options.pop("texts", short), **options)  # type: ignore[arg-type]
    message = workspace.error_of(done)
    assert not (workspace.folder / "never").exists()
    assert not list(workspace.folder.glob(".*never*"))
    return message


def test_candidates_of_private_documents(workspace: Workspace) -> None:
    assert no_candidates(workspace, provenance="private") == (
        "--provenance: candidates are released as they are, and so is what their encoder learnt; "
        "build them from public documents, with an encoder of public data"
    )


def test_too_few_documents(workspace: Workspace, lee_texts: list[str]) -> None:
    public = workspace.input / "public.parquet"
    assert no_candidates(workspace, least_sentences=2).startswith(
        f"SOURCE: {public} has 5 documents of 2 sentences or more, and 90 are needed; give more "
    )
    # Of too few sentences, too. Kills: a least number above the most that counts nobody.
    message = no_candidates(workspace, texts=[*lee_texts, ""], least_sentences=15)
    found = int(message.split(" has ")[1].split()[0])
    assert 0 < found < 90
    assert "documents of 15 sentences or more" in message


def test_too_many_candidates(workspace: Workspace) -> None:
    message = no_candidates(workspace, candidates=LARGEST_SET + 1)
    assert message == f"--candidates: {LARGEST_SET + 1} is too many; give at most {LARGEST_SET}"


def test_more_clusters_than_documents(workspace: Workspace, lee_texts: list[str]) -> None:
    # Kills: finding out once all has been encoded.
    message = no_candidates(workspace, texts=lee_texts[:PUBLIC_TEXTS], clusters=90)
    assert message.startswith("--clusters: 90 is not less than the number of documents")


def test_documents_that_are_all_alike() -> None:
    # Kills: an error of the clustering's own, candidates that no release can open.
    documents = np.repeat(np.eye(4), 20, axis=0)
    with pytest.raises(InputError, match=r"^source: only 4 of the documents differ, too few for 4"):
        _clusters(documents, 4, 1)
    assert _clusters(documents, 3, 1)[1]["clusters"] == 3


def test_an_output_that_exists(workspace: Workspace) -> None:
    message = no_candidates(workspace, output="input")
    assert (
        message
        == f"--output: {workspace.input} exists already and is not empty; name another place"
    )


def test_no_documents(workspace: Workspace) -> None:
    done = workspace.run(
        *("index", "build-candidates", "absent.parquet", "--output", "never"),
        "--provenance=public",
    )
    message = workspace.error_of(done)
    assert message.startswith(f"SOURCE: no file matches {workspace.folder}/absent.parquet; check ")
    assert not (workspace.folder / "never").exists()


def test_no_such_column(workspace: Workspace) -> None:
    message = no_candidates(workspace, text="body")
    assert message.startswith("--text: ")
    assert f"{workspace.input}/public.parquet has no column 'body'" in message


@pytest.mark.parametrize("language", ["English", "en-GB", "", "en; de", "sv", "th"])
def test_no_language(workspace: Workspace, language: str) -> None:
    # Kills: a splitter that takes what it does not know for English, and says nothing.
    assert no_candidates(workspace, language=language) == (
        f"--language: {language!r} is not one that the splitter sentencex-1 knows; give one of "
        f"{', '.join(LANGUAGES)}"
    )


@pytest.mark.slow
def test_an_encoder_that_is_none(workspace: Workspace, lee_texts: list[str]) -> None:
    # Kills: an error of Ray's workers, which is nobody's input.
    (folder := workspace.folder / "model").mkdir()
    (folder / "config.json").write_text("{}")
    texts = lee_texts[:PUBLIC_TEXTS]
    message = no_candidates(workspace, texts=texts, encoder=folder)
    assert message.startswith(f"--encoder: {folder} is not a model of sentence-transformers")


@pytest.mark.slow
def test_what_makes_candidates_is_not_installed(workspace: Workspace, lee_texts: list[str]) -> None:
    # Kills: finding out once all has been encoded.
    workspace.parquet({"text": lee_texts[:PUBLIC_TEXTS]}, "public.parquet")
    done = workspace.run(
        *("index", "build-candidates", "input/public.parquet", "--output", "never"),
        *("--provenance=public", "--candidates=10", "--clusters=4"),
        environment=without(workspace, "sklearn"),
        fresh=True,
    )
    message = workspace.error_of(done)
    assert message == "quietcorpus: scikit-learn is not installed; install the extra [sentences]"
    assert not (workspace.folder / "never").exists()
