"""`calibrate compare`: two embeddings on their common words, against each measured alone."""

from __future__ import annotations

import itertools
import json
import math
import string
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import pytest

from quietcorpus.evaluation.calibration import child, choose_words, measure
from quietcorpus.evaluation.simulation import VectorSimulator
from quietcorpus.indexes.tokens.tokenizer import NAME
from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.indexes.words.manifest import METRICS, IndexManifest
from quietcorpus.indexes.words.word_index import WordIndex
from quietcorpus.pipelines.kinds.words.compare import compare
from quietcorpus.pipelines.kinds.words.compare_report import ComparisonSettings, lines
from quietcorpus.transforms.errors import InputError

WORDS = ["".join(letters) for letters in itertools.product(string.ascii_lowercase, repeat=2)]
EPSILONS = (Fraction(2), Fraction(4), Fraction(8), Fraction(16))
SETTINGS = ComparisonSettings(EPSILONS, words=140, draws=120, seed=7)
FILES = [
    "comparison.json",
    "comparison.parquet",
    "comparison.png",
    "comparison.svg",
    "histograms.png",
    "histograms.svg",
]


def index_of(words: list[str], vectors: npt.NDArray[np.float32], name: str) -> WordIndex:
    apart = {metric: {"mean": "1", "maximum": "2", "largest_met": "2"} for metric in METRICS}
    size, width = vectors.shape
    files = ({"path": "vectors.npy", "bytes": vectors.nbytes, "sha256": name},)
    manifest = IndexManifest(
        "public", None, {"uri": name}, size, width, 64, NAME, 0, {}, apart, "t", files
    )
    return WordIndex(manifest, Vocabulary(words), vectors, None)


