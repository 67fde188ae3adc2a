"""The dpUGC paper's measures of word embeddings, with whole users protected, by both methods.

Against a gold model (word2vec without privacy, on the same texts): MAP-Word, MAP-Char, word
similarity; and a classifier of sentiment on mean vectors: E(public), E(public) + E(private), and
non-private. Results are kept, so that a run that was stopped goes on.

    python benchmarks/utility_embeddings.py --data commits|reviews --texts TEXTS.parquet \
        --glove GLOVE.txt --output FOLDER
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from gensim.models import Word2Vec
from gensim.test.utils import datapath
from sklearn.linear_model import LogisticRegression

from evaluation.embeddings import map_char, map_word, nearest, similarity
from indexes.tokenizer import tokenize
from indexes.vocabulary import Vocabulary
from mechanisms.accounting import Schedule, noise_multiplier_for
from mechanisms.clipped_sum import STEPS, ClippedSum, clipped
from mechanisms.cooccurrence import cells_of, contribution
from mechanisms.factorisation import factorise
from mechanisms.keystream import ReleaseKey
from mechanisms.skip_gram import SkipGram, Texts, Users
from mechanisms.user_training import State, Training
from mechanisms.word_pairs import Words

DELTA = Fraction(1, 10**5)
EPSILONS = (1, 2, 4, 8, 16, 64)
WINDOW, TOKENS, QUERIES, LISTED = 5, 1_000, 1_000, 10
COLUMNS = {"commits": ("author", None), "reviews": (None, "label")}
JUDGED = {"wordsim353": "wordsim353.tsv", "simlex999": "simlex999.txt"}
MEASURES = ("map_word", "map_char", "wordsim353", "simlex999", "with_public", "alone")


class Experiment:
    """Users' texts over a public vocabulary, and what they are compared with."""

    def __init__(self, data: str, texts: str, glove: str, words: int, dimensions: int) -> None:
        user, label = COLUMNS[data]
        self.words, self.public = _glove(glove, words)
        self.dimensions = dimensions
        vocabulary = Vocabulary(self.words)
        table = pq.read_table(texts)
        tokens = tokenize(table["text"].combine_chunks().cast(pa.large_string()))
        offsets, terms = vocabulary.look_up(tokens)
        self.documents = [terms[a:b] for a, b in zip(offsets, offsets[1:], strict=False)]
        self.labels = np.array(table[label]) if label else None
        held = np.arange(len(self.documents)) % 5 == 0 if label else None
        self.held = held
        owners = table[user].to_pylist() if user else range(len(self.documents))
        self.users: dict[object, list[Words]] = defaultdict(list)
        for number, (owner, document) in enumerate(zip(owners, self.documents, strict=True)):
            if held is None or not held[number]:
                self.users[owner].append(document)
        self.bounded = [list(_first(own, TOKENS)) for own in self.users.values()]
        self.gold = self._gold()
        counts = np.bincount(np.concatenate(self.documents), minlength=words)
        self.queries = np.argsort(-counts)[:QUERIES]
        self.ranked = nearest(self.gold, self.queries, LISTED)

    def _gold(self) -> np.ndarray:
        texts = (text for own in self.users.values() for text in own)
        sentences = [[self.words[i] for i in text] for text in texts]
        kept = {"vector_size": 100, "window": WINDOW, "min_count": 1, "sg": 1}
        vectors = Word2Vec(sentences, epochs=5, seed=1, workers=1, **kept).wv
        zero = np.zeros(100, dtype=np.float32)
        return np.stack([vectors[w] if w in vectors else zero for w in self.words])  # noqa: SIM401

    def cooccurrence(self, epsilon: float, draw: int) -> np.ndarray:
        """Vectors by `method: cooccurrence`; an infinite epsilon is none."""
        size = len(self.words)
        sums = np.zeros(cells_of(size), dtype=np.int64)
        stream = _stream(f"cooccurrence {epsilon}", draw)
        generator = np.random.default_rng(draw)
        for own in self.bounded:
            cells, values = contribution(own, WINDOW, size)
            dither = generator.integers(0, 1 << 16, len(cells), dtype=np.uint16)
            sums[cells] += clipped(values, dither)
        if np.isinf(epsilon):
            return factorise(sums, 0.0, size, self.dimensions).vectors
        noise = noise_multiplier_for(Fraction(epsilon), DELTA, Fraction(1), 1)
        address = stream.addresses("noise", [0], [b""])
        noisy = ClippedSum(noise).release(sums[None, :], stream, address)[0]
        return factorise(noisy, float(noise * STEPS), size, self.dimensions).vectors

    def sgd(self, epsilon: float, draw: int, steps: int, share: float) -> np.ndarray:
        """Vectors by `method: sgd`; an infinite epsilon has noise that is next to nothing."""
        count = len(self.bounded)
        lot = max(1, int(count * share))
        budget = Fraction(10**4 if np.isinf(epsilon) else epsilon)
        schedule = Schedule.solved({"": budget}, DELTA, Fraction(lot, count), steps)
        settings = SkipGram(self.dimensions, WINDOW, 5, 20.0)
        stream = _stream(f"sgd {epsilon} {steps} {share}", draw)
        users = Users(_texts(self.bounded, stream), schedule.groups, settings, stream)
        training = Training(settings, ClippedSum(schedule.noise_multiplier), lot, 0.05)
        state = State.initial(len(self.words), self.dimensions)
        weights = np.ones(len(self.words))
        *_, last = training.run(state, steps, users.sums, weights, stream)
        return last.model.words

    def scores(self, vectors: np.ndarray) -> dict[str, float]:
        """Every measure of some vectors."""
        found = nearest(vectors, self.queries, LISTED)
        numbers = {word: i for i, word in enumerate(self.words) if vectors[i].any()}
        scored = {
            "map_word": float(map_word(found, self.ranked).mean()),
            "map_char": float(map_char(found, self.ranked, self.words).mean()),
        }
        for name in ("wordsim353", "simlex999"):
            scored[name], _ = similarity(vectors, numbers, _judged(name))
        if self.labels is not None:
            scored["alone"] = self.accuracy(vectors)
            both = np.hstack([_scaled(self.public), _scaled(vectors)])
            scored["with_public"] = self.accuracy(both)
        return scored

    def accuracy(self, vectors: np.ndarray) -> float:
        """Of a classifier on documents' mean vectors, tested on those that nothing was made of."""
        assert self.labels is not None
        assert self.held is not None
        zero = np.zeros(vectors.shape[1])
        means = np.stack([vectors[d].mean(axis=0) if len(d) else zero for d in self.documents])
        means = (means - means.mean(axis=0)) / np.maximum(means.std(axis=0), 1e-9)
        model = LogisticRegression(C=0.1, max_iter=300)
        model.fit(means[~self.held][::4], self.labels[~self.held][::4])
        return float(model.score(means[self.held], self.labels[self.held]))


