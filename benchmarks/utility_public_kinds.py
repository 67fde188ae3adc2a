"""Measures all kinds of text, and bags of words, on the same film reviews: one table to choose by.

1,000 private reviews of at most 200 words are released as public texts, by Madlib and BRR, as
SentDP's surrogate texts, and as LPLP's bags, each at a guarantee of its own, by the command's own
function. A classifier (TF-IDF and logistic regression) learns from what comes out, and is tested on
3,000 other reviews, as they are. What attackers find is what `evaluate` finds on 500 of the
private ones.

    python benchmarks/utility_public_kinds.py --data ../shared/data --glove GLOVE.txt \\
        --folder build/utility-public-kinds

What public reviews are for (pool, candidates, vocabulary) is made of the same 1,000. Artefacts,
releases and reports stay in the folder, so that a stopped run can go on.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import quietcorpus as qc
from quietcorpus.evaluation.intervals import of_auc_by_delong
from quietcorpus.evaluation.results import CONFIDENCE, classified
from quietcorpus.indexes.tokens.tokenizer import tokenize

PRIVATE, PUBLIC, TESTED = 1_000, 1_000, 3_000
CANDIDATES, VOCABULARY, ATTACKED = 150, 3_000, 500
LABELS = ["neg", "pos"]
WORDS, SENTENCES = 200, 10
"""The longest review, and its sentences, of which the table tells what all of it costs."""
ATTACKS = {"linkage": ("linkage",), "membership": ("membership", "vote-membership")}


class Learnt(NamedTuple):
    """Examples for a classifier: texts, the numbers of their labels, and weights or None."""

    texts: list[str]
    labels: np.ndarray
    weights: np.ndarray | None = None


class Way(NamedTuple):
    """A row of the table.

    Attributes:
        name: of the mechanism, with its epsilon.
        mechanism: the block of its spec.
        hidden: what the guarantee is about.
        whole: what follows for a whole review, a function of the card.
    """

    name: str
    mechanism: dict[str, Any]
    hidden: str
    whole: Callable[[dict[str, Any]], str]


def public_texts(folder: Path, epsilon: float) -> Way:
    """Votes for the pool, by sentiment; a review votes for a tenth of the pool."""
    block = {"kind": "public-texts", "pool": f"{folder}/pool", "epsilon": epsilon, "delta": 1e-6}
    block |= {"nearest": PUBLIC // 10, "strata": {"column": "label", "labels": LABELS}}
    hidden = "whether a review is there, its label included"
    return Way(f"public texts, {epsilon:g}", block, hidden, lambda _: f"{epsilon:g}, delta 1e-6")


def words(folder: Path, name: str, mechanism: str, epsilon: float) -> Way:
    """Words replaced by their neighbours."""
    block = {"kind": "words", "mechanism": mechanism, "epsilon": epsilon}
    block |= {"index": f"{folder}/index"}
    hidden = "one word, the less the farther another one is"
    return Way(f"{name}, {epsilon:g}", block, hidden, of_words)


def of_words(card: dict[str, Any]) -> str:
    """Say what a card states of a review's words, where other words stand at the mean distance."""
    losses = card["meaning"]["document_losses"]
    (own,) = (one for one in losses["documents"] if one["words"] == WORDS)
    return f"{own['epsilon_at_mean']:,.0f}, delta {losses['delta']:g} (mean distance)"


def sentences(folder: Path, epsilon: float) -> Way:
    """Public candidates, with their text."""
    block = {"kind": "sentence-embeddings", "mechanism": "deep-candidate", "include": ["text"]}
    block |= {"utility": "similarity", "epsilon": epsilon, "candidates": f"{folder}/candidates"}
    name = f"SentDP surrogate text, {epsilon:g}"
    return Way(name, block, "one sentence", lambda _: f"{SENTENCES * epsilon:g}")


