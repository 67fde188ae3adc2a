"""The process of a caller, after the functions of the API."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from embedding_releases import embeddings, prepare, ray_folder
from evaluations import BAGS, write_corpus
from machine import SURE
from process_settings import OF_ENCODERS, changed
from small_specs import spec_of

from quietcorpus.pipelines.prepare.encoding import silent_ray_data

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.mark.slow
def test_what_calls_leave_behind(workspace: Workspace) -> None:
    # Without a key, so that a fresh one is in the environment meanwhile. Kills: logging, signals or
    # a start method set up behind the caller's back; variables, or Beam's options, that stay.
    caps = {"definition": "limited-precision", "precision": 2, "epsilon": 9, "delta": "1e-6"}
    calls = (
        ("release", {"spec": spec_of()}),
        ("release", {"spec": spec_of(release="other")}),
        ("release", {"spec": spec_of(output="released/two"), "workers": 2, "progress": True}),
        ("verify", {"release": "released/two"}),
        ("audit", {"spec": spec_of(), "draws": 1000, "confidence": SURE}),
        ("ledger.init", {"place": "ledger", "caps": {"corpus": "letters", "caps": [caps]}}),
    )
    for imported in ((), ("apache_beam", "quietcorpus.pipelines.release.run")):
        given = calls if not imported else calls[1:2]
        found = changed(
            workspace, *given, imported=imported, environment={"QUIETCORPUS_MASTER_KEY": None}
        )
        assert found["settings"] == {}
        assert len(found["refusals"]) == 1


@pytest.mark.nightly  # candidates use Ray as well
def test_what_an_evaluation_leaves_behind(workspace: Workspace, lee_texts: list[str]) -> None:
    # Kills: Ray's level of logging and its traces of crashes, in a caller who uses Ray as well.
    pytest.importorskip("tomotopy")
    pytest.importorskip("ray")
    write_corpus(workspace, lee_texts[:100])
    spec = workspace.spec(BAGS)
    against = {"against": "input/corpus.parquet", "spec": str(spec), "draws": 2, "workers": 2}
    with ray_folder() as folder:
        found = changed(
            workspace,
            ("release", {"spec": str(spec)}),
            ("evaluate", {"release": "released/out", "output": "report", **against}),
            imported=("ray", "sklearn"),
            environment={"RAY_TMPDIR": str(folder)},
        )
    assert found == {"settings": {}, "refusals": []}


@pytest.mark.slow
def test_what_calibrations_leave_behind(
    workspace: Workspace, word_index: Path, lee_texts: list[str]
) -> None:
    # Kills: a backend of matplotlib's, or a number of threads, behind the caller's back.
    pytest.importorskip("tomotopy")
    grid = {"epsilons": [6, 8], "words": 20, "draws": 50, "mechanism": "madlib"}
    workspace.json_lines(lee_texts[:100], "public.jsonl")
    bags = {"source": "input/public.jsonl", "vocabulary": "vocabulary.txt", "epsilons": [1]}
    found = changed(
        workspace,
        ("calibrate_words", {"index": str(word_index), "output": "words", **grid}),
        ("calibrate_bags", {**bags, "bins": [4], "runs": 2}),
        imported=("sklearn", "matplotlib"),
    )
    assert found == {"settings": {}, "refusals": []}


@pytest.mark.slow
def test_what_candidates_and_encoders_leave_behind(
    workspace: Workspace, lee_texts: list[str]
) -> None:
    # Kills: a PyTorch that has one thread from then on, other models' bars that are gone, a Ray or
    # a generator of random numbers that is not as it was.
    for module in ("sentence_transformers", "ray", "sklearn"):
        pytest.importorskip(module)
    workspace.parquet({"text": lee_texts[:100]}, "public.parquet")
    few = {"candidates": 10, "clusters": 2, "projections": 5}
    few |= {"least_sentences": 5, "most_sentences": 3}
    mechanism = {"kind": "sentence-embeddings", "mechanism": "deep-candidate"}
    with ray_folder() as folder:
        found = changed(
            workspace,
            (
                "build_candidates",
                {"source": "input/public.parquet", "output": "made", "provenance": "public", **few},
            ),
            (
                "calibrate_sentences",
                {"candidates": "made", "source": "input/public.parquet", "epsilons": [10]}
                | {"documents": 20},
            ),
            (
                "release",
                {"spec": spec_of(mechanism=mechanism | {"candidates": "made", "epsilon": 10})},
            ),
            imported=("torch", "sentence_transformers", "sklearn", "ray", OF_ENCODERS),
            environment={"RAY_TMPDIR": str(folder)},
        )
    assert found == {"settings": {}, "refusals": []}


@pytest.mark.slow
def test_what_a_training_leaves_behind(workspace: Workspace, lee_texts: list[str]) -> None:
    # Kills: a PyTorch that has one thread from then on.
    pytest.importorskip("torch")
    prepare(workspace, lee_texts)
    spec = workspace.spec(embeddings(workspace, "sgd"))
    found = changed(workspace, ("release", {"spec": str(spec)}), imported=("torch",))
    assert found == {"settings": {}, "refusals": []}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Ray Data itself
def test_what_ray_data_is_left_as() -> None:
    # Kills: a caller's own Ray Data without bars, or without its log.
    context = pytest.importorskip("ray.data").DataContext.get_current()
    logger = logging.getLogger("ray.data")

    def state() -> tuple[bool, int]:
        return context.enable_progress_bars, logger.level

    before = state()
    with silent_ray_data():
        assert state() == (False, logging.ERROR)
    assert state() == before
