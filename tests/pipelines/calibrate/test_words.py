"""Calibration from an index to files: the same numbers whoever computes them."""

from __future__ import annotations

import itertools
import json
import string
import sys
import xml.etree.ElementTree as ET
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quietcorpus.evaluation.calibration import choose_words, measure
from quietcorpus.evaluation.demands import SetSizeAtLeast, UnchangedAtMost
from quietcorpus.evaluation.distances import euclidean_distances, hamming_distances
from quietcorpus.evaluation.tallies import child
from quietcorpus.indexes.tokenizer import NAME
from quietcorpus.indexes.vocabulary import Vocabulary
from quietcorpus.indexes.word_index import WordIndex, open_index, save
from quietcorpus.indexes.word_index_manifest import IndexManifest
from quietcorpus.pipelines.artefacts.distances import summary
from quietcorpus.pipelines.artefacts.weights import read_weights
from quietcorpus.pipelines.calibrate.words import calibrate
from quietcorpus.pipelines.calibrate.words_report import WordSettings, lines
from quietcorpus.pipelines.card.document_losses import (
    DocumentBudget,
    Flips,
    Noise,
    Weights,
    document_epsilon,
)
from quietcorpus.pipelines.engine.parallel import ray_session
from quietcorpus.pipelines.kinds.word_meaning import simulator
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.privatizers.words import WordMechanism

if TYPE_CHECKING:
    from conftest import Workspace

DOCUMENT = (
    *("--epsilons", "1", "--document-epsilon", "9"),
    *("--document-delta", "1e-6", "--document-words", "20"),
)
FILES = ["calibration.json", "calibration.parquet", "calibration.png", "calibration.svg"]
WORDS = ["".join(letters) for letters in itertools.product(string.ascii_lowercase, repeat=2)]
HALF = Fraction(1, 2)
GRIDS = {
    WordMechanism.MADLIB: (Fraction(2), Fraction(13, 2), Fraction(20)),
    WordMechanism.VICKREY: (Fraction(2), Fraction(13, 2), Fraction(20)),
    WordMechanism.BRR: (Fraction(1, 4), Fraction(1, 2), Fraction(1)),
    WordMechanism.TEM: (Fraction(2), Fraction(13, 2), Fraction(20)),
    WordMechanism.EXPONENTIAL: (Fraction(2), Fraction(13, 2), Fraction(20)),
}


def make_index(folder: Path, count: int = 300) -> WordIndex:
    generator = np.random.default_rng()
    vectors = generator.normal(size=(count, 8)).astype(np.float32)
    codes = generator.integers(2**64, size=(count, 2), dtype=np.uint64)
    manifest = IndexManifest(
        provenance="public",
        guarantee=None,
        source={"uri": "vectors.txt", "sha256": "0" * 64},
        words=count,
        dimensions=8,
        bits=128,
        tokenizer=NAME,
        seed=1,
        measures={},
        distances={
            "euclidean": summary(euclidean_distances(vectors, 1)),
            "hamming": summary(hamming_distances(codes)),
        },
        builder="quietcorpus test",
    )
    folder.mkdir()
    save(str(folder), manifest, Vocabulary(WORDS[:count]), vectors, codes)
    return open_index(str(folder))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> WordIndex:
    return make_index(tmp_path_factory.mktemp("calibrate") / "index")


def small(mechanism: WordMechanism, **changes: Any) -> WordSettings:
    given = {"epsilons": GRIDS[mechanism], "words": 150, "draws": 120, "seed": 7}
    if mechanism is WordMechanism.VICKREY:
        given["tuning"] = HALF
    return WordSettings(mechanism, **(given | changes))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", list(WordMechanism))