def bags(folder: Path, precision: int, epsilon: float) -> Way:
    """Noisy counts of words; the histogram costs a tenth of the documents' epsilon more."""
    block = {"kind": "bag-of-words", "precision": precision, "epsilon": epsilon}
    block |= {"histogram_epsilon": epsilon / 10, "vocabulary": {"public": f"{folder}/words.txt"}}
    block |= {"compression": {"method": "frequency", "size": 400}}
    hidden = f"{precision} words more or less, or {precision / 2:g} replaced"
    total = epsilon * 11 / 10
    whole = f"{2 * WORDS / precision * total:g}"
    return Way(f"LPLP bags, N = {precision}, {total:g}", block, hidden, lambda _: whole)


def ways(folder: Path) -> list[Way]:
    """Return the rows of the table, whose artefacts are in a folder."""
    return [
        public_texts(folder, 1),
        public_texts(folder, 4),
        words(folder, "Madlib", "madlib", 10),
        words(folder, "BRR", "brr", 0.37),
        sentences(folder, 10),
        bags(folder, 10, 5),
        bags(folder, 10, 20),
    ]


def prepare(data: Path, glove: Path, folder: Path) -> tuple[Learnt, Learnt]:
    """Write the corpus, and build what is public; return the private and the tested reviews."""
    table = pq.ParquetFile(data / "imdb_reviews.parquet").read(["text", "label"], use_threads=False)
    words_of = np.array([len(text.split()) for text in table["text"].to_pylist()])
    order = np.random.default_rng(0).permutation(np.flatnonzero(words_of <= WORDS))
    private, public, tested = (
        table.take(order[first : first + size])
        for first, size in ((0, PRIVATE), (PRIVATE, PUBLIC), (PRIVATE + PUBLIC, TESTED))
    )
    numbered = private.append_column("id", pa.array([f"r{row}" for row in range(PRIVATE)]))
    pq.write_table(numbered, folder / "private.parquet", row_group_size=1_000)
    pq.write_table(public.select(["text"]), folder / "public.parquet")
    found = tokenize(public["text"].combine_chunks().cast(pa.large_string()))
    counted = Counter(
        found.data[start:end].tobytes().decode()
        for start, end in zip(found.starts, found.ends, strict=True)
    )
    frequent = sorted(word for word, _ in counted.most_common(VOCABULARY))
    (folder / "words.txt").write_text("\n".join(frequent) + "\n")
    source = folder / "public.parquet"
    built = {
        "index": lambda place: qc.build_index(glove, place, provenance="public"),
        "pool": lambda place: qc.build_pool(source, place, provenance="public", encoder="lsa"),
        "candidates": lambda place: qc.build_candidates(
            source, place, provenance="public", keep_text=True, candidates=CANDIDATES
        ),
    }
    for name, build in built.items():
        once(folder / name, build)
    return of_table(private), of_table(tested)


def once(place: Path, make: Callable[[Path], object]) -> None:
    """Make something at a place, unless it is there, and tell the processor's time."""
    if not place.exists():
        start = time.process_time()
        make(place)
        print(f"{place.parent.name}/{place.name}: {time.process_time() - start:.0f} s", flush=True)


def of_table(table: pa.Table) -> Learnt:
    """Read texts and labels."""
    labels = np.array([LABELS.index(one) for one in table["label"].to_pylist()])
    return Learnt(table["text"].to_pylist(), labels)


def of_release(way: Way, place: Path) -> Learnt:
    """Read what a classifier learns from a release; a bag is a text with each word repeated."""
    if way.mechanism["kind"] == "public-texts":
        table = pq.ParquetFile(place / "texts.parquet").read(use_threads=False)
        return of_table(table)._replace(weights=table["weight"].to_numpy())
    files = sorted((place / "data").glob("*.parquet"))
    table = pa.concat_tables([pq.ParquetFile(file).read(use_threads=False) for file in files])
    if way.mechanism["kind"] == "bag-of-words":
        terms = pq.ParquetFile(place / "vocabulary.parquet").read(use_threads=False)
        names = dict(zip(terms["term_id"].to_pylist(), terms["term"].to_pylist(), strict=True))
        texts = [
            " ".join(
                word for pair in zip(*row, strict=True) for word in repeat(names[pair[0]], pair[1])
            )
            for row in zip(table["terms"].to_pylist(), table["counts"].to_pylist(), strict=True)
        ]
        table = table.append_column("text", pa.array(texts))
    return of_table(table)