def vectors_of(count: int, width: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(width).normal(size=(count, width)).astype(np.float32)


@pytest.fixture(scope="module")
def first() -> WordIndex:
    return index_of(WORDS[:300], vectors_of(300, 8), "one")


@pytest.fixture(scope="module")
def second() -> WordIndex:
    """An index of other words too, in another order, and denser."""
    return index_of(WORDS[100:400][::-1], vectors_of(300, 5) / 2, "other")


def test_each_embedding_has_the_common_words_alone(
    first: WordIndex, second: WordIndex, tmp_path: Path
) -> None:
    # Kills: rows of other words, words that one alone has, the other embedding's numbers, noise of
    # another seed, nats for bits, epsilons of other rows.
    found = compare(first, second, str(tmp_path / "out"), SETTINGS)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES
    assert json.loads((tmp_path / "out" / FILES[0]).read_text()) == found
    assert found["common_words"] == 200
    assert found["most_bits"] == pytest.approx(math.log2(200))
    seed = np.random.SeedSequence(7)
    words = choose_words(200, 140, child(seed, 0))
    table = pq.read_table(tmp_path / "out" / FILES[1])
    vectors = {"A": first.vectors[100:], "B": second.vectors[100:][::-1]}
    for number, (name, own) in enumerate(vectors.items()):
        simulator = VectorSimulator(np.ascontiguousarray(own))
        epsilons = [float(epsilon) for epsilon in EPSILONS]
        again = measure(simulator, words, epsilons, 120, 114, child(seed, 1 + number))
        rows = table.filter(np.array(table["embedding"].to_pylist()) == name)
        columns = {key: rows[key].to_numpy().reshape(4, 140) for key in rows.column_names[1:]}
        np.testing.assert_array_equal(columns["epsilon"], np.tile(epsilons, (140, 1)).T)
        np.testing.assert_array_equal(
            columns["word"], np.tile(np.array(WORDS[100:])[words], (4, 1))
        )
        np.testing.assert_allclose(columns["unchanged"] * 120, again.unchanged)
        np.testing.assert_array_equal(columns["set_size"], again.set_size)
        np.testing.assert_array_equal(columns["distinct"], again.distinct)
        np.testing.assert_allclose(columns["h_0"], np.log2(again.set_size))
        seen = again.unchanged > 0
        np.testing.assert_allclose(
            columns["h_infinity"][seen], -np.log2(again.unchanged[seen] / 120)
        )
        assert rows["h_infinity"].null_count == (~seen).sum()
        for e, row in enumerate(found["by_epsilon"]):
            assert row["epsilon"] == epsilons[e]
            assert row[name]["unchanged"]["mean"] == pytest.approx(again.unchanged_share[e].mean())
            assert row[name]["set_size"]["mean"] == pytest.approx(again.set_size[e].mean())
            median = np.quantile(np.log2(again.set_size[e]), 0.5, method="inverted_cdf")
            assert row[name]["h_0"]["quantiles"][2] == pytest.approx(median)
            for key in ("unchanged", "set_size", "distinct"):
                assert sum(row[name]["histograms"][key]) == 140
                assert len(found["bars"][key]) == len(row[name]["histograms"][key]) + 1


@pytest.mark.slow
def test_distances_are_those_among_the_common_words(
    first: WordIndex, second: WordIndex, tmp_path: Path
) -> None:
    # Kills: neighbours that the other lacks, the histogram of another rank or embedding.
    found = compare(first, second, str(tmp_path / "out"), SETTINGS)["neighbours"]
    words = choose_words(200, 140, child(np.random.SeedSequence(7), 0))
    for name, own in (("A", first.vectors[100:]), ("B", second.vectors[100:][::-1])):
        apart = np.linalg.norm(own[words][:, None].astype(float) - own, axis=2)
        tenth = np.sort(apart, axis=1)[:, 10]
        quantiles = np.quantile(tenth, [0.05, 0.25, 0.5, 0.75, 0.95], method="inverted_cdf")
        assert found[name][found["ranks"].index(10)] == pytest.approx(quantiles.tolist())
        counts = np.histogram(tenth, found["histogram"]["bars"])[0]
        assert found["histogram"][name] == counts.tolist()
        assert sum(found["histogram"][name]) == 140
    assert found["ranks"] == [1, 2, 5, 10, 20, 50, 100]


def test_an_embedding_scaled_by_two_needs_half_the_epsilon(
    first: WordIndex, tmp_path: Path
) -> None:
    # The law is the same at half the epsilon: a known answer, up to draws. Blocks of words share
    # 400 draws, so that the error of a mean is below .5 / sqrt(400) = .025, of a curve that rises
    # from .1 to .9 over a factor of four: 5 % of an epsilon or less.
    # Kills: the ratio upside down, the curve of the first searched for the first.
    doubled = index_of(WORDS[:300], first.vectors * 2, "doubled")
    grid = tuple(Fraction(x) for x in (1, 2, 3, 4, 6, 8))
    settings = ComparisonSettings(grid, words=200, draws=400, seed=3)
    found = compare(first, doubled, str(tmp_path / "out"), settings)
    pairs = [pair for pair in found["equal"] if pair["B_by_unchanged"] is not None]
    assert len(pairs) >= 2
    for pair in pairs:
        assert pair["B_by_unchanged"] == pytest.approx(pair["A"] / 2, rel=0.05)
        if pair["B_by_set_size"] is not None:
            assert pair["B_by_set_size"] == pytest.approx(pair["A"] / 2, rel=0.05)
    assert any(pair["B_by_set_size"] is not None for pair in pairs)


@pytest.mark.slow
def test_the_number_of_threads_does_not_show(
    first: WordIndex, second: WordIndex, tmp_path: Path
) -> None:
    for name, workers in (("one", 1), ("two", 2)):
        compare(first, second, str(tmp_path / name), SETTINGS, workers=workers)
    for name in FILES:
        one, two = ((tmp_path / folder / name).read_bytes() for folder in ("one", "two"))
        assert one == two


@pytest.mark.slow
def test_the_table_shows_what_was_found(
    first: WordIndex, second: WordIndex, tmp_path: Path
) -> None:
    # Kills: A and B swapped in a column, a missing value that breaks the table.
    found = compare(first, second, str(tmp_path / "out"), SETTINGS)
    table = list(lines(found))
    assert table[0] == found["title"]
    assert "of both: 120 draws for each of 140 words" in table[0]
    row = found["by_epsilon"][1]
    (line,) = [line for line in table if line.split()[:1] == ["4"] and len(line.split()) == 11]
    shown = [float(cell) for cell in line.split()[1:5]]
    assert shown == [
        pytest.approx(row[name][key]["mean"], abs=0.051)
        for key in ("unchanged", "set_size")
        for name in ("A", "B")
    ]
    found["equal"][0]["B_by_unchanged"] = None
    assert "-" in "".join(lines(found))


def refused(first: WordIndex, second: WordIndex, output: Path, **changes: Any) -> str:
    with pytest.raises(InputError) as error:
        compare(first, second, str(output), replace(SETTINGS, **changes))
    assert not output.exists()
    message = str(error.value)
    assert "\n" not in message
    return message


def test_what_cannot_be_compared_is_refused(
    first: WordIndex, second: WordIndex, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    strangers = index_of([f"z{word}" for word in WORDS[:50]], vectors_of(50, 4), "strangers")
    assert "second: it has 0 words of the first; a comparison needs more than 10" in refused(
        first, strangers, output
    )
    ten = index_of(WORDS[:10], vectors_of(10, 4), "ten")
    assert "second: it has 10 words of the first" in refused(first, ten, output)
    assert "second: it has the vectors of the first" in refused(first, first, output)
    thai = {"name": "icu-words-v2", "language": "th"}
    other = WordIndex(
        replace(second.manifest, tokenizer=thai), second.vocabulary, second.vectors, None
    )
    assert "second: its tokenizer is not the first one's" in refused(first, other, output)
    assert "compare: eta is 2" in refused(first, second, output, eta=Fraction(2))
