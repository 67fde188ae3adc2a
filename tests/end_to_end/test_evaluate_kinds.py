"""`quietcorpus evaluate` for releases of words, of sentence embeddings and of histograms."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from evaluations import (
    CANARY,
    CLASSES,
    assert_silent,
    content_of,
    evaluate,
    figures,
    write_corpus,
)
from scipy import stats
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quietcorpus.evaluation import results
from quietcorpus.indexes.documents.candidates import open_candidates
from quietcorpus.indexes.documents.recoder import means
from quietcorpus.indexes.tokens.segmentation import split
from quietcorpus.indexes.tokens.tokenizer import tokenize
from quietcorpus.indexes.words.word_index import open_index
from quietcorpus.pipelines.evaluate.definition import EXACT, OF_WORDS
from quietcorpus.pipelines.kinds.sentence_embeddings.study import BY_WORDS
from quietcorpus.transforms.artefacts.encoder import PACKAGED, EncoderSource

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Workspace

pytestmark = pytest.mark.slow

ALPHA = 1e-6
DOCUMENTS = 120
KEPT = {"path": "input/*.parquet", "id": "article", "keep": ["article"]}
SECRETS = [CANARY, *CLASSES, "somebody-1", "paper-17"]


def linked_by_chance(draws: int) -> float:
    """More than this share of documents is linked by chance with a probability below ALPHA: a
    permutation has about a Poisson number of fixed points, of mean 1."""
    return float(stats.poisson.isf(ALPHA, draws)) / draws / DOCUMENTS


@pytest.mark.parametrize("mechanism", ["madlib", "brr", "tem"])
def test_words(
    workspace: Workspace,
    lee_texts: list[str],
    words: Callable[..., dict[str, Any]],
    mechanism: str,
) -> None:
    write_corpus(workspace, lee_texts[:DOCUMENTS], telling="government")
    policy = {"madlib": "drop", "brr": "draw", "tem": "drop"}[mechanism]
    epsilon = {"madlib": 25, "brr": 0.5, "tem": 15}[mechanism]
    block = words(mechanism=mechanism, epsilon=epsilon, out_of_vocabulary=policy)
    workspace.release({"input": KEPT} | block)
    faint = {"madlib": "0.01", "brr": "0.001", "tem": "0.01"}[mechanism]
    sweep = ("--sweep", f"epsilon={faint}", "--no-audit")
    public = pa.table({"text": lee_texts[DOCUMENTS:]})
    pq.write_table(public, workspace.folder / "public.parquet")
    learnt = ("--public-text", "public.parquet", "--user", "user") if mechanism != "brr" else ()
    done = evaluate(workspace, "--label", "label", "--draws", "2", *sweep, *learnt)
    assert done.returncode == 0, done.stderr
    content = content_of(workspace)
    own, lost = figures(content), figures(content, epsilon=faint)
    # With labels, users, vectors and public texts, a report of words has one comparison with noise
    # less than one of bags. Kills: an attack more than is corrected for, which ends a user's run.
    compared = sum(one["against_noise"] is not None for one in content["figures"])
    assert compared == results.FAMILY - 1 if learnt else compared < results.FAMILY - 1
    # Against the release itself and the texts. Kills: words paired with others' places.
    index = open_index(block["mechanism"]["index"])
    known = set(index.vocabulary.terms.to_pylist())
    rows = pq.read_table(workspace.folder / "report/evaluation.parquet").to_pylist()
    (first,) = (
        row["value"]
        for row in rows
        if (row["measure"], row["subject"], row["draw"], row["setting"])
        == ("unchanged", "release", 0, [])
    )
    assert first == pytest.approx(unchanged(workspace, known, draws=policy == "draw"))
    # A share that is unchanged is what the plain guess recovers, and more is by chance alone.
    assert own["inversion-nearest", "release"] == pytest.approx(own["unchanged", "release"])
    assert own["inversion-bayes", "release"] >= own["inversion-nearest", "release"] - 0.02
    for guess in ("inversion-bayes", "inversion-nearest"):
        assert own[guess, "release"] > 3 * own[guess, "noise"]
        assert lost[guess, "release"] < 0.1
    assert_expected(own, lost)
    around = figures(content, "by the words around")
    if learnt:
        assert around["inversion-bayes", "release"] >= own["inversion-bayes", "release"] - 0.05
        assert around["inversion-bayes", "release"] > 3 * around["inversion-bayes", "noise"]
    else:
        assert ("inversion-bayes", "release") not in around
    by_words, faintly = (figures(content, "by words", **s) for s in ({}, {"epsilon": faint}))
    assert by_words["linkage", "release"] > 0.5
    assert faintly["linkage", "release"] < 0.1
    assert by_words["linkage", "noise"] <= linked_by_chance(2)
    # The length of a text stays, whatever the noise: alone it gives many away. Kills: an attacker
    # who ignores it, and a control in which texts keep it, so that chance seems to do as well.
    at_length = figures(content, "by likelihood", epsilon=faint)
    assert at_length["linkage", "release"] > 0.3
    assert at_length["linkage", "noise"] <= linked_by_chance(2)
    assert_likeliest(content, {}, 0.05)
    lengths = Counter(len(row["text"].split(" ")) for row in workspace.rows())
    assert_likeliest(content, {"epsilon": faint}, by_lengths_alone(lengths))
    assert own["inversion-bayes", "floor"] <= own["unchanged", "release"]
    assert own["f1", "original"] > 0.9
    assert own["f1", "release"] > 0.6  # tested on texts as they are
    assert own["similarity", "release"] > lost["similarity", "release"]
    assert content["audits"] is None
    assert_silent(workspace, done.stdout + done.stderr, SECRETS)


WAYS = "likelihood", "all rows together", "words", "mean vectors"


def by_lengths_alone(lengths: Counter[int]) -> float:
    """Two attackers who know lengths alone differ by more with a probability below ALPHA: each
    links a number of variance 1 at most of the documents of one length, and by two draws."""
    shared = sum(count > 1 for count in lengths.values())
    return float(stats.norm.isf(ALPHA / 10)) * math.sqrt(shared) / DOCUMENTS


def assert_likeliest(content: dict[str, Any], setting: dict[str, Any], margin: float) -> None:
    """Assert that no way links more than likelihoods do, and the noise itself as much."""
    # Kills: another setting's law, places of released words that are mixed up, an attacker who sees
    # the noise of another epsilon.
    ways = [figures(content, f"by {way}", **setting) for way in WAYS]
    shares = [each["linkage", "release"] for each in ways]
    assert max(shares[2:]) <= max(shares[:2]) + margin
    assert shares[1] >= shares[0] - margin
    assert max(each["linkage", "noise"] for each in ways) <= linked_by_chance(2)
    seen = figures(content, "by the noise itself", **setting)
    assert seen.get(("linkage", "guarantee"), 1.0) >= max(shares) - margin
    told = figures(content, "by the noise's exact law", **setting)
    assert 0.5 <= told["definition", "release"] <= told["definition", "guarantee"] <= 1


def assert_expected(own: dict[tuple[str, str], float], lost: dict[tuple[str, str], float]) -> None:
    """Assert that what is expected of the best attacker lies between its references."""
    name = "inversion-expected"
    for found in (own, lost):
        assert (
            found[name, "floor"] - 0.02 <= found[name, "release"] <= found[name, "guarantee"] + 0.02
        )
    # At next to no epsilon, nothing is learnt; and the guarantee says so.
    assert lost[name, "release"] < own[name, "release"] / 2
    assert lost[name, "guarantee"] < 2 * lost[name, "floor"]


def unchanged(workspace: Workspace, known: set[str], *, draws: bool) -> float:
    """The share of words that the index knows that are released as they were."""
    texts = pq.read_table(workspace.folder / "input/corpus.parquet")["text"].to_pylist()
    rows = {row["id"]: row["text"].split(" ") for row in workspace.rows()}
    counts: Counter[bool] = Counter()
    for number, text in enumerate(texts):
        tokens = tokenize(pa.array([text]))
        spans = zip(tokens.starts, tokens.ends, strict=True)
        before = [bytes(tokens.data[start:end]).decode() for start, end in spans]
        before = before if draws else [word for word in before if word in known]
        pairs = zip(before, rows[f"paper-{number}"], strict=True)
        counts.update(word == after for word, after in pairs if word in known)
    return counts[True] / counts.total()


def test_sentences(
    workspace: Workspace,
    lee_texts: list[str],
    sentences: Callable[..., dict[str, Any]],
    candidates: Path,
) -> None:
    write_corpus(workspace, lee_texts[-DOCUMENTS:])
    workspace.release({"input": KEPT} | sentences(epsilon=40))
    sweep = ("--sweep", "epsilon=0.001", "--no-audit")
    done = evaluate(workspace, "--label", "label", "--draws", "2", *sweep)
    assert done.returncode == 0, done.stderr
    content = content_of(workspace)
    own, lost = figures(content), figures(content, epsilon="0.001")
    assert own["linkage", "original"] > 0.95
    assert own["linkage", "release"] > 3 / DOCUMENTS  # a few sentences, at a large epsilon
    for known in ("1 sentence", "3 sentences", "5 sentences"):
        found = figures(content, f"by {known}")
        assert found["facts", "noise"] <= linked_by_chance(2) < found["facts", "original"]
    assert own["linkage", "noise"] <= linked_by_chance(2)
    # Independent of the documents: each is right with 1 / 120, of 240.
    assert lost["linkage", "release"] * 240 <= stats.binom.isf(ALPHA, 240, 1 / 100)
    # The definition's attacker, of one sentence: by the range of an exponential mechanism.
    law, faint = figures(content, EXACT), figures(content, EXACT, epsilon="0.001")
    assert law["definition", "guarantee"] == pytest.approx(1 / (1 + math.exp(-20)))
    assert 0.55 < law["definition", "release"] <= law["definition", "guarantee"]
    assert law["definition-power", "release"] <= law["definition-power", "guarantee"] + 1e-3
    assert faint["definition", "release"] == pytest.approx(0.5, abs=1e-3)
    assert own["f1", "original"] > lost["f1", "release"]
    assert any(one["group"].startswith("k = ") for one in content["figures"])
    assert ("f1", "original") in figures(content, "network")
    for name in ("network", "learnt from originals", "network learnt from originals"):
        assert 0 < figures(content, name)["accuracy", "release"] < 1
    assert_as_published(workspace, candidates)
    assert_silent(workspace, done.stdout + done.stderr, SECRETS)


def assert_as_published(workspace: Workspace, candidates: Path) -> None:
    """Assert that the paper's protocol is what scikit-learn finds for the release itself.

    Kills: models that learn from means that are not recoded, or from released rows; rows that are
    not recoded; documents without noise in place of rows; two layers; models of the rows they are
    tested on.
    """
    found = open_candidates(str(candidates))
    read = pq.read_table(workspace.folder / "input/corpus.parquet").to_pydict()
    sentences = split(read["text"], 4, "en")
    encoder = EncoderSource.resolve("encoder", PACKAGED).open()
    embeddings = encoder.encode(sentences.texts)
    recoded = means(found.recoder.recode(embeddings), sentences.offsets)
    chosen = {row["id"]: row["candidate"] for row in workspace.rows()}
    drawn = np.array([chosen[article] for article in read["article"]])
    labels = np.unique(read["label"], return_inverse=True)[1]

    def scored(known: np.ndarray, tested: np.ndarray, layers: int = 4, number: int = 0) -> float:
        told = np.empty_like(labels)
        splitter = StratifiedKFold(5, shuffle=True, random_state=number)
        for rest, fold in splitter.split(known, labels):
            network = MLPClassifier((64,) * layers, early_stopping=True, random_state=number)
            model = make_pipeline(StandardScaler(), network).fit(known[rest], labels[rest])
            told[fold] = model.predict(tested[fold])
        return float(f1_score(labels, told, average="macro"))

    rows = found.recoded[drawn]
    name = "network of four layers learnt from recoded originals"
    told = {
        row["subject"]: row["value"]
        for row in pq.read_table(workspace.folder / "report/evaluation.parquet").to_pylist()
        if (row["measure"], row["group"], row["draw"], row["setting"]) == ("f1", name, 0, [])
    }
    assert told["release"] == pytest.approx(scored(recoded, rows))
    assert told["original"] == pytest.approx(scored(recoded, recoded))
    # Control: the mutations have other scores.
    raw = means(embeddings, sentences.offsets), found.embeddings[drawn]
    mutations = [(recoded, recoded), (rows, rows), raw, (raw[0], raw[0]), (recoded, rows, 2)]
    for mutation in mutations:
        assert scored(*mutation) != pytest.approx(told["release"])


@pytest.mark.parametrize(
    ("block", "least"),
    [
        ({"utility": "similarity", "epsilon": 4_000}, 0.2),
        ({"mechanism": "projected-mean", "utility": ..., "epsilon": 10_000}, 0.9),
        # Of a mean, too.
        pytest.param(
            {"mechanism": "truncation", "utility": ..., "epsilon": 1_000},
            0.9,
            marks=pytest.mark.nightly,
        ),
    ],
    ids=["deep-candidate", "projected-mean", "truncation"],
)
def test_the_number_of_sentences_that_count(
    workspace: Workspace,
    lee_texts: list[str],
    static_sentences: Callable[..., dict[str, Any]],
    block: dict[str, Any],
    least: float,
) -> None:
    # Kills: attackers who take a draw's rows for those of as many sentences as the release counts,
    # and those with facts who do not go by where the noise is even.
    write_corpus(workspace, lee_texts[-DOCUMENTS:])
    workspace.release({"input": KEPT} | static_sentences(most_sentences=1, **block))
    sweep = ("--sweep", "most_sentences=12", "--no-audit")
    done = evaluate(workspace, "--label", "label", "--draws", "2", *sweep)
    assert done.returncode == 0, done.stderr
    content = content_of(workspace)
    for k, band in (({}, "k = 1 to 3"), ({"most_sentences": "12"}, "k = 8 to 15")):
        groups = {one["group"] for one in content["figures"] if one["setting"] == k}
        assert groups & {"k = 1 to 3", "k = 8 to 15"} == {band}
    assert figures(content, most_sentences="12")["linkage", "release"] > least
    for setting in ({}, {"most_sentences": "12"}):
        law = figures(content, EXACT, **setting)
        for measure in ("definition", "definition-power", "definition-power-low"):
            assert 0 < law[measure, "release"] <= law[measure, "guarantee"] + 1e-3
    # Rows that are no candidates have no recoded means, and no reference to them.
    recoded = any("recoded" in one["group"] for one in content["figures"])
    assert recoded is ("mechanism" not in block)
    if block.get("mechanism") == "projected-mean":  # by cosines of embeddings it was .65
        known = figures(content, "by 3 sentences", most_sentences="12")
        assert known["facts", "release"] > 0.75
        every = figures(content, "by 3 sentences of every document", most_sentences="12")
        assert every["facts", "release"] > known["facts", "release"]


def test_encoded_words(
    workspace: Workspace,
    lee_texts: list[str],
    static_sentences: Callable[..., dict[str, Any]],
    word_index: Path,
) -> None:
    # Kills: linkage by simulated releases of other documents; no figure of the definition, or that
    # of sentences; a control in which rows stay in order.
    write_corpus(workspace, lee_texts[-DOCUMENTS:])
    block = {"mechanism": "madlib", "utility": ..., "index": str(word_index), "epsilon": 12}
    workspace.release({"input": KEPT} | static_sentences(most_sentences=2, **block))
    done = evaluate(workspace, "--draws", "1", "--user", "user", "--no-audit")
    assert done.returncode == 0, done.stderr
    content = content_of(workspace)
    own = figures(content)
    for way in ("", "by all rows together"):
        linked = figures(content, way)
        assert linked["linkage", "release"] > 0.3
        assert linked["linkage", "noise"] <= linked_by_chance(1)
    # Kills: no figure of the words, which tell more than their embeddings: 117 of the 120 documents
    # are told apart by theirs, each row by itself. (All embeddings together may link them all.)
    assert figures(content, BY_WORDS)["linkage", "guarantee"] > 0.9
    assert own["authorship", "noise"] < 0.5
    law = figures(content, OF_WORDS)
    assert 0.5 < law["definition", "release"] <= law["definition", "guarantee"] <= 1
    assert "knows all but one word of one document" in content["verdict"]["strongest"][0]
    assert_silent(workspace, done.stdout + done.stderr, SECRETS)


def test_histogram(workspace: Workspace, lee_texts: list[str]) -> None:
    write_corpus(workspace, lee_texts[:DOCUMENTS])
    block = {"kind": "histogram", "precision": 1, "epsilon": 1, "compression": ...}
    changes = {f"mechanism.{key}": value for key, value in block.items()}
    workspace.release({"input": {"path": "input/*.parquet"}} | changes)
    refused = evaluate(workspace, "--topics")
    assert refused.returncode == 2
    assert "--topics: a release of the kind histogram has none" in refused.stderr
    done = evaluate(workspace, "--draws", "2", "--sweep", "epsilon=0.01,1", "--no-audit")
    assert done.returncode == 0, done.stderr
    content = content_of(workspace)
    own, lost = figures(content), figures(content, epsilon="0.01")
    # The mean of |Z| at rate r is 1 / sinh r.
    exact = total(workspace, lee_texts)
    released = pq.read_table(workspace.output / "vocabulary.parquet")["weight"].to_pylist()
    assert own["histogram-error", "release"] < 0.05 < lost["histogram-error", "release"]
    assert 0.5 < lost["histogram-error", "release"] / (len(released) * 100 / exact) < 2
    assert own["histogram-top", "release"] > 0.9
    # One token more or less, by the geometric law: it is randomised response.
    law, faint = figures(content, EXACT), figures(content, EXACT, epsilon="0.01")
    assert law["definition", "guarantee"] == pytest.approx(1 / (1 + math.exp(-1)))
    assert law["definition", "release"] == pytest.approx(law["definition", "guarantee"], abs=1e-3)
    assert faint["definition", "release"] == pytest.approx(0.5, abs=3e-3)
    # A whole document has far more tokens than one. Of noise, Hoeffding's bound as for voters.
    least = math.sqrt(math.log(2 / ALPHA) / (2 * 2 * (DOCUMENTS // 4)))
    assert own["count-membership", "release"] > 0.5 + least
    assert abs(own["count-membership", "noise"] - 0.5) < least
    assert_silent(workspace, done.stdout + done.stderr, SECRETS)


def total(workspace: Workspace, texts: list[str]) -> int:
    """The words of the texts that the vocabulary has."""
    known = set((workspace.folder / "vocabulary.txt").read_text().split())
    tokens = tokenize(pa.array([f"{text} {CANARY}" for text in texts[:DOCUMENTS]]))
    spans = zip(tokens.starts, tokens.ends, strict=True)
    return sum(bytes(tokens.data[start:end]).decode() in known for start, end in spans)
