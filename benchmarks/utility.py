"""The utility of bag-of-words releases: the comparison of LPLP, on a corpus of complaints.

For every map, accounting, budget and number of bins the corpus is released with the library's own
mechanism, and compared with the original by topics, document length and density. Each finished
cell is appended to a JSON Lines file under build/, so that a stopped run can go on. The tables are
written into the marked section of the --output file.

    python benchmarks/utility.py --seeds 3 --output build/utility/bags-of-words.md
"""

from __future__ import annotations

import argparse
import json
import secrets
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from marked_tables import write_tables
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from tqdm import tqdm

from quietcorpus.evaluation.topics import (
    agreement,
    coherence,
    density_ratio,
    exclusivity,
    fit_topics,
    length_ratio,
    top_terms,
)
from quietcorpus.indexes.maps import compression
from quietcorpus.indexes.maps.compression import Method
from quietcorpus.indexes.tokens.tokenizer import tokenize
from quietcorpus.indexes.tokens.vocabulary import Vocabulary, document_frequencies
from quietcorpus.indexes.words.embeddings import read_vectors
from quietcorpus.mechanisms.bags.bag_of_words import Accounting, BagOfWords, add_noise
from quietcorpus.mechanisms.bags.bags import Bags, clip
from quietcorpus.mechanisms.bags.decompression import Decompression
from quietcorpus.mechanisms.bags.histogram import Histogram
from quietcorpus.mechanisms.keystream import KEY_BYTES, ReleaseKey

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
PUBLIC_TEXTS = DATA / "imdb_reviews.parquet"
CACHE = ROOT / "build" / "utility"

MINIMUM_DOCUMENTS = 3
TOPICS, TOP_TERMS, SWEEPS = 20, 20, 100
REFERENCES = 5
HISTOGRAM_EPSILON = Fraction(1, 2)
COMPARED_BINS = 100
BUDGETS = [(5, 1), (5, 10), (Fraction(1, 2), 1), (Fraction(1, 2), 10)]
SWEPT_BINS, SWEPT_EPSILONS = (25, 100, 400, 1600), (5, 2, 1, Fraction(1, 2))
FITTED_TOKENS = 12_000_000
"""Above this many released tokens, LDA sees a random subset of the documents; the tables say so."""
BATCH = 1024

ORIGINAL, UNIGRAMS = "original", "unigrams"


@dataclass(frozen=True)
class Cell:
    """One corpus to fit: a release, the original, or documents redrawn from its unigrams."""

    seed: int
    method: str
    accounting: str = ""
    bins: int = 0
    epsilon: str = "0"
    precision: int = 0

    def mechanism(self, terms: int) -> BagOfWords:
        epsilon, accounting = Fraction(self.epsilon), Accounting(self.accounting)
        return BagOfWords(self.precision, epsilon, terms, self.bins, accounting)


class Corpus(NamedTuple):
    """Texts over a vocabulary of V terms; document i has the tokens offsets[i]..offsets[i + 1]."""

    texts: list[bytes]
    vocabulary: Vocabulary
    offsets: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int32]
    counts: sp.csr_array


def read_texts(path: Path) -> pa.Array:
    return pq.read_table(path, columns=["text"])["text"].combine_chunks()


def load(path: Path) -> Corpus:
    """Load the corpus over the words of three documents or more, without English stop-words.

    The vocabulary is taken from the corpus as if it were public: for an experiment only.
    """
    texts = read_texts(path)
    tokens = tokenize(texts)
    words, frequencies = document_frequencies(tokens)
    frequent = np.array(words.to_pylist())[frequencies >= MINIMUM_DOCUMENTS]
    vocabulary = Vocabulary(sorted(set(frequent.tolist()) - ENGLISH_STOP_WORDS))
    offsets, ids = vocabulary.look_up(tokens)
    counts = matrix(Bags(offsets, ids, np.ones(len(ids), np.int32)), len(vocabulary))
    return Corpus([text.as_py().encode() for text in texts], vocabulary, offsets, ids, counts)


def matrix(bags: Bags, terms: int) -> sp.csr_array:
    rows = (bags.counts, bags.entries, bags.offsets)
    # A copy: summing works in place, and would otherwise reorder the corpus's own tokens.
    counts = sp.csr_array(rows, (len(bags.offsets) - 1, terms), copy=True)
    counts.sum_duplicates()
    return counts


def public_vectors(vocabulary: Vocabulary) -> npt.NDArray[np.float32]:
    """Return word2vec vectors (100 dimensions) of film reviews, another corpus and a public one."""
    path = CACHE / "imdb-word2vec.txt"
    if not path.exists():
        from gensim.models import Word2Vec  # the maps without vectors do not need it

        tokens = tokenize(read_texts(PUBLIC_TEXTS))
        data = tokens.data.tobytes()
        spans = zip(tokens.starts.tolist(), tokens.ends.tolist(), strict=True)
        words = [data[start:end].decode() for start, end in spans]
        bounds = tokens.offsets.tolist()
        reviews = [words[a:b] for a, b in zip(bounds[:-1], bounds[1:], strict=True)]
        model = Word2Vec(reviews, vector_size=100, min_count=5, workers=1, seed=1)
        model.wv.save_word2vec_format(str(path))
    with path.open("rb") as lines:
        return read_vectors(lines, vocabulary.terms.to_pylist())


