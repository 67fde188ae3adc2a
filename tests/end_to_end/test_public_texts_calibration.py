"""`quietcorpus calibrate public-texts`: which pool and how many votes, on public documents."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from public_pools import texts_on

import quietcorpus as qc
from quietcorpus.evaluation.classification import split
from quietcorpus.indexes.documents.pool import open_pool
from quietcorpus.mechanisms.sentences.deep_candidate import on_grid
from quietcorpus.mechanisms.votes.rounds import Rounds
from quietcorpus.pipelines.kinds.public_texts.calibrate_report import lines

if TYPE_CHECKING:
    from tests.conftest import Workspace

EACH = 60
DOCUMENTS = [*texts_on(["law"], EACH, 2), *texts_on(["space"], EACH, 3)]
GRID: dict[str, Any] = {"epsilons": [8], "delta": 1e-6, "nearest": [5, 40], "runs": 2}
ON, OFF = ["law", "space"], ["food", "money"]


def build(folder: Path, name: str, topics: list[str]) -> None:
    rows = [json.dumps({"text": text}) for text in texts_on(topics, 60, 1)]
    (folder / f"{name}.jsonl").write_text("\n".join(rows))
    source = folder / f"{name}.jsonl"
    qc.build_pool(source, folder / name, provenance="public", encoder="lsa")


@pytest.fixture(scope="module")
def made(
    tmp_path_factory: pytest.TempPathFactory, new_workspace: Callable[[Path], Workspace]
) -> Workspace:
    """Two pools that carry their encoders, on the documents' topics and also on others."""
    workspace = new_workspace(tmp_path_factory.mktemp("calibration"))
    build(workspace.folder, "on", ON)
    build(workspace.folder, "mixed", [*OFF, *ON])
    labels = ["a"] * EACH + ["b"] * EACH
    workspace.parquet({"text": DOCUMENTS, "kind": labels, "own": DOCUMENTS}, "public.parquet")
    return workspace


