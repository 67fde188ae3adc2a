"""Measures of a classifier of film reviews that learns from public texts, by private votes.

25,000 reviews are private; a document's stratum is its sentiment. The pools are 10,000 other
reviews, the same with 20,000 complaints and commit messages, and these 20,000 alone. A logistic
regression (TF-IDF, scikit-learn's defaults) is trained on the pool's texts with the labels and
weights that come out, and tested on 15,000 reviews that are neither private nor in a pool.

Pools are built, documents encoded, and votes counted and released by the product's own code; the
exact sums are computed once, and each draw adds noise under a fresh key. One release a pool is made
by the command's own function, and read from its file.

    python benchmarks/utility_public.py --data ../shared/data --folder build/utility-public

Pools, sums and scores stay in the folder, so that a stopped run can go on.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import stats

import quietcorpus as qc
from quietcorpus.evaluation import classification
from quietcorpus.evaluation.classification import TextClassifier
from quietcorpus.indexes.documents.pool import Pool, open_pool
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.sentences.deep_candidate import on_grid
from quietcorpus.mechanisms.votes.ballots import Sums
from quietcorpus.mechanisms.votes.estimates import weights
from quietcorpus.mechanisms.votes.votes import Votes

LABELS = ("neg", "pos")
POOLED, MIXED_IN = 10_000, 20_000
EPSILONS = ("4", "2", "1", "1/2")
DELTA = Fraction(1, 10**6)
NEAREST = 500
OTHER_NEAREST = (20, 100, 1000)
CALIBRATED = 6_000
"""Of the tested reviews, those that a calibration on public text gets."""
DRAWS = 5
DRAWN = 10_000
"""Texts of each label that Private Evolution draws by its histogram."""
CUTS = 0, 2
"""Deviations of the noise below which Private Evolution's histogram is cut to zero."""
POOLS = {
    "reviews": "10,000 reviews",
    "mixed": "the same and 20,000 other texts",
    "without": "these 20,000 without reviews",
}
AT_ONCE = 1_000


class Reviews(NamedTuple):
    """Texts, and the numbers of their labels."""

    texts: list[str]
    labels: np.ndarray

    def of(self, rows: np.ndarray) -> Reviews:
        return Reviews([self.texts[row] for row in rows], self.labels[rows])


def column(path: Path, name: str) -> list[str]:
    return pq.ParquetFile(path).read([name], use_threads=False)[name].to_pylist()


def prepare(data: Path, folder: Path) -> tuple[Reviews, Reviews, Reviews]:
    """Write the corpus, the pools' texts and those of a calibration.

    Returns private, pooled and tested reviews.
    """
    path = data / "imdb_reviews.parquet"
    every = Reviews(
        column(path, "text"), np.array([LABELS.index(one) for one in column(path, "label")])
    )
    split = np.array(column(path, "split"))
    generator = np.random.default_rng(0)
    others = generator.permutation(np.flatnonzero(split == "test"))
    private = every.of(np.flatnonzero(split == "train"))
    pooled, tested = every.of(others[:POOLED]), every.of(others[POOLED:])
    complaints = column(data / "cfpb_complaints.parquet", "text")
    commits = column(data / "commit_messages.parquet", "text")
    chosen = generator.permutation(len(commits))[: MIXED_IN - len(complaints)]
    mixed_in = [*complaints, *(commits[row] for row in chosen)]
    for name, texts in {
        "reviews": pooled.texts,
        "mixed": [*pooled.texts, *mixed_in],
        "without": mixed_in,
    }.items():
        pq.write_table(pa.table({"text": texts}), folder / f"{name}.parquet")
    for name, own in {"private": private, "public": tested.of(np.arange(CALIBRATED))}.items():
        labels = [LABELS[one] for one in own.labels]
        pq.write_table(
            pa.table({"text": own.texts, "label": labels}),
            folder / f"{name}.parquet",
            row_group_size=2_500,
        )
    return private, pooled, tested