def compression_map(
    cell: Cell, weights: npt.NDArray[np.int64], vocabulary: Vocabulary
) -> compression.Bins:
    method, generator = Method(cell.method), np.random.default_rng(cell.seed)
    vectors = public_vectors(vocabulary) if method.embedded else None
    return compression.bins_of(
        method, len(vocabulary), cell.bins, generator, weights=weights, vectors=vectors
    )


def release(cell: Cell, corpus: Corpus) -> sp.csr_array:
    """Release and decompress the documents: counts, shape (n, V)."""
    terms = len(corpus.vocabulary)
    # Every release has a key of its own, so parameters need not be part of its derivation.
    key = ReleaseKey(secrets.token_bytes(KEY_BYTES))
    totals = np.bincount(corpus.ids, minlength=terms).astype(np.int64)
    histogram = Histogram(cell.precision, HISTOGRAM_EPSILON)
    weights = histogram.release(totals, key.stage("histogram", 1))
    bins = compression_map(cell, weights, corpus.vocabulary)
    decompression = Decompression(bins, weights, cell.bins)
    noise, stream = cell.mechanism(terms).noise(), key.stage("bag-of-words", 1)
    token_bins, generator = bins[corpus.ids], np.random.default_rng(cell.seed)
    batches = []
    for start in range(0, len(corpus.texts), BATCH):
        texts = corpus.texts[start : start + BATCH]
        addresses = stream.addresses("corpus", range(start, start + len(texts)), texts)
        offsets = corpus.offsets[start : start + len(texts) + 1]
        noisy = clip(add_noise(noise, cell.bins, stream, addresses, offsets, token_bins))
        if cell.method != Method.NONE.value:
            noisy = decompression.expand(
                noisy, lambda count: generator.integers(0, 2**64, count, dtype=np.uint64)
            )
        batches.append(matrix(noisy, terms))
    return sp.vstack(batches, format="csr")


def unigrams(cell: Cell, corpus: Corpus) -> sp.csr_array:
    """Draw documents of the same lengths from the whole corpus's unigrams."""
    drawn = np.random.default_rng(cell.seed).choice(corpus.ids, size=len(corpus.ids))
    ones = np.ones(len(drawn), np.int32)
    return matrix(Bags(corpus.offsets, drawn, ones), len(corpus.vocabulary))


def subset(counts: sp.csr_array, seed: int) -> sp.csr_array:
    """Return random documents with at most FITTED_TOKENS tokens, or all in their order."""
    if counts.sum() <= FITTED_TOKENS:
        return counts
    order = np.random.default_rng(seed).permutation(counts.shape[0])
    lengths = np.cumsum(np.asarray(counts.sum(axis=1)).ravel()[order])
    return counts[order[: np.searchsorted(lengths, FITTED_TOKENS, side="right")]]


def measure(cell: Cell, corpus: Corpus) -> dict[str, Any]:
    """Measure a cell, and return its row: ratios, its topics' top terms, and the time taken."""
    began = time.perf_counter()
    if cell.method == ORIGINAL:
        counts = corpus.counts
    else:
        counts = unigrams(cell, corpus) if cell.method == UNIGRAMS else release(cell, corpus)
    fitted, drawn = subset(counts, cell.seed), time.perf_counter()
    # The references take the sampler's seeds below REFERENCES; no other fit shares one.
    seed = cell.seed + (0 if cell.method == ORIGINAL else REFERENCES)
    found = fit_topics(fitted, TOPICS, iterations=SWEEPS, seed=seed)
    topics = top_terms(found, TOP_TERMS)
    return {
        "cell": asdict(cell),
        "length": length_ratio(corpus.counts, counts),
        "density": density_ratio(corpus.counts, counts),
        "fitted": fitted.shape[0],
        "topics": topics.tolist(),
        "exclusivity": float(exclusivity(found, TOP_TERMS).mean()),
        "coherence": float(coherence(corpus.counts, topics).mean()),
        "seconds": [round(drawn - began, 1), round(time.perf_counter() - drawn, 1)],
    }


def all_cells(terms: int, seeds: int) -> list[Cell]:
    """Return every cell once, seed by seed, so that a run cut short has whole tables."""
    tight, per_entry = Accounting.TIGHT.value, Accounting.PER_ENTRY.value
    maps = [method.value for method in Method if method.sized]

    def of_seed(seed: int) -> Iterator[Cell]:
        yield Cell(seed, UNIGRAMS)
        for method in maps:
            for accounting in (tight, per_entry):
                for epsilon, precision in BUDGETS:
                    yield Cell(seed, method, accounting, COMPARED_BINS, str(epsilon), precision)
        for bins in SWEPT_BINS:
            for epsilon in SWEPT_EPSILONS:
                yield Cell(seed, Method.FREQUENCY.value, tight, bins, str(epsilon), 1)
        for epsilon, precision in BUDGETS:
            yield Cell(seed, Method.NONE.value, tight, terms, str(epsilon), precision)

    references = [Cell(seed, ORIGINAL) for seed in range(REFERENCES)]
    return list(dict.fromkeys([*references, *(c for s in range(seeds) for c in of_seed(s))]))