def test_files_hold_what_was_measured(
    mechanism: WordMechanism, index: WordIndex, tmp_path: Path
) -> None:
    # Kills: epsilons or words of other rows, a column for another's, shares of the wrong number
    # of draws, the other mechanism, a matched epsilon upside down, a seed that is not the one.
    found = calibrate(index, str(tmp_path / "out"), small(mechanism))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES
    assert json.loads((tmp_path / "out" / FILES[0]).read_text()) == found
    seed = np.random.SeedSequence(7)
    words = choose_words(300, 150, child(seed, 0))
    epsilons = [float(epsilon) for epsilon in GRIDS[mechanism]]
    simulated = simulator(mechanism, index, None, tuning=HALF)
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


@pytest.mark.parametrize("mechanism", list(WordMechanism))
def test_epsilons_match_by_epsilon_times_distance(
    mechanism: WordMechanism, index: WordIndex, tmp_path: Path
) -> None:
    # Kills: a ratio upside down, the same mechanism twice, mean and maximum swapped.
    metrics = dict.fromkeys(WordMechanism, "euclidean") | {WordMechanism.BRR: "hamming"}
    for row in calibrate(index, str(tmp_path / "out"), small(mechanism))["by_epsilon"]:
        matched = row["matched"]
        assert metrics[matched["mechanism"]] != metrics[mechanism]
        for by in ("mean", "maximum"):
            ours, theirs = (
                float(Fraction(index.manifest.distances[metrics[name]][by]))
                for name in (mechanism.value, matched["mechanism"])
            )
            assert row[f"loss_at_{by}_distance"] == pytest.approx(row["epsilon"] * ours)
            assert matched[f"by_{by}"] * theirs == pytest.approx(row["epsilon"] * ours)


