"""Calibration from an index to files: the same numbers whoever computes them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from calibrated_words import FILES, GRIDS, WORDS, contents, make_index, mechanism_of, small

from quietcorpus.evaluation.calibration import child, choose_words, measure
from quietcorpus.evaluation.demands import UnchangedAtMost
from quietcorpus.evaluation.simulation import simulator
from quietcorpus.indexes.words.word_index import WordIndex
from quietcorpus.pipelines.card.parameters import DocumentBudget
from quietcorpus.pipelines.kinds.words.calibrate import calibrate
from quietcorpus.pipelines.kinds.words.calibrate_report import lines
from quietcorpus.pipelines.prepare.distances import read_weights
from quietcorpus.pipelines.runners.parallel import ray_session

if TYPE_CHECKING:
    from conftest import Workspace


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", GRIDS)
def test_files_hold_what_was_measured(mechanism: str, index: WordIndex, tmp_path: Path) -> None:
    # Kills: epsilons or words of other rows, a column for another's, shares of the wrong number
    # of draws, the other mechanism, a matched epsilon upside down, a seed that is not the one.
    found = calibrate(index, str(tmp_path / "out"), small(mechanism))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES
    assert json.loads((tmp_path / "out" / FILES[0]).read_text()) == found
    seed = np.random.SeedSequence(7)
    words = choose_words(300, 150, child(seed, 0))
    epsilons = [float(epsilon) for epsilon in GRIDS[mechanism]]
    simulated = simulator(mechanism_of(mechanism), index)
    again = measure(simulated, words, epsilons, 120, 114, child(seed, 1))
    table = pq.read_table(tmp_path / "out" / FILES[1])
    columns = {name: table[name].to_numpy().reshape(3, 150) for name in table.column_names}
    shares = columns["unchanged"]
    np.testing.assert_array_equal(columns["epsilon"], np.tile(epsilons, (150, 1)).T)
    np.testing.assert_array_equal(columns["word"], np.tile(np.array(WORDS)[words], (3, 1)))
    np.testing.assert_allclose(shares * 120, again.unchanged)
    np.testing.assert_array_equal(columns["set_size"], again.set_size)
    np.testing.assert_array_equal(columns["distinct"], again.distinct)
    np.testing.assert_allclose(columns["max_entropy"], np.log(again.set_size))
    seen = shares > 0
    np.testing.assert_allclose(columns["min_entropy"][seen], -np.log(shares[seen]))
    assert np.isnan(columns["min_entropy"][~seen]).all()
    assert table["min_entropy"].null_count == (~seen).sum()
    assert [row["epsilon"] for row in found["by_epsilon"]] == epsilons
    for e, row in enumerate(found["by_epsilon"]):
        mean, (low, high) = row["unchanged"]["mean"], row["unchanged"]["interval"]
        assert mean == pytest.approx(shares[e].mean())
        assert low <= mean <= high
        expected = np.quantile(shares[e], [0.05, 0.25, 0.5, 0.75, 0.95], method="inverted_cdf")
        assert row["unchanged"]["quantiles"] == expected.tolist()
        assert row["set_size"]["mean"] == pytest.approx(again.set_size[e].mean())
        assert row["distinct"]["mean"] == pytest.approx(again.distinct[e].mean())


@pytest.mark.slow
def test_gamma_that_is_given_is_that_of_every_epsilon(index: WordIndex, tmp_path: Path) -> None:
    # Kills: gamma that is not passed on to the draws, or not to what documents are protected by.
    budget = DocumentBudget(Fraction(12), Fraction(1, 10**6), 30)
    short, long = (
        calibrate(
            index,
            str(tmp_path / name),
            small("tem", truncation=gamma, document=budget),
        )
        for name, gamma in (("short", Fraction(1, 2)), ("long", Fraction(4)))
    )
    assert short["parameters"]["truncation"] == "1/2"
    for near, far in zip(short["by_epsilon"], long["by_epsilon"], strict=True):
        assert near["unchanged"]["mean"] < far["unchanged"]["mean"]
    assert short["document"]["word_epsilon"] > 7 * long["document"]["word_epsilon"]
    assert short["document"]["worst"] == pytest.approx(30 * 0.5 * short["document"]["word_epsilon"])


def test_neighbours_are_those_of_the_mechanisms_metric(index: WordIndex, tmp_path: Path) -> None:
    # Kills: the other metric's distances, ranks the vocabulary does not have.
    found = calibrate(index, str(tmp_path / "out"), small("brr"))["neighbours"]
    assert found["ranks"] == [1, 2, 5, 10, 20, 50, 100, 200]
    bits = np.unpackbits(np.ascontiguousarray(index.codes).view(np.uint8), axis=1)
    distances = np.sort((bits[:, None] != bits).sum(axis=2), axis=1)
    low, high = distances[:, 10].min(), distances[:, 10].max()
    ten = found["quantiles"][3]
    assert ten == sorted(ten)
    assert low <= ten[0] < ten[-1] <= high


@pytest.mark.slow
def test_the_number_of_threads_does_not_show(index: WordIndex, tmp_path: Path) -> None:
    # Kills: results in order of arrival, a clock or a number of threads in a file.
    for name, workers in (("one", 1), ("two", 2)):
        calibrate(index, str(tmp_path / name), small("madlib"), workers=workers)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    other = small("madlib", seed=8)
    calibrate(index, str(tmp_path / "other"), other)
    assert contents(tmp_path / "one")[FILES[1]] != contents(tmp_path / "other")[FILES[1]]


@pytest.mark.nightly  # `test_ray_cluster.py` has the first mechanism
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_ray_gives_the_same_numbers(
    index: WordIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a generator per worker, BLAS with other threads there, a Ray that is left running,
    # the second mechanism's index taken for the first one's, by the same workers.
    import ray

    monkeypatch.delenv("RAY_ADDRESS", raising=False)

    def assert_same(mechanism: str) -> None:
        demands = (UnchangedAtMost(Fraction(1, 2), Fraction(1, 2)),)
        settings = small(mechanism, demands=demands)
        here, there = tmp_path / f"{mechanism}-here", tmp_path / f"{mechanism}-there"
        calibrate(index, str(here), settings)
        calibrate(index, str(there), settings, backend="ray", workers=2)
        assert contents(here) == contents(there)

    first, *others = GRIDS
    assert_same(first)
    assert not ray.is_initialized()
    with ray_session(2, work="test"):
        for mechanism in others:
            assert_same(mechanism)


@pytest.mark.slow
def test_the_table_says_what_the_files_say(index: WordIndex, tmp_path: Path) -> None:
    # Kills: columns in another order, a solution that is not shown, lines that do not line up.
    demands = (UnchangedAtMost(Fraction(1, 2), Fraction(1, 2)),)
    found = calibrate(index, str(tmp_path / "out"), small("madlib", demands=demands))
    text = list(lines(found))
    assert text[0] == "Madlib on 300 words (8 dimensions): 120 draws for each of 150 words"
    table = text[4:7]
    for line, row in zip(table, found["by_epsilon"], strict=True):
        numbers = [float(part) for part in line.split()]
        assert len(line) == len(table[0])
        assert numbers[0] == row["epsilon"]
        assert numbers[1] == pytest.approx(row["loss_at_mean_distance"], rel=1e-3)
        places = [0, 2, 4]
        unchanged, sizes = (
            [row[key]["quantiles"][place] for place in places] for key in ("unchanged", "set_size")
        )
        assert numbers[2:5] == pytest.approx(unchanged, abs=1e-3)
        assert numbers[5] == pytest.approx(row["unchanged"]["mean"], abs=1e-3)
        assert numbers[6:9] == sizes
        assert numbers[9] == row["distinct"]["quantiles"][2]
        assert numbers[10] == pytest.approx(row["matched"]["by_mean"], rel=0.01)
    assert f"epsilon {found['solution']['epsilon']:g} meets" in "\n".join(text)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", GRIDS)
def test_pictures_of_the_smallest_calibration(mechanism: str, tmp_path: Path) -> None:
    # Kills: an axis of one point or one block that raises or warns, files that no viewer opens.
    tiny = make_index(tmp_path / "index", 3)
    settings = small(mechanism, epsilons=(Fraction(1),), words=None)
    found = calibrate(tiny, str(tmp_path / "out"), settings)
    assert found["parameters"]["sample"] == "all words"
    assert found["parameters"]["words"] == 3
    assert found["neighbours"]["ranks"] == [1, 2]
    assert found["by_epsilon"][0]["unchanged"]["interval"] is None
    made = contents(tmp_path / "out")
    assert made["calibration.png"].startswith(b"\x89PNG\r\n")
    assert ET.fromstring(made["calibration.svg"]).tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.slow
def test_weights_decide_which_words_are_drawn(index: WordIndex, tmp_path: Path) -> None:
    # Kills: weights by position instead of by word, negative ones counted, words that are not in
    # the index shifting the others.
    path = tmp_path / "weights.parquet"
    weights = {"zz": 50.0, WORDS[200]: 3.0, WORDS[4]: 1.0, WORDS[5]: -2.0}
    table = {"term": list(weights), "weight": list(weights.values()), "term_id": [0, 1, 2, 3]}
    pq.write_table(pa.table(table), path)
    read = read_weights("weights", str(path), index.vocabulary.terms)
    assert {WORDS[i]: read[i] for i in np.flatnonzero(read)} == {WORDS[200]: 3.0, WORDS[4]: 1.0}
    settings = small("madlib", weights=read)
    found = calibrate(index, str(tmp_path / "out"), settings)
    rows = pq.read_table(tmp_path / "out" / FILES[1])["word"].to_pylist()
    assert len(rows) == 3 * 150
    assert set(rows) == {WORDS[4], WORDS[200]}
    assert found["parameters"]["sample"] == "drawn with replacement, by weight"


@pytest.mark.slow
def test_the_command(workspace: Workspace, tmp_path: Path) -> None:
    # Kills: options that are not passed on, numbers read as floats, epsilons in the given order.
    make_index(tmp_path / "index")
    weights = pa.table({"term": WORDS[:20], "weight": np.ones(20)})
    pq.write_table(weights, tmp_path / "weights.parquet")
    done = workspace.run(
        "calibrate",
        "words",
        *(str(tmp_path / "index"), "--output", str(tmp_path / "out"), "--mechanism", "brr"),
        *("--epsilons", "0.5,0.1,0.5", "--words", "30", "--draws", "60", "--eta", "0.1"),
        *("--seed", "5", "--weights", str(tmp_path / "weights.parquet"), "--workers", "1"),
        *("--unchanged-at-most", "0.6", "--set-size-at-least", "2", "--share", "0.5"),
        *("--confidence", "0.9", "--quiet", "--document-epsilon", "9", "--document-delta", "1e-6"),
        *("--document-words", "20"),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out" / FILES[0]).read_text())
    parameters = found["parameters"]
    assert found["mechanism"] == "brr"
    assert parameters["epsilons"] == ["1/10", "1/2"]
    assert (parameters["words"], parameters["draws"], parameters["held"]) == (30, 60, 54)
    assert parameters["seed"] == 5
    assert parameters["sample"] == "drawn with replacement, by weight"
    assert found["solution"]["confidence"] == 0.9
    assert found["document"]["epsilon"] <= found["document"]["epsilon_at_most"] == 9
    assert (found["document"]["words"], found["document"]["delta"]) == (20, 1e-6)
    assert found["solution"]["demands"] == [
        "N_w <= 0.6 for 0.5 of the words",
        "S_w >= 2 for 0.5 of the words",
    ]
    assert done.stdout.splitlines() == list(lines(found))