class Results:
    """The finished cells, read from and appended to a file, and scored against the references."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.rows = {Cell(**row["cell"]): row for row in map(json.loads, lines)}

    def append(self, cell: Cell, row: dict[str, Any]) -> None:
        self.rows[cell] = row
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def jaccard(self, cell: Cell) -> float:
        """Return the mean best-match Jaccard over the references, except the cell itself."""
        topics = np.array(self.rows[cell]["topics"], np.int32)
        references = [
            np.array(row["topics"], np.int32)
            for other, row in self.rows.items()
            if other.method == ORIGINAL and other != cell
        ]
        return agreement(references, [topics])


def spread(values: Iterable[float]) -> str:
    values = list(values)
    between = "-" if min(values) >= 0 else " to "
    return f"{np.mean(values):.3f} ({min(values):.3f}{between}{max(values):.3f})"


def tables(results: Results, terms: int, documents: int) -> str:
    """Format the comparison of the maps and the sweep over K, in Markdown."""
    groups = defaultdict(list)
    for cell in results.rows:
        groups[Cell(**{**asdict(cell), "seed": 0})].append(cell)

    def line(group: Cell, *first: object, quality: tuple[str, ...] = ()) -> str:
        cells = groups[group]
        rows = [results.rows[cell] for cell in cells]
        fitted = round(np.mean([row["fitted"] for row in rows]))
        scores = [
            spread(results.jaccard(cell) for cell in cells),
            *(spread(row[key] for row in rows) for key in quality),
            *(f"{np.mean([row[key] for row in rows]):.3g}" for key in ("length", "density")),
            "all" if fitted == documents else f"{fitted:,}",
            len(rows),
        ]
        return "| " + " | ".join(map(str, [*first, *scores])) + " |"

    def table(first: list[str], lines: Iterable[str], *quality: str) -> list[str]:
        names = [*first, "topic Jaccard", *quality, "length ratio", "density ratio"]
        names += ["documents fitted", "runs"]
        return [f"| {' | '.join(names)} |", "|---" * len(names) + "|", *lines, ""]

    def proved(group: Cell) -> str:
        return f"{float(group.mechanism(terms).guarantee.epsilon):.4g}"

    compared = [
        line(g, g.epsilon, g.precision, g.method, g.accounting, proved(g))
        for g in sorted(
            (g for g in groups if g.precision and g.bins in (COMPARED_BINS, terms)),
            key=lambda g: (-Fraction(g.epsilon), g.precision, g.method, g.accounting),
        )
        if (Fraction(g.epsilon), g.precision) in BUDGETS
    ]
    swept = [
        line(group, bins, epsilon)
        for bins in SWEPT_BINS
        for epsilon in SWEPT_EPSILONS
        if (group := Cell(0, "frequency", "tight", bins, str(epsilon), 1)) in groups
    ]
    quality = "exclusivity", "coherence"
    bounds = [
        line(Cell(0, method), name, quality=quality)
        for method, name in ((ORIGINAL, "ceiling"), (UNIGRAMS, "floor"))
    ]
    return "\n".join(
        [
            f"{documents:,} documents, {terms:,} terms, {TOPICS} topics, top {TOP_TERMS} terms.",
            "",
            *table(["bound"], bounds, *quality),
            f"### Maps and accountings, K = {COMPARED_BINS}",
            "",
            *table(["epsilon", "N", "map", "accounting", "proved epsilon"], compared),
            "### Number of bins, frequency map, tight, N = 1",
            "",
            *table(["K", "epsilon / N"], swept),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=DATA / "cfpb_complaints.parquet")
    parser.add_argument("--seeds", type=int, default=3, help="runs of every cell")
    parser.add_argument("--output", type=Path, help="a Markdown file with a section of tables")
    options = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    corpus = load(options.corpus)
    results = Results(CACHE / f"{options.corpus.stem}.jsonl")
    terms = len(corpus.vocabulary)
    for cell in tqdm(all_cells(terms, options.seeds), unit="cell"):
        if cell not in results.rows:
            results.append(cell, measure(cell, corpus))
        if cell.method != ORIGINAL:
            row = results.rows[cell]
            ratios = f"length {row['length']:.3g}, density {row['density']:.3g}"
            tqdm.write(f"{cell}: topic Jaccard {results.jaccard(cell):.3f}, {ratios}")
    text = tables(results, terms, len(corpus.texts))
    print(text)
    if options.output:
        write_tables(options.output, text)


if __name__ == "__main__":
    main()