@pytest.mark.slow
def test_gamma_that_is_given_is_that_of_every_epsilon(index: WordIndex, tmp_path: Path) -> None:
    # Kills: gamma that is not passed on to the draws, or not to what documents are protected by.
    budget = DocumentBudget(Fraction(12), Fraction(1, 10**6), 30)
    short, long = (
        calibrate(
            index,
            str(tmp_path / name),
            small(WordMechanism.TEM, truncation=gamma, document=budget),
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
    found = calibrate(index, str(tmp_path / "out"), small(WordMechanism.BRR))["neighbours"]
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
        calibrate(index, str(tmp_path / name), small(WordMechanism.MADLIB), workers=workers)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    other = small(WordMechanism.MADLIB, seed=8)
    calibrate(index, str(tmp_path / "other"), other)
    assert contents(tmp_path / "one")[FILES[1]] != contents(tmp_path / "other")[FILES[1]]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_ray_gives_the_same_numbers(
    index: WordIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a generator per worker, BLAS with other threads there, a Ray that is left running,
    # the second mechanism's index taken for the first one's, by the same workers.
    import ray

    monkeypatch.delenv("RAY_ADDRESS", raising=False)

    def assert_same(mechanism: WordMechanism) -> None:
        demands = (UnchangedAtMost(Fraction(1, 2), Fraction(1, 2)),)
        settings = small(mechanism, demands=demands)
        here, there = tmp_path / f"{mechanism}-here", tmp_path / f"{mechanism}-there"
        calibrate(index, str(here), settings)
        calibrate(index, str(there), settings, backend="ray", workers=2)
        assert contents(here) == contents(there)

    first, *others = WordMechanism
    assert_same(first)
    assert not ray.is_initialized()
    with ray_session(2, work="test"):
        for mechanism in others:
            assert_same(mechanism)


@pytest.mark.slow
def test_solutions_are_written_with_their_proof(index: WordIndex, tmp_path: Path) -> None:
    # Kills: a demand that is dropped, the planned epsilon, solving with another mechanism. All 300
    # words are validated, so that there is no sampling error.
    demands = (
        UnchangedAtMost(Fraction(1, 2), Fraction(9, 10)),
        SetSizeAtLeast(5, Fraction(9, 10)),
    )
    settings = small(WordMechanism.MADLIB, demands=demands, draws=400)
    found = calibrate(index, str(tmp_path / "out"), settings)
    solution = found["solution"]
    assert solution["demands"] == [str(demand) for demand in demands]
    last = solution["validations"][-1]
    assert last["met"]
    assert last["epsilon"] == solution["epsilon"]
    for verdict in last["verdicts"]:
        assert verdict["words"] == 300
        assert verdict["share_at_least"] == pytest.approx(verdict["certified"] / 300)
        assert verdict["share_at_least"] >= 0.9
    every = np.arange(300)
    fresh = measure(
        simulator(WordMechanism.MADLIB, index, None),
        every,
        [solution["epsilon"]],
        2000,
        1900,
        np.random.SeedSequence(),
    )
    # Certified words are so with a confidence of .99 for all of them; .02 more is four standard
    # errors of these draws.
    assert (fresh.unchanged_share[0] <= 0.52).mean() >= 0.9
    assert (fresh.set_size[0] >= 5).mean() >= 0.9


@pytest.mark.slow
def test_the_table_says_what_the_files_say(index: WordIndex, tmp_path: Path) -> None:
    # Kills: columns in another order, a solution that is not shown, lines that do not line up.
    demands = (UnchangedAtMost(Fraction(1, 2), Fraction(1, 2)),)
    found = calibrate(index, str(tmp_path / "out"), small(WordMechanism.MADLIB, demands=demands))
    text = list(lines(found))
    assert text[0] == "Madlib on 300 words (8 dimensions): 120 draws for each of 150 words"
    table = text[5:8]
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
@pytest.mark.parametrize("mechanism", list(WordMechanism))
def test_an_epsilon_for_whole_documents_is_the_largest_that_keeps_to_them(
    mechanism: WordMechanism, index: WordIndex, tmp_path: Path
) -> None:
    # Kills: the mean distance, another number of words, dimensions for codes, a rounding up.
    budget = DocumentBudget(Fraction(12), Fraction(1, 10**6), 30)
    found = calibrate(index, str(tmp_path / "out"), small(mechanism, document=budget))
    solved, maximum = found["document"], Fraction(found["maximum_distance"])
    epsilon = Fraction(str(solved["word_epsilon"]))
    of = document_epsilon(
        {
            WordMechanism.MADLIB: Noise(8),
            WordMechanism.VICKREY: Noise(8),
            WordMechanism.BRR: Flips(),
        }.get(mechanism, Weights(maximum))
    )
    assert of(epsilon, maximum, 30, budget.delta) <= 12 * Fraction(1000001, 1000000)
    assert of(epsilon * Fraction(101, 100), maximum, 30, budget.delta) > 12
    assert 11.8 < solved["epsilon"] <= 12
    assert solved["worst"] == pytest.approx(float(epsilon * maximum * 30))
    assert (solved["words"], solved["delta"], solved["epsilon_at_most"]) == (30, 1e-6, 12)
    (line,) = (line for line in lines(found) if "keeps documents" in line)
    assert line.startswith(f"epsilon {solved['word_epsilon']:g} of a word keeps documents of at ")
    assert "at most 30 words to epsilon" in line


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", list(WordMechanism))
def test_pictures_of_the_smallest_calibration(mechanism: WordMechanism, tmp_path: Path) -> None:
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
    settings = small(WordMechanism.MADLIB, weights=read)
    found = calibrate(index, str(tmp_path / "out"), settings)
    rows = pq.read_table(tmp_path / "out" / FILES[1])["word"].to_pylist()
    assert len(rows) == 3 * 150
    assert set(rows) == {WORDS[4], WORDS[200]}
    assert found["parameters"]["sample"] == "drawn with replacement, by weight"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"term": ["aa"]}, "columns term and weight"),
        ({"term": ["aa"], "weight": ["many"]}, "columns term and weight"),
        ({"term": ["zz"], "weight": [1.0]}, "no word of the index"),
        ({"term": ["aa"], "weight": [-1.0]}, "no word of the index"),
        ({"term": ["aa"], "weight": [float("nan")]}, "finite"),
        ({"term": ["aa"], "weight": [float("inf")]}, "finite"),
        (None, "columns term and weight"),
    ],
)
def test_weights_that_cannot_be_used(
    columns: dict[str, Any] | None, message: str, index: WordIndex, tmp_path: Path
) -> None:
    path = tmp_path / "weights.parquet"
    if columns is None:
        path.write_bytes(b"PAR1 and no more")
    else:
        pq.write_table(pa.table(columns), path)
    with pytest.raises(InputError, match=message):
        read_weights("weights", str(path), index.vocabulary.terms)


