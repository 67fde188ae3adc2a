"""Releases of real text, word by word: what is in them, and what their cards say of them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from card_schema import assert_valid
from ruamel.yaml import YAML
from scipy.spatial.distance import pdist
from word_releases import ALPHA, DEVIATIONS, INPUT, corpus, simulated, texts_of

from quietcorpus.indexes.tokens.tokenizer import tokenize
from quietcorpus.indexes.words.word_index import WordIndex
from quietcorpus.mechanisms.words.document_loss import Flips, Noise

if TYPE_CHECKING:
    from tests.conftest import Workspace

EPSILON = {"madlib": 20, "brr": 0.4}  # at which a good part of the words comes back unchanged
POLICY = {"madlib": "drop", "brr": "draw"}


def tokens_of(texts: list[str]) -> list[list[str]]:
    """The tokens of each text."""
    found = tokenize(pa.array(texts))
    raw = found.data.tobytes()
    words = [raw[a:b].decode() for a, b in zip(found.starts, found.ends, strict=True)]
    return [words[a:b] for a, b in itertools.pairwise(found.offsets)]


@pytest.fixture(scope="module", params=["madlib", "brr"])
def release(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    new_workspace: Callable[[Path], Workspace],
    words: Callable[..., dict[str, Any]],
    lee_texts: list[str],
) -> Workspace:
    """A workspace with a release of the Lee corpus."""
    workspace = new_workspace(tmp_path_factory.mktemp(request.param))
    corpus(workspace, lee_texts)
    name = request.param
    policy = {"mechanism": name, "epsilon": EPSILON[name], "out_of_vocabulary": POLICY[name]}
    workspace.release({"input": INPUT} | words(**policy))
    return workspace


@pytest.mark.slow
def test_the_released_text(release: Workspace, index: WordIndex, lee_texts: list[str]) -> None:
    card = release.card()
    draws = card["mechanism"]["out_of_vocabulary"] == "draw"
    vocabulary = set(index.vocabulary.terms.to_pylist())
    released = texts_of(release)
    assert len(released) == len(lee_texts) == card["counts"]["documents"]
    for text, tokens in zip(released, tokens_of(lee_texts), strict=True):
        words = text.split(" ")
        assert len(words) == sum(draws or token in vocabulary for token in tokens)
        assert set(words) <= vocabulary
        assert text == text.lower()
    # A column of the input's and nothing else of it; rows in an order of their own.
    assert set(release.rows()[0]) == {"id", "article", "text"}
    order = [
        row["article"] for row in pl.read_parquet(release.output / "data/*.parquet").to_dicts()
    ]
    assert order != sorted(order)


@pytest.mark.slow
def test_words_are_replaced_by_the_law(
    release: Workspace, index: WordIndex, lee_texts: list[str]
) -> None:
    # Of n words, each unchanged with a chance of its own and independently of the others, the
    # share of unchanged ones deviates by at most 1 / (2 sqrt(n)), and the difference of two such
    # by at most sqrt(2) of that. Fresh draws from the definition are the other one.
    # Kills: a wrong scale of the noise, words of another position, an approximate search.
    mechanism = release.card()["mechanism"]["mechanism"]
    ids = {word: number for number, word in enumerate(index.vocabulary.terms.to_pylist())}
    before = np.array([ids.get(t, -1) for tokens in tokens_of(lee_texts) for t in tokens])
    if mechanism == "madlib":
        before = before[before >= 0]
    after = np.array([ids[word] for text in texts_of(release) for word in text.split()])
    known = before >= 0
    share = (before == after)[known].mean()
    bound = DEVIATIONS * np.sqrt(0.5 / known.sum())
    assert known.sum() > 30_000
    for factor, same in ((1, True), (1.15, False)):
        expected = simulated(index, mechanism, factor * EPSILON[mechanism], before[known])
        # The negative control: an epsilon a seventh higher is told apart.
        assert (abs(share - (expected == before[known]).mean()) < bound) == same
    # Words that the index lacks become uniform ones: all words are met about equally often. By
    # Hoeffding, the share of either half of the vocabulary deviates from 1/2 by less than the
    # bound, at ALPHA / 2 on either side.
    drawn = after[~known]
    if mechanism == "brr":
        assert len(drawn) > 10_000
        bound = np.sqrt(np.log(2 / ALPHA) / 2 / len(drawn))
        middle = len(index.vectors) // 2
        assert abs((drawn < middle).mean() - middle / len(index.vectors)) < bound
        # The negative control: the neighbours of what is common are not uniform.
        assert abs((after[known] < middle).mean() - middle / len(index.vectors)) > bound


@pytest.mark.slow
def test_the_card_says_what_epsilon_means(release: Workspace, index: WordIndex) -> None:
    card = release.card()
    assert_valid(card)
    mechanism = card["mechanism"]["mechanism"]
    if mechanism == "madlib":
        distances = pdist(index.vectors.astype(np.float64))
    else:
        bits = np.unpackbits(np.array(index.codes).view(np.uint8), axis=1)
        distances = pdist(bits, "hamming") * bits.shape[1]
    meaning = card["meaning"]
    assert meaning["mean_distance"] == pytest.approx(distances.mean(), rel=1e-9)
    assert meaning["maximum_distance"] == pytest.approx(distances.max(), rel=1e-9)
    epsilon = EPSILON[mechanism]
    assert meaning["loss_at_mean"] == pytest.approx(epsilon * distances.mean(), rel=1e-9)
    assert meaning["loss_at_maximum"] == pytest.approx(epsilon * distances.max(), rel=1e-9)
    assert meaning["loss_of_documents"] == {
        str(n): pytest.approx(n * epsilon * distances.mean()) for n in (10, 100, 1000)
    }
    (typical,) = meaning["typical"]
    assert typical["epsilon"] == epsilon
    # N_w from draws of our own, 100 for every word: the quantiles of the two samples agree within
    # a tenth, which is many deviations (a quantile of 256 words has one of about 0.03).
    words = np.repeat(np.arange(len(index.vectors)), 100)
    same = (simulated(index, mechanism, epsilon, words) == words).reshape(-1, 100).mean(axis=1)
    for name, quantile in (("low", 0.05), ("median", 0.5), ("high", 0.95)):
        assert abs(typical["unchanged"][name] - np.quantile(same, quantile)) < 0.15
    for part in ("unchanged", "set_size"):
        names = ("least", "low", "median", "high", "largest")
        assert sorted(typical[part].values()) == [typical[part][name] for name in names]
    assert typical["set_size"]["least"] >= 1
    assert typical["set_size"]["largest"] <= typical["set_size_limit"] <= 256


def test_the_card_says_what_documents_are_protected_by(
    release: Workspace, index: WordIndex
) -> None:
    # Kills: another dimension, mean and maximum exchanged, a row of another length.
    card = release.card()
    mechanism, meaning = card["mechanism"]["mechanism"], card["meaning"]
    epsilon, delta = Fraction(str(EPSILON[mechanism])), Fraction(1, 10**6)
    distances = [Fraction(meaning[f"{name}_distance"]) for name in ("mean", "maximum")]
    losses = meaning["document_losses"]
    dimensions = index.vectors.shape[1] if mechanism == "madlib" else None
    assert (losses["delta"], losses.get("dimensions")) == (1e-6, dimensions)
    assert [row["words"] for row in losses["documents"]] == [1, 20, 200, 1000]
    section = (release.output / "README.md").read_text().split("## What epsilon means here\n")[1]
    for row in losses["documents"]:
        bounds = [
            Flips().document_epsilon(epsilon, distance, row["words"], delta)
            if dimensions is None
            else Noise(dimensions).document_epsilon(epsilon, distance, row["words"], delta)
            for distance in distances
        ]
        found = [row["epsilon_at_mean"], row["epsilon_at_maximum"]]
        assert found == pytest.approx(list(map(float, bounds)), rel=0.01)
        assert row["worst"] == pytest.approx(float(epsilon * distances[1] * row["words"]))
        assert found[0] <= found[1] <= row["worst"]
        (cells,) = re.findall(rf"^\| {row['words']:,} \| (.*) \|$", section, re.MULTILINE)
        shown = [float(cell) for cell in cells.split(" | ")]
        assert shown == pytest.approx([row["worst"], *reversed(found)], rel=1e-3)
        assert all(up >= value for up, value in zip(shown, [row["worst"], found[1]], strict=False))


def test_the_card_says_what_is_promised(release: Workspace, index: WordIndex) -> None:
    card = release.card()
    mechanism = card["mechanism"]["mechanism"]
    metric = {
        "madlib": "Euclidean distance of the words' vectors",
        "brr": "Hamming distance of the words' codes",
    }[mechanism]
    exact = str(Fraction(str(EPSILON[mechanism])))
    numbers = {"metric": metric, "epsilon": EPSILON[mechanism], "epsilon_exact": exact}
    parameters = numbers | {"per": "word"}
    promised = card["guarantee"]
    assert promised["parameters"] == parameters
    assert card["budget"] == {
        "stages": [{"stage": "documents", "parameters": parameters}],
        "total": parameters,
        "inherited": [],
    }
    assert promised["definition"] == "metric differential privacy"
    # A document's words compose: the statement is about the sum over them.
    assert f"exp({EPSILON[mechanism]} * d)" in promised["statement"]
    assert f"the sum, over the replaced words, of the {metric}" in promised["statement"]
    lines = " ".join(promised["not_protected"])
    assert "two documents of different lengths are told apart" in lines
    assert "the columns article" in lines
    assert ("floating-point noise" in lines) == (mechanism == "madlib")
    assert ("which of them the index lacks" in lines) == (POLICY[mechanism] == "draw")
    (source,) = card["artefacts"]
    assert source["uri"] == "built"
    assert source["provenance"] == "public"
    assert card["mechanism"]["words"] == len(index.vocabulary)
    # Rule 7: no exact statistic of the content, and no place on the machine.
    assert set(card["counts"]) == {"documents", "rejected"}
    assert "/built" not in json.dumps(card)


def test_the_readme_says_it_to_people(release: Workspace) -> None:
    text = (release.output / "README.md").read_text()
    card = release.card()
    meaning = card["meaning"]
    front = YAML(typ="safe").load(text.split("---\n")[1])
    assert front["pretty_name"] == "test"
    assert front["configs"][0]["data_files"] == [{"split": "train", "path": "data/*.parquet"}]
    section = text.split("## What epsilon means here\n")[1].split("\n## ")[0]
    cells = dict(re.findall(r"^\| (.*?) \| (.*?) \|$", section, re.MULTILINE))
    for name, value in [
        ("distance of two words, on average", meaning["mean_distance"]),
        ("distance of two words, at most", meaning["maximum_distance"]),
        ("loss (log of the factor), one word replaced at the mean", meaning["loss_at_mean"]),
        ("loss, one word replaced at the greatest distance", meaning["loss_at_maximum"]),
    ]:
        (shown,) = (cell for label, cell in cells.items() if label.startswith(name))
        assert float(shown) == pytest.approx(value, rel=1e-3)
        # Nothing that is promised is rounded down.
        assert "average" in name or float(shown) >= value
    for length in (10, 100, 1000):
        assert f"all {length:,} words of a document replaced" in section
    (typical,) = meaning["typical"]
    for spread, column in ((typical["unchanged"], "(N_w)"), (typical["set_size"], "(S_w)")):
        assert column in section
        assert f"{spread['median']:.3g} (" in section
    assert card["guarantee"]["parameters"]["metric"] in text.split("## What epsilon means")[0]
    assert "`text`, the released words" in text


def test_without_noise_to_speak_of_the_words_stay(
    workspace: Workspace,
    words: Callable[..., dict[str, Any]],
    index: WordIndex,
    lee_texts: list[str],
) -> None:
    # At epsilon = 10^6 the noise is some 10^-5 long, and no bit flips: every known word comes back
    # at its place. Kills: words that are shifted, batches that are mixed up, separators of another
    # kind, a dropped empty document.
    texts = ["", "12 #!", *lee_texts[:150], "Police the zzqx police", "zzqx"]
    corpus(workspace, texts)
    vocabulary = set(index.vocabulary.terms.to_pylist())
    known = [" ".join(t for t in tokens if t in vocabulary) for tokens in tokens_of(texts)]
    workspace.release({"input": INPUT} | words(epsilon=1000000))
    assert texts_of(workspace) == known
    assert known[-2:] == ["police the police", ""]