@pytest.fixture
def here(made: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.chdir(made.folder)
    return made


SOURCE = "input/public.parquet"


def test_votes_without_noise_are_those_of_half_the_documents(here: Workspace) -> None:
    # From the definitions. Kills: votes of all documents, of the tested half, of too many texts.
    found = qc.calibrate_public_texts(SOURCE, pools=["on"], **GRID)
    assert (found.voting, found.tested, found.released) == (EACH, EACH, EACH)
    pool = open_pool(str(here.folder / "on"))
    assert pool.encoder is not None
    nearest = pool.nearest(on_grid(pool.encoder.encode(DOCUMENTS)), 40)
    exact = found.outcomes[-1]
    assert exact.epsilon is None
    assert exact.choice is None
    for run in range(2):
        voting, _ = split(np.zeros(2 * EACH, np.int64), 1 + run, 0.5)
        for number, tried in enumerate(found.tried):
            if not tried.smooth:
                expected = len(np.unique(nearest[voting, : tried.nearest]))
                assert exact.texts[number, run] == expected
    assert np.isnan(exact.f1).all()


def test_the_pool_on_the_subject_is_best(here: Workspace) -> None:
    # Kills: distances whose sign is wrong, that are of the pool as it is, that of all documents.
    many = GRID | {"documents": 100_000}
    found = qc.calibrate_public_texts(SOURCE, pools=["mixed", "on"], **many)
    (outcome, exact) = found.outcomes
    assert outcome.choice is not None
    means = outcome.distances.mean(axis=1)
    assert outcome.choice.best == means.argmin()
    assert found.pools["on"] < found.pools["mixed"]
    for number, tried in enumerate(found.tried):
        assert means[number] < found.pools["mixed"]
        if not tried.smooth:  # noise is nothing beside the votes of so many documents
            assert outcome.texts[number] == pytest.approx(exact.texts[number], rel=0.1)


def test_labels_are_compared_by_a_classifier(here: Workspace) -> None:
    # Kills: labels that are not the strata, a classifier that is tested on what voted alone, fresh
    # noise for equal seeds.
    given = GRID | {"label": "kind", "nearest": [5]}
    found = qc.calibrate_public_texts(SOURCE, pools=["on"], **given, documents=10_000)
    (outcome, exact) = found.outcomes
    assert exact.f1[0].min() > 0.9
    assert outcome.f1.min() > 0.9
    assert found.own[1] > 0.9
    again, other = (
        qc.calibrate_public_texts(SOURCE, pools=["on"], **given, documents=10_000, seed=seed)
        for seed in (1, 9)
    )
    assert list(lines(again)) == list(lines(found))
    assert list(lines(other)) != list(lines(found))
    assert any(line.endswith("  best") for line in lines(found))


def test_noise_alone_chooses_nothing(here: Workspace) -> None:
    # One of 741 texts stands out by chance: of 12,000 none does with a chance of 1e-7, and in each
    # of 100 runs one or more with a smaller one. Kills: no noise, or half of it; a best setting
    # that releases nothing.
    few = GRID | {"nearest": [1], "documents": 1, "runs": 100, "epsilons": ["0.5"]}
    found = qc.calibrate_public_texts(SOURCE, pools=["on"], **few)
    outcome = found.outcomes[0]
    assert 0 < outcome.texts[0].mean() < 1
    assert np.isnan(outcome.distances[0]).any()
    assert outcome.choice is None or 0 not in outcome.choice.among
    (row,) = (line for line in lines(found) if line.split()[:4] == ["0.5", "on", "1", "no"])
    assert row.split()[5:] == ["-", "-"]


def refusal(**changes: Any) -> str:
    whole: dict[str, Any] = {"source": SOURCE, "pools": ["on"]} | GRID | changes
    with pytest.raises(qc.InputError) as raised:
        qc.calibrate_public_texts(whole.pop("source"), **whole)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_refusals(here: Workspace) -> None:
    here.parquet({"text": DOCUMENTS[:19]}, "few.parquet")
    here.parquet({"text": DOCUMENTS, "kind": ["a"] * 119 + ["b"]}, "rare.parquet")
    assert refusal(nearest=[5, 121]) == "nearest: 121 is more than the 120 texts of on"
    assert refusal(nearest=[0]).startswith("nearest: 0 is not above zero")
    assert "is not a pool" in refusal(pools=["nowhere"])
    assert refusal(source="none.parquet").startswith("source: no file matches ")
    assert refusal(source="input/few.parquet").endswith("has 19 documents; give 20 or more")
    assert refusal(text="body").startswith("text: ")
    assert refusal(label="nothing").startswith("label: ")
    assert refusal(label="own") == (
        "label: own has 120 different values; name a column of at most 100"
    )
    assert refusal(source="input/rare.parquet", label="kind") == (
        "label: 'b' has 1 documents; give 20 or more of each"
    )
    assert refusal(epsilons=["0.0001"]).startswith("epsilons: ")
    assert refusal(delta=1.5).startswith("delta: ")
    assert refusal(runs=1) == "runs: 1 is below 2"
    assert refusal(pools=[]) == "pools: none is given; give one or more"


@pytest.mark.slow
def test_the_command(made: Workspace) -> None:
    # Kills: a table of other numbers than the function's, an option that is not passed on.
    arguments = ("--pool", "on", "--epsilons", "8", "--delta", "1e-7", "--nearest", "5,40")
    done = made.run("calibrate", "public-texts", SOURCE, *arguments, "--runs", "2")
    assert done.returncode == 0, done.stderr
    assert "this will take about" in done.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made.folder)
        expected = qc.calibrate_public_texts(SOURCE, pools=["on"], **GRID | {"delta": "1e-7"})
    assert done.stdout.splitlines() == list(lines(expected))
    refused = made.run("calibrate", "public-texts", SOURCE, *arguments, "--label", "nothing")
    assert made.error_of(refused).startswith("--label: ")