class Classifier:
    """A classifier of the tested reviews that learns from some texts."""

    def __init__(self, texts: list[str], tested: Reviews) -> None:
        self._learnt, self._labels = TextClassifier(texts, tested.texts), tested.labels

    def score(self, rows: np.ndarray, labels: np.ndarray, given: np.ndarray | None) -> float:
        """Return macro-F1 of what is learnt from these rows, with labels and weights."""
        predicted = self._learnt.predicted(rows, labels, given)
        return classification.scores(self._labels, predicted).f1

    def as_released(self, sums: Sums, chosen: np.ndarray) -> float:
        """Train on the rows of `texts.parquet`: text, label and weight."""
        labels, rows = np.nonzero(chosen)
        return self.score(rows, labels, weights(sums, chosen)[chosen])

    def by_lead(self, sums: Sums) -> float:
        """Train on each text once, with the label of more votes, weighted by their lead."""
        lead = (sums[1] - sums[0]).astype(float)
        return self.score(
            np.arange(len(lead)), (lead > 0).astype(int), np.abs(lead) / np.abs(lead).mean()
        )


def nearest_of(pool: Pool, texts: list[str], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the texts that vote, and the `count` texts nearest to each."""
    assert pool.encoder is not None
    voters, parts = [], []
    for first in range(0, len(texts), AT_ONCE):
        vectors = on_grid(pool.encoder.encode(texts[first : first + AT_ONCE]))
        somewhere = vectors.any(axis=1)
        voters.append(first + np.flatnonzero(somewhere))
        parts.append(pool.nearest(vectors[somewhere], count).astype(np.int32))
    return np.concatenate(voters), np.concatenate(parts)


class Election:
    """A pool, the texts that private documents find nearest in it, and a classifier."""

    def __init__(
        self,
        name: str,
        folder: Path,
        private: Reviews,
        tested: Reviews,
        search: str | None = None,
    ) -> None:
        self.folder = folder / f"pool-{name}"
        if not self.folder.exists():
            start = time.monotonic()
            source = folder / f"{name}.parquet"
            given = {"provenance": "public", "encoder": "lsa", "search": search}
            qc.build_pool(source, self.folder, **given)
            print(f"pool {name}: built in {time.monotonic() - start:.0f} s", flush=True)
        self.pool: Pool = open_pool(str(self.folder))
        self.labels = private.labels
        kept = folder / f"nearest-{name}.npy"
        if not kept.exists():
            start = time.monotonic()
            voters, found = nearest_of(self.pool, private.texts, max(OTHER_NEAREST))
            assert len(voters) == len(private.texts)
            np.save(kept, found)
            print(f"pool {name}: votes found in {time.monotonic() - start:.0f} s", flush=True)
        self.nearest = np.load(kept, mmap_mode="r")
        self.classifier = Classifier(self.pool.texts.to_pylist(), tested)

    def sums(self, votes: Votes) -> Sums:
        """Count the votes exactly."""
        items = self.nearest[:, : votes.nearest].astype(np.int64)
        return votes.sums(items, self.labels, (2, len(self.pool.texts)))


def released(votes: Votes, sums: Sums) -> Sums:
    """Draw the noisy sums, under a fresh key."""
    return votes.release(sums, ReleaseKey.fresh().stage("votes", 1))


def private_evolution(election: Election, votes: Votes, cut: float, seed: int) -> float:
    """Train on texts drawn by a float histogram of nearest texts, in NumPy's own noise.

    One vote a document, normal noise of the same multiplier, a threshold of `cut` deviations, and
    `DRAWN` texts of each label (Lin et al. 2024, algorithm 2, and its first selection).
    """
    generator = np.random.default_rng(seed)
    sigma, size = float(votes.noise.noise_multiplier), len(election.pool.texts)
    rows, labels = [], []
    for label in range(2):
        found = election.nearest[election.labels == label, 0]
        histogram = np.bincount(found, minlength=size) + sigma * generator.normal(size=size)
        histogram[histogram < cut * sigma] = 0
        if histogram.any():
            chosen = generator.choice(size, DRAWN, p=histogram / histogram.sum())
            rows.append(chosen)
            labels.append(np.full(DRAWN, label))
    return election.classifier.score(np.concatenate(rows), np.concatenate(labels), None)


def by_the_product(election: Election, folder: Path, name: str) -> float:
    """Make a release at epsilon 1 as the command does, and train on its table as it is."""
    output = folder / f"release-{name}"
    if not output.exists():
        start = time.monotonic()
        spec = folder / f"{name}.json"
        block = {"kind": "public-texts", "pool": str(election.folder), "nearest": NEAREST}
        strata = {"column": "label", "labels": list(LABELS)}
        spec.write_text(
            json.dumps(
                {
                    "release": f"reviews-{name}",
                    "input": {"path": str(folder / "private.parquet"), "text": "text"},
                    "output": str(output),
                    "mechanism": block | {"epsilon": 1, "delta": 1e-6, "strata": strata},
                }
            )
        )
        qc.release(spec)
        print(f"pool {name}: released in {time.monotonic() - start:.0f} s", flush=True)
    table = pq.ParquetFile(output / "texts.parquet").read(use_threads=False)
    labels = np.array([LABELS.index(one) for one in table["label"].to_pylist()])
    given = table["weight"].to_numpy()
    return election.classifier.score(table["id"].to_numpy(), labels, given)


class Scores:
    """Scores by name, kept in a file; each is computed once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.found: dict[str, list[float]] = json.loads(path.read_text()) if path.exists() else {}

    def once(self, name: str, measure: Callable[..., float], *arguments: tuple) -> None:
        """Compute the scores of draws, one for each tuple of arguments."""
        if name not in self.found:
            self.found[name] = [measure(*own) for own in arguments]
            print(name, [round(score, 4) for score in self.found[name]], flush=True)
            self._path.write_text(json.dumps(self.found, indent=1) + "\n")


def measure_pool(name: str, folder: Path, election: Election, scores: Scores) -> None:
    """Measure all that is asked of one pool."""
    learn, size = election.classifier, len(election.pool.texts)
    every = np.arange(size)
    guesses = [np.random.default_rng(draw).integers(2, size=size) for draw in range(DRAWS)]
    scores.once(f"{name}, unweighted", learn.score, *((every, own, None) for own in guesses))
    for nearest in (NEAREST, *OTHER_NEAREST) if name == "reviews" else (NEAREST,):
        exact = election.sums(Votes(nearest, Fraction(1), DELTA))
        scores.once(
            f"{name}, {nearest}, no noise, as released", learn.as_released, (exact, exact > 0)
        )
        scores.once(f"{name}, {nearest}, no noise, by lead", learn.by_lead, (exact,))
        for epsilon in EPSILONS if nearest == NEAREST else ("1", "1/2"):
            votes = Votes(nearest, Fraction(epsilon), DELTA)
            draws = [released(votes, exact) for _ in range(DRAWS)]
            rows = [(one, votes.stand_out(one)) for one in draws]
            scores.once(f"{name}, {nearest}, {epsilon}, as released", learn.as_released, *rows)
            leads = [(one,) for one in draws]
            scores.once(f"{name}, {nearest}, {epsilon}, by lead", learn.by_lead, *leads)
    for epsilon in EPSILONS:
        votes = Votes(1, Fraction(epsilon), DELTA)
        for cut in CUTS:
            asked = [(election, votes, cut, draw) for draw in range(DRAWS)]
            scores.once(f"{name}, {epsilon}, evolution, cut {cut}", private_evolution, *asked)
    scores.once(f"{name}, by the product", by_the_product, (election, folder, name))


def measure(
    private: Reviews, pooled: Reviews, tested: Reviews, folder: Path, scores: Scores
) -> None:
    """Measure what is not measured yet."""
    of_private = Classifier(private.texts, tested)
    every = np.arange(len(private.texts))
    scores.once("private texts", of_private.score, (every, private.labels, None))
    for name in POOLS:
        election = Election(name, folder, private, tested)
        texts = election.pool.texts.to_pylist()
        if name == "reviews":
            own = np.array([pooled.texts.index(text) for text in texts])
            given = np.arange(len(own)), pooled.labels[own], None
            scores.once("true labels", election.classifier.score, given)
        if name == "mixed":
            known = set(pooled.texts)
            reviews = np.array([text in known for text in texts])
            for count in (20, NEAREST):
                share = reviews[election.nearest[:, :count]].mean
                scores.once(f"votes for reviews, {count}", share, ())
        measure_pool(name, folder, election, scores)


def interval(scores: list[float]) -> str:
    """Format the mean of draws, and half of its 95 % interval (Student's t)."""
    if len(scores) == 1:
        return f"{scores[0]:.3f}"
    reach = stats.t.ppf(0.975, len(scores) - 1) * np.std(scores, ddof=1) / np.sqrt(len(scores))
    return f"{np.mean(scores):.3f} ± {reach:.3f}"


def report(found: dict[str, list[float]]) -> None:
    """Print the tables in Markdown, and what is kept of the gain of votes without noise."""
    print("\n| macro-F1 at epsilon | 4 | 2 | 1 | 0.5 | without noise |\n|---|---|---|---|---|---|")
    kept = []
    for name, said in POOLS.items():
        base = float(np.mean(found[f"{name}, unweighted"]))
        for rule in ("as released", "by lead"):
            exact = found[f"{name}, {NEAREST}, no noise, {rule}"][0]
            own = [found[f"{name}, {NEAREST}, {epsilon}, {rule}"] for epsilon in EPSILONS]
            print(f"| {said}, {rule} | {' | '.join(map(interval, own))} | {exact:.3f} |")
            shares = [f"{(np.mean(one) - base) / (exact - base):.3f}" for one in own]
            kept.append(f"| {said}, {rule} | {' | '.join(shares)} |")
        for cut in CUTS:
            own = [found[f"{name}, {epsilon}, evolution, cut {cut}"] for epsilon in EPSILONS]
            print(f"| {said}, Private Evolution, cut {cut} | {' | '.join(map(interval, own))} | |")
    print("\n| share of the gain without noise | 4 | 2 | 1 | 0.5 |\n|---|---|---|---|---|")
    print("\n".join(kept))
    print("\n| nearest, 10,000 reviews | 1 | 0.5 | without noise |\n|---|---|---|---|")
    for rule in ("as released", "by lead"):
        for nearest in sorted((NEAREST, *OTHER_NEAREST)):
            cells = [interval(found[f"reviews, {nearest}, {e}, {rule}"]) for e in ("1", "1/2")]
            exact = found[f"reviews, {nearest}, no noise, {rule}"][0]
            print(f"| {nearest}, {rule} | {' | '.join(cells)} | {exact:.3f} |")
    print()
    for name, own in found.items():
        if not any(part in name for part in ("no noise", "released", "lead", "evolution")):
            print(f"{name}: {interval(own)}")


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of the folder of the three corpora, and that of what is made."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--data", required=True, type=Path, help="a folder: the three corpora")
    made.add_argument("--folder", required=True, type=Path)
    return made


def places(description: str | None) -> tuple[Path, Path]:
    """Return the folder of the three corpora, and that of what is made, from the command line."""
    given = parser(description).parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    return given.data, given.folder


def main() -> None:
    data, folder = places(__doc__)
    scores = Scores(folder / "scores.json")
    measure(*prepare(data, folder), folder, scores)
    report(scores.found)


if __name__ == "__main__":
    main()