def _scaled(vectors: np.ndarray) -> np.ndarray:
    return vectors / max(1e-9, float(np.linalg.norm(vectors, axis=1).mean()))


def _judged(name: str) -> list[tuple[str, str, float]]:
    lines = Path(datapath(JUDGED[name])).read_text().splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return [(a.lower(), b.lower(), float(score)) for a, b, score in rows]


def _glove(path: str, words: int) -> tuple[list[str], np.ndarray]:
    """The first words of a file that the tokeniser yields, which is sorted by frequency."""
    from indexes.vectors import reachable, read

    with open(path, "rb") as stream:
        vectors = reachable(read(Path(path).name, lambda _: stream))
    return vectors.words[:words], vectors.values[:words]


def _first(texts: Sequence[Words], tokens: int) -> Iterator[Words]:
    generator = np.random.default_rng(0)
    for number in generator.permutation(len(texts)):
        if tokens <= 0:
            return
        yield texts[number][:tokens]
        tokens -= len(texts[number])


def _texts(users: Sequence[Sequence[Words]], stream: object) -> Texts:
    flat = [text for own in users for text in own]
    drawn = np.random.default_rng(7).integers(0, 1 << 63, (len(users), 2), dtype=np.uint64)
    return Texts(
        drawn,
        np.zeros(len(users), np.int32),
        np.cumsum([0, *map(len, users)]),
        np.cumsum([0, *map(len, flat)]),
        np.concatenate(flat).astype(np.int32),
    )


def _stream(name: str, draw: int):
    return ReleaseKey.derive(draw.to_bytes(32, "big"), name).stage("benchmark", b"")


def main() -> None:
    """Measure what is not measured yet, and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True, choices=COLUMNS)
    parser.add_argument("--texts", required=True)
    parser.add_argument("--glove", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--words", type=int, default=1_000)
    parser.add_argument("--dimensions", type=int, default=50)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--steps", type=int, nargs="*", default=[50])
    parser.add_argument("--methods", nargs="*", default=["cooccurrence", "sgd"])
    given = parser.parse_args()
    folder = Path(given.output)
    folder.mkdir(parents=True, exist_ok=True)
    store = folder / f"utility-embeddings-{given.data}-{given.words}-{given.dimensions}.json"
    results = json.loads(store.read_text()) if store.exists() else {}
    experiment = Experiment(given.data, given.texts, given.glove, given.words, given.dimensions)

    def once(name: str, vectors: Callable[[], np.ndarray]) -> None:
        if name not in results:
            results[name] = experiment.scores(vectors())
            shown = " ".join(f"{k} {v:.3f}" for k, v in results[name].items())
            print(f"{name:<28} {shown}", flush=True)
            store.write_text(json.dumps(results, indent=1) + "\n")

    size = len(experiment.words)
    once("gold", lambda: experiment.gold)
    once("public", lambda: experiment.public)
    once("noise", lambda: np.random.default_rng(1).normal(size=(size, given.dimensions)))
    for epsilon in (np.inf, *EPSILONS):
        for draw in range(1 if np.isinf(epsilon) else given.draws):
            if "cooccurrence" in given.methods:
                once(
                    f"cooccurrence {epsilon} {draw}",
                    lambda e=epsilon, d=draw: experiment.cooccurrence(e, d),
                )
            for steps in given.steps if "sgd" in given.methods else ():
                once(
                    f"sgd-{steps} {epsilon} {draw}",
                    lambda e=epsilon, d=draw, s=steps: experiment.sgd(e, d, s, 0.1),
                )


if __name__ == "__main__":
    mpl.use("Agg")
    main()