def score(learnt: Learnt, tested: Learnt) -> str:
    """Format macro-F1 and AUC on the tested reviews, with intervals over them.

    AUC does not ask where the classifier draws its line, which noise may shift.
    """
    features = TfidfVectorizer(sublinear_tf=True, min_df=3)
    model = LogisticRegression(max_iter=1000)
    model.fit(features.fit_transform(learnt.texts), learnt.labels, learnt.weights)
    sure = model.decision_function(features.transform(tested.texts))
    seen = {one.measure: one for one in classified("", tested.labels, (sure > 0).astype(int))}
    ranked = sure[tested.labels == 1], sure[tested.labels == 0]
    low, high = of_auc_by_delong(*ranked, CONFIDENCE)
    area = {"value": roc_auc_score(tested.labels, sure), "low": low, "high": high}
    return f"{interval(asdict(seen['f1']))} | {interval(area)}"


def interval(seen: dict[str, Any]) -> str:
    return f"{seen['value']:.3f} ({seen['low']:.3f}-{seen['high']:.3f})"


def release(way: Way, folder: Path, place: Path) -> None:
    """Make a release, and measure it."""
    spec = folder / f"{place.name}.json"
    keep = {} if way.mechanism["kind"] == "public-texts" else {"keep": ["id", "label"]}
    own = {"path": str(folder / "private.parquet"), "text": "text", "id": "id"} | keep
    described = {"release": place.name, "input": own, "output": str(place)}
    described["accept"] = ["unchanged-words", "large-epsilon"]
    spec.write_text(json.dumps(described | {"mechanism": way.mechanism}))
    qc.release(spec)


def evaluate(folder: Path, place: Path, report: Path) -> None:
    """Measure what attackers find in one draw."""
    qc.evaluate(
        place,
        against=folder / "private.parquet",
        output=report,
        spec=folder / f"{place.name}.json",
        label="label",
        documents=ATTACKED,
        draws=1,
        audits=False,
    )


def attacked(report: Path, measures: tuple[str, ...]) -> str:
    """Format what an attack finds, by its best way, with noise alone beside it."""
    figures = json.loads((report / "evaluation.json").read_text())["figures"]
    own = [one for one in figures if one["measure"] in measures]
    found = [one for one in own if one["subject"] == "release" and one["against_noise"]]
    if not found:
        return "-"
    best = max(found, key=lambda one: one["first"]["value"])
    (noise,) = (
        one["first"]["value"]
        for one in own
        if one["subject"] == "noise" and one["group"] == best["group"]
    )
    return f"{interval(best['first'])}, {noise:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, type=Path, help="a folder: the reviews")
    parser.add_argument("--glove", required=True, type=Path)
    parser.add_argument("--folder", required=True, type=Path)
    given = parser.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    private, tested = prepare(given.data, given.glove, folder)
    rows = [f"| the private reviews | nothing | | {score(private, tested)} | | |"]
    for number, way in enumerate(ways(folder)):
        place, report = folder / f"release-{number}", folder / f"report-{number}"
        once(place, lambda place, way=way: release(way, folder, place))
        done = report / "evaluation.json"
        once(done, lambda _, place=place, own=report: evaluate(folder, place, own))
        card = json.loads((place / "release.json").read_text())
        cells = [way.name, way.hidden, way.whole(card), score(of_release(way, place), tested)]
        cells += [attacked(report, measures) for measures in ATTACKS.values()]
        rows.append(f"| {' | '.join(cells)} |")
    heads = ["kind, epsilon", "hides", f"epsilon of a whole review of {WORDS} words"]
    heads += ["macro-F1", "AUC", *(f"{name}, in noise" for name in ATTACKS)]
    print(f"\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
