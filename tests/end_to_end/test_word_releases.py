"""Releases of real text, word by word: what is in them, and what their cards say of them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import jsonschema
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pytest
from ruamel.yaml import YAML
from scipy.spatial.distance import cdist, pdist

from quietcorpus.indexes.tokenizer import tokenize
from quietcorpus.indexes.word_index import WordIndex, open_index
from quietcorpus.mechanisms.document_loss import brr_epsilon, madlib_epsilon

if TYPE_CHECKING:
    from tests.conftest import Workspace

SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "release.schema.json"
EPSILON = {"madlib": 20, "brr": 0.4}  # at which a good part of the words comes back unchanged
POLICY = {"madlib": "drop", "brr": "draw"}
INPUT = {"path": "input/*.parquet", "keep": ["article"]}
ALPHA = 1e-6
DEVIATIONS = 4.9  # of a normal, for ALPHA


def tokens_of(texts: list[str]) -> list[list[str]]:
    """The tokens of each text."""
    found = tokenize(pa.array(texts))
    raw = found.data.tobytes()
    words = [raw[a:b].decode() for a, b in zip(found.starts, found.ends, strict=True)]
    return [words[a:b] for a, b in itertools.pairwise(found.offsets)]


@pytest.fixture(scope="module")
def index(word_index: Path) -> WordIndex:
    return open_index(str(word_index))


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


def corpus(workspace: Workspace, texts: list[str]) -> None:
    """Texts under their numbers."""
    workspace.parquet({"text": texts, "article": range(len(texts))}, row_group_size=64)


def texts_of(workspace: Workspace) -> list[str]:
    """The released texts, by number."""
    rows = sorted(workspace.rows(), key=lambda row: row["article"])
    assert [row["article"] for row in rows] == list(range(len(rows)))
    return [row["text"] for row in rows]


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


def test_the_release_verifies(release: Workspace) -> None:
    done = release.run("verify", "released/out")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("verified  released/out: 1 files are as release.json says")
    assert " * d a word" in done.stdout


def simulated(
    index: WordIndex, mechanism: str, epsilon: float, words: npt.NDArray[np.int64]
) -> Any:
    """The mechanism again, from its definition alone: the released ids."""
    random = np.random.default_rng()
    if mechanism == "madlib":
        directions = random.normal(size=(len(words), index.vectors.shape[1]))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        lengths = random.gamma(index.vectors.shape[1], 1 / epsilon, (len(words), 1))
        noisy = index.vectors[words] + directions * lengths
        return np.concatenate(
            [cdist(some, index.vectors).argmin(axis=1) for some in np.array_split(noisy, 32)]
        )
    bits = np.unpackbits(np.array(index.codes).view(np.uint8), axis=1).astype(np.float32)
    flipped = random.random((len(words), bits.shape[1])) < 1 / (1 + np.exp(epsilon))
    noisy = np.where(flipped, 1 - bits[words], bits[words])
    # |a - b| = a + b - 2ab for bits: integers, exact in float32.
    return np.concatenate(
        [
            (bits.sum(axis=1) - 2 * some @ bits.T).argmin(axis=1)
            for some in np.array_split(noisy, 32)
        ]
    )


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
    jsonschema.validate(card, json.loads(SCHEMA.read_text()))
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
            brr_epsilon(epsilon, distance, row["words"], delta)
            if dimensions is None
            else madlib_epsilon(dimensions, epsilon, distance, row["words"], delta)
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
    assert card["guarantee"]["statement"] in text
    for line in card["guarantee"]["not_protected"]:
        assert f"- {line}\n" in text
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
    assert card["artefacts"][0]["digest"] in text
    assert "`text`, the released words" in text


def test_duckdb_and_polars_read_it(release: Workspace) -> None:
    files = f"{release.output}/data/*.parquet"
    frame = pl.read_parquet(files)
    assert dict(frame.schema) == {"id": pl.String, "article": pl.Int64, "text": pl.String}
    words = duckdb.sql(
        f"""select count(*) from (select unnest(string_split(text, ' ')) from '{files}')"""
    ).fetchall()[0][0]
    assert words == frame["text"].str.split(" ").list.len().sum()


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


def test_an_epsilon_for_the_document(
    workspace: Workspace, words: Callable[..., dict[str, Any]], index: WordIndex
) -> None:
    # Documents of 20 words have a hundred times the epsilon a word of those of 2,000. Kills: the
    # whole epsilon for every word, or one share for all documents of a batch.
    total = 40_000.0
    word = index.vocabulary.terms.to_pylist().index("police")
    short, long = ["police " * 20] * 64, ["police " * 2000] * 8
    corpus(workspace, [text for pair in zip(short[::8], long, strict=True) for text in pair])
    changes = words(epsilon=..., document_epsilon=int(total))
    workspace.release({"input": INPUT} | changes)
    released = texts_of(workspace)
    assert set(" ".join(released[::2]).split()) == {"police"}
    again = " ".join(released[1::2]).split()
    assert len(again) == 8 * 2000
    share = np.mean([word == "police" for word in again])
    drawn = simulated(index, "madlib", total / 2000, np.full(len(again), word))
    bound = DEVIATIONS * np.sqrt(0.5 / len(again))
    assert abs(share - (drawn == word).mean()) < bound
    assert 2 * bound < share < 1 - 2 * bound  # or it would say little

    card = workspace.card()
    assert card["guarantee"]["parameters"]["per"] == "document"
    assert card["mechanism"]["document_epsilon"] == total
    assert "epsilon" not in card["mechanism"]
    assert "divided by the number of words of its released text" in card["guarantee"]["statement"]
    assert [(t["document_words"], t["epsilon"]) for t in card["meaning"]["typical"]] == [
        (words, total / words) for words in (1, 10, 100, 1000)
    ]
    # The worst case is of the document, whatever its length.
    rows = card["meaning"]["document_losses"]["documents"]
    assert {row["worst"] for row in rows} == {card["meaning"]["loss_at_maximum"]}
    assert rows[3]["epsilon_at_maximum"] < rows[0]["epsilon_at_maximum"]
    readme = (workspace.output / "README.md").read_text()
    assert f"epsilon {total:g} * d a word shared by a document's words" in readme
    assert workspace.run("verify", "released/out").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["madlib", "brr"])
def test_an_epsilon_and_a_delta_for_whole_documents(
    mechanism: str,
    workspace: Workspace,
    words: Callable[..., dict[str, Any]],
    index: WordIndex,
) -> None:
    # Kills: a bound at the mean distance, a limit that is not kept, a card without the promise.
    corpus(workspace, ["police in the city said " * 10, "the city", ""])
    budget = {"epsilon": 30, "delta": 1e-5, "words": 20}
    asked = words(mechanism=mechanism, epsilon=..., document_epsilon=budget)
    refused = workspace.run("release", str(workspace.spec({"input": INPUT} | asked)))
    assert refused.returncode == 2
    assert "mechanism.document_epsilon.words: a document has more than 20 words" in refused.stderr
    assert "police" not in refused.stderr
    assert not workspace.output.exists()

    cut = words(mechanism=mechanism, epsilon=..., document_epsilon=budget | {"longer": "cut"})
    workspace.release({"input": INPUT} | cut)
    assert sorted(len(text.split()) for text in texts_of(workspace)) == [0, 2, 20]
    card = workspace.card()
    jsonschema.validate(card, json.loads(SCHEMA.read_text()))
    assert card["mechanism"]["document_epsilon"] == budget | {
        "longer": "cut",
        "delta": pytest.approx(1e-5, rel=1e-12),
    }
    assert "epsilon" not in card["mechanism"]
    epsilon = Fraction(card["mechanism"]["epsilon_exact"])
    assert card["guarantee"]["parameters"]["per"] == "word"
    assert Fraction(card["guarantee"]["parameters"]["epsilon_exact"]) == epsilon
    maximum, delta = Fraction(card["meaning"]["maximum_distance"]), Fraction(1, 10**5)
    if mechanism == "madlib":
        found = madlib_epsilon(index.vectors.shape[1], epsilon, maximum, 20, delta)
    else:
        found = brr_epsilon(epsilon, maximum, 20, delta)
    assert 29.5 < found < 30.001
    assert epsilon * maximum * 20 > 30
    losses = card["meaning"]["document_losses"]
    assert losses["delta"] == 1e-5
    assert [row["words"] for row in losses["documents"]] == [1, 20, 200, 1000]
    readme = (workspace.output / "README.md").read_text()
    assert "epsilon = 30 at most and delta = 1e-5: `epsilon_exact`, of every word" in readme
    assert workspace.run("verify", "released/out").returncode == 0


@pytest.mark.parametrize(("key", "by"), [("epsilon", None), ("document_epsilon", "maximum")])
def test_a_matched_epsilon_is_exactly_the_ratio_times_the_other(
    workspace: Workspace,
    words: Callable[..., dict[str, Any]],
    word_index: Path,
    key: str,
    by: str | None,
) -> None:
    matching = {"mechanism": "madlib", "epsilon": 10} | ({"by": by} if by else {})
    changes = words(**{"mechanism": "brr", "epsilon": ..., key: {"matching": matching}})
    workspace.release(changes)
    distances = json.loads((word_index / "manifest.json").read_text())["distances"]
    theirs, ours = (distances[m][by or "mean"] for m in ("euclidean", "hamming"))
    expected = Fraction(theirs) / Fraction(ours) * 10
    card = workspace.card()
    assert card["guarantee"]["parameters"]["epsilon_exact"] == str(expected)
    assert card["mechanism"]["epsilon_exact"] == str(expected)
    # The decimal on the card never understates it.
    assert Fraction(card["mechanism"][key]) >= expected
    assert card["mechanism"][key] == pytest.approx(float(expected), rel=1e-15)
    # So the loss at the chosen distance is the other mechanism's.
    loss = card["meaning"]["loss_at_maximum" if by == "maximum" else "loss_at_mean"]
    assert loss == pytest.approx(10 * float(Fraction(theirs)))
    assert workspace.run("verify", "released/out").returncode == 0