def test_an_output_that_is_in_use_is_left_alone(index: WordIndex, tmp_path: Path) -> None:
    # Kills: overwriting, or measuring for an hour before saying so.
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("kept")
    with pytest.raises(InputError, match="not empty"):
        calibrate(index, str(tmp_path / "out"), small(WordMechanism.MADLIB))
    assert contents(tmp_path / "out") == {"mine": b"kept"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilons": ()}, "at least one"),
        ({"eta": Fraction(2)}, "eta is 2"),
        ({"draws": 0}, "draws"),
        ({"demands": (SetSizeAtLeast(9999, Fraction(1, 2)),)}, "2 to 300"),
        ({"demands": (UnchangedAtMost(Fraction(1, 2), Fraction(2)),)}, "share"),
    ],
)
def test_settings_that_cannot_be_met_leave_nothing(
    changes: dict[str, Any], message: str, index: WordIndex, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        calibrate(index, str(tmp_path / "out"), small(WordMechanism.MADLIB, **changes))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("module", "by", "remedy"), [("matplotlib", "local", "calibrate"), ("ray", "ray", "ray")]
)
def test_extras_that_are_not_installed(
    module: str,
    by: Any,
    remedy: str,
    index: WordIndex,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Kills: an ImportError, or one after all the work is done. None is how Python itself notes
    # that a module is not there.
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"extra \[{remedy}\]"):
        calibrate(index, str(tmp_path / "out"), small(WordMechanism.MADLIB), backend=by)
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_that_is_not_there(
    index: WordIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a cluster of our own started where another one was named.
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(InputError, match="RAY_ADDRESS"):
        calibrate(index, str(tmp_path / "out"), small(WordMechanism.MADLIB), backend="ray")
    assert list(tmp_path.iterdir()) == []


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--epsilons", "1,two"), "'two' is not a number"),
        (("--epsilons", "0"), "not between"),
        (("--epsilons", "1", "--words", "none"), "--words"),
        (("--epsilons", "1", "--set-size-at-least", "1"), "--set-size-at-least"),
        (("--epsilons", "1", "--weights", "missing.parquet"), "--weights: missing.parquet"),
        (("--epsilons", "1", "--eta", "1.5"), "eta is 3/2"),
        (("--epsilons", "1", "--document-epsilon", "9"), "--document-epsilon: give document_epsi"),
        (
            (*DOCUMENT, "--document-delta", "0.1"),
            "--document-delta: 0.1 is not allowed; give 1e-12 or ",
        ),
        ((*DOCUMENT, "--document-delta", "1e-13"), "--document-delta: 1e-13 is not allowed; give "),
        ((*DOCUMENT, "--document-words", "10001"), "--document-words: 10,001 is not allowed; at "),
        ((*DOCUMENT, "--document-epsilon", "0"), "--document-epsilon"),
    ],
)
def test_options_that_are_refused(
    workspace: Workspace, arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    make_index(tmp_path / "index", 5)
    done = workspace.run(
        "calibrate",
        "words",
        *(str(tmp_path / "index"), "--output", str(tmp_path / "out"), "--mechanism", "madlib"),
        *arguments,
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