@pytest.mark.slow
def test_geometric_noise(here: Workspace) -> None:
    # Kills: Gaussian noise, a delta that is asked for.
    given = GRID | {"delta": None, "noise": "geometric", "documents": 100_000}
    few = given | {"documents": 1, "nearest": [1], "runs": 100, "epsilons": ["0.5"]}
    outcome = qc.calibrate_public_texts(SOURCE, pools=["on"], **few).outcomes[0]
    # One text of 807 stands out by chance: .15 of 120, a mean with a deviation of .04.
    assert 0 < outcome.texts[0].mean() < 0.4
    assert refusal(delta=None).startswith("delta: Gaussian noise needs it, and no other takes it")
    assert refusal(noise="geometric").startswith("delta: Gaussian noise needs it, and no other")
    assert refusal(noise="laplace").startswith("noise: 'laplace' is not known")


@pytest.fixture(scope="module")
def listed(made: Workspace) -> Path:
    """A pool of 400 texts in lists, of which a tenth is on the documents' topics."""
    texts = [*texts_on(["food", "money", "sport"], 120, 5), *texts_on(ON, 20, 6)]
    source = made.folder / "listed.jsonl"
    source.write_text("\n".join(json.dumps({"text": text}) for text in texts))
    search = "ivf:lists=20,probes=20"
    place = made.folder / "listed"
    qc.build_pool(source, place, provenance="public", encoder="lsa", search=search)
    return place


ROUNDS = GRID | {"nearest": [5], "label": "kind", "documents": 100_000, "epsilons": ["1"]}


@pytest.mark.slow
def test_two_releases_are_compared_with_one(here: Workspace, listed: Path) -> None:
    # Kills: a second release at the whole budget, from the whole pool, of another epsilon's first
    # one; a narrowed pool by votes that noise did not change.
    found = qc.calibrate_public_texts(SOURCE, pools=["listed", "on"], rounds="0.2", **ROUNDS)
    (outcome, exact) = found.outcomes
    split = Rounds.solved(Fraction(1), Fraction(1, 10**6), Fraction(1, 5))
    assert found.rounds == {1: (split.first, split.second)}
    of_two = [number for number, one in enumerate(found.tried) if one.rounds == 2]
    assert {found.tried[number].pool for number in of_two} == {"listed"}
    assert np.isnan(exact.texts[of_two]).all()
    whole = next(n for n, one in enumerate(found.tried) if one.pool == "listed")
    plain = next(n for n in of_two if not found.tried[n].smooth)
    # What is left is on the subject, so that fewer texts stand out by chance.
    assert 0 < outcome.texts[plain].mean() <= 2 * 60
    assert (outcome.f1[plain] > 0.9).all()
    assert outcome.texts[whole].mean() > 0
    (said,) = (line for line in lines(found) if line.startswith("At epsilon 1, "))
    assert ("two releases, of epsilon 0.2 and" in said) == (
        outcome.choice is not None and found.tried[outcome.choice.best].rounds == 2
    )
    assert "rounds" in list(lines(found))[2].split()


@pytest.mark.slow
def test_a_first_release_that_finds_nothing_leaves_nothing(here: Workspace, listed: Path) -> None:
    # Kills: a second release from all texts where no list stood out, an error in its place.
    little = ROUNDS | {"documents": 1}
    found = qc.calibrate_public_texts(SOURCE, pools=["listed"], rounds="0.2", **little)
    (outcome, _) = found.outcomes
    second = [number for number, one in enumerate(found.tried) if one.rounds == 2]
    assert (outcome.texts[second] == 0).any()
    assert np.isnan(outcome.distances[second]).any()
    assert any(line.startswith("At epsilon 1, ") for line in lines(found))


@pytest.mark.slow
def test_rounds_are_of_pools_with_lists(here: Workspace, listed: Path) -> None:
    assert refusal(rounds="0.2").startswith("rounds: no public pool has lists")
    little = {"rounds": "0.01", "pools": ["listed"], "epsilons": ["1"]}
    assert refusal(**little).startswith("rounds: no noise multiplier up to")
    assert refusal(rounds="1.2", pools=["listed"]).startswith("rounds: 1.2 is not between")
    pure = {"delta": None, "noise": "geometric", "rounds": "0.25", "pools": ["listed"]}
    found = qc.calibrate_public_texts(SOURCE, **ROUNDS | pure)
    assert found.rounds == {1: (Fraction(1, 4), Fraction(3, 4))}
