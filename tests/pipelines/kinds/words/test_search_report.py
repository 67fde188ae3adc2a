"""`index search-report`: its numbers against brute force, its files, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from noisy_queries import brute, clustered

from quietcorpus.evaluation.calibration import choose_words, held_draws, measure
from quietcorpus.evaluation.recall import noisy_queries
from quietcorpus.evaluation.simulation import MadlibSimulator
from quietcorpus.evaluation.tallies import child
from quietcorpus.indexes import inverted_lists
from quietcorpus.indexes.faiss_ivf import ListSearch
from quietcorpus.indexes.vocabulary import Vocabulary
from quietcorpus.indexes.word_index import WordIndex
from quietcorpus.indexes.word_index_manifest import METRICS, IndexManifest
from quietcorpus.pipelines.kinds.words.search_report import ReportSettings, lines, report
from quietcorpus.transforms.errors import InputError

COUNT = 600
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = [f"w{a}{b}" for a in LETTERS for b in LETTERS][:COUNT]
EPSILONS = (Fraction(2), Fraction(4))
SETTINGS = ReportSettings(EPSILONS, probes=(1, 20), queries=300, words=10, draws=60)


@pytest.fixture(scope="module")
def index() -> WordIndex:
    vectors = clustered(COUNT, 12)
    apart = {metric: {"mean": "1", "maximum": "2", "largest_met": "2"} for metric in METRICS}
    manifest = IndexManifest(
        "public", None, {}, COUNT, 12, 64, "unicode-words-v2", 0, {}, apart, "t"
    )
    lists = inverted_lists.train(vectors, 20, seed=1, threads=1)
    codes = np.zeros((COUNT, 1), np.uint64)
    return WordIndex(manifest, Vocabulary(WORDS), vectors, codes, lambda: lists)


def test_the_numbers_are_those_of_brute_force(index: WordIndex, tmp_path: Path) -> None:
    # Kills: recall at another epsilon or of other probes, N_w of the exact engine for all.
    found = report(index, str(tmp_path / "out"), SETTINGS)
    assert index.lists is not None
    seed = child(np.random.SeedSequence(1), 2)
    for row, epsilon in zip(found["by_epsilon"], EPSILONS, strict=True):
        exact, flat, some, every = row["engines"]
        names = [(one["engine"], one["probes"]) for one in row["engines"]]
        assert names == [
            ("exact", None),
            ("faiss-flat", None),
            ("faiss-ivf", 1),
            ("faiss-ivf", 20),
        ]
        queries = noisy_queries(index.vectors, float(epsilon), 300, seed)
        searched = ListSearch(index.lists, 1, index.vectors).nearest(queries)
        share = float((searched == brute(index.vectors, queries)).mean())
        assert some["recall"]["share"] == share < 1
        assert [one["recall"]["share"] for one in (exact, flat, every)] == [1, 1, 1]
        assert exact["unchanged"] == flat["unchanged"]
        # The simulator for exact search rounds in float32, that for the lists does not.
        assert every["unchanged"]["mean"] == pytest.approx(exact["unchanged"]["mean"], abs=0.01)
        assert some["unchanged"]["mean"] <= exact["unchanged"]["mean"] + 0.01
        assert all(one["words_a_second"] > 0 for one in row["engines"])
    # N_w is that of the search in lists, with the words and the noise of exact search.
    seed = np.random.SeedSequence(1)
    simulator = MadlibSimulator(index.vectors, ListSearch(index.lists, 1, index.vectors))
    words = choose_words(COUNT, 10, child(seed, 0))
    measured = measure(simulator, words, [2.0], 60, held_draws(60, Fraction(1, 20)), child(seed, 1))
    exact, _, some, _ = found["by_epsilon"][0]["engines"]
    assert some["unchanged"]["mean"] == measured.unchanged_share[0].mean()
    assert some["set_size"]["mean"] == measured.set_size[0].mean()
    assert (some["unchanged"], some["set_size"]) != (exact["unchanged"], exact["set_size"])
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["search-report.json", "search-report.png", "search-report.svg"]
    assert json.loads((tmp_path / "out" / "search-report.json").read_text()) == found
    table = list(lines(found))
    assert len(table) == 4 + 8
    assert "faiss-ivf" in table[6]


def test_equal_seeds_give_equal_numbers_except_speeds(index: WordIndex) -> None:
    one, other = report(index, None, SETTINGS), report(index, None, SETTINGS)
    for found in (one, other):
        for row in found["by_epsilon"]:
            for engine in row["engines"]:
                engine.pop("words_a_second")
    assert one == other


def test_an_index_without_lists_shows_the_exhaustive_engines(index: WordIndex) -> None:
    bare = WordIndex(index.manifest, index.vocabulary, index.vectors, index.codes)
    settings = ReportSettings(EPSILONS[:1], queries=50, words=2, draws=20)
    found = report(bare, None, settings)
    engines = [one["engine"] for one in found["by_epsilon"][0]["engines"]]
    assert engines == ["exact", "faiss-flat"]
    assert list(lines(found))[-1].startswith("the index has no inverted lists; build one")
    with pytest.raises(InputError, match="probes: the index has no inverted lists"):
        report(bare, None, SETTINGS)


def test_more_probes_than_lists_are_refused(index: WordIndex, tmp_path: Path) -> None:
    settings = ReportSettings(EPSILONS, probes=(21,))
    with pytest.raises(InputError, match="probes: 21 is not allowed; give 1 to 20, the lists"):
        report(index, str(tmp_path / "out"), settings)
    assert not (tmp_path / "out").exists()
