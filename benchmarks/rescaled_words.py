"""Rescaled metrics: which words come back unchanged under Madlib, by their frequency.

For each map of an index's vectors, epsilon is found at which as many words come back unchanged, on
average over the vocabulary. Frequencies are wordfreq's, of English. For the maps by covariance, the
same noise is searched for by the vectors' own distance as well, as the paper has it.

    OMP_NUM_THREADS=1 python benchmarks/rescaled_words.py --index build/demo-words/index
"""

from __future__ import annotations

import argparse

import numpy as np
import wordfreq

from quietcorpus.evaluation.simulation import MadlibSimulator, unit_noise
from quietcorpus.indexes.engines import vector_search
from quietcorpus.indexes.rescaling import by_covariance, by_information
from quietcorpus.indexes.search import EXACT
from quietcorpus.transforms.artefacts.word_index import IndexSource

BANDS = (0, 300, 3_000, 10_000, 20_000)
WORDS, DRAWS, OF_ALL, STEPS = 200, 256, 512, 10
SHARE = 0.3
PAPERS_WORDS, PAPERS_DRAWS = 128, 64


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--index", required=True)
    index = IndexSource.resolve("--index", parser.parse_args().index).open("vectors")
    words, vectors = index.vocabulary.terms.to_pylist(), np.array(index.vectors)
    frequencies = np.array([wordfreq.word_frequency(word, "en") for word in words])
    order = np.argsort(-frequencies, kind="stable")
    generator = np.random.default_rng(1)
    bands = [
        np.sort(generator.choice(order[first:last], WORDS, replace=False))
        for first, last in zip(BANDS, (*BANDS[1:], len(words)), strict=True)
    ]
    every = np.sort(generator.choice(len(words), OF_ALL, replace=False))
    shares = [frequencies[order[a:b]].sum() for a, b in zip(BANDS, (*BANDS[1:], None), strict=True)]
    of_text = np.array(shares) / frequencies.sum()
    names = [f"{first + 1:,} to {last:,}" for first, last in zip(BANDS, BANDS[1:], strict=False)]
    print(
        f"| map | epsilon | N_w of all | {' | '.join([*names, 'rarer'])} | of running text |\n"
        f"|---|---|---|{'---|' * len(BANDS)}---|"
    )
    maps = {
        "none": vectors,
        **{f"information, power {p}": by_information(vectors, frequencies, p) for p in (1, 2)},
        **{f"covariance, lambda {s}": by_covariance(vectors, s) for s in (0.2, 0.5)},
    }
    found: dict[str, float] = {}
    for name, mapped in maps.items():
        epsilon = found[name] = epsilon_of(mapped, every)
        by_band = np.array([unchanged(mapped, epsilon, band) for band in bands])
        print(
            f"| {name} | {epsilon:.3g} | {unchanged(mapped, epsilon, every):.3f} | "
            f"{' | '.join(f'{share:.3f}' for share in by_band)} | {of_text @ by_band:.3f} |",
            flush=True,
        )
    print("\n| map | epsilon | N_w, nearest by the map | N_w, nearest by the vectors | same word |")
    print("|---|---|---|---|---|")
    for share in (0.2, 0.5):
        name = f"covariance, lambda {share}"
        own, papers, same = decoders(vectors, maps[name], found[name], every[:PAPERS_WORDS])
        print(f"| {name} | {found[name]:.3g} | {own:.3f} | {papers:.3f} | {same:.3f} |", flush=True)


def unchanged(vectors: np.ndarray, epsilon: float, words: np.ndarray) -> float:
    """Return the mean share of draws that give the word itself."""
    generator = np.random.default_rng(2)  # for all epsilons alike
    outputs = MadlibSimulator(vectors).outputs(words, [epsilon], DRAWS, generator)[0]
    return float((outputs == words[:, None]).mean())


def epsilon_of(vectors: np.ndarray, words: np.ndarray) -> float:
    """Find the epsilon at which `SHARE` of the words come back unchanged."""
    low, high = 1.0, 100.0
    for _ in range(STEPS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if unchanged(vectors, middle, words) < SHARE else (low, middle)
    return (low * high) ** 0.5


def decoders(
    vectors: np.ndarray, mapped: np.ndarray, epsilon: float, words: np.ndarray
) -> tuple[float, float, float]:
    """Return N_w by either nearest word of the same noise, and how often the two are one word.

    The map is linear: its inverse is found from the vectors and their images.
    """
    back, *_ = np.linalg.lstsq(mapped.astype(np.float64), vectors.astype(np.float64), rcond=None)
    noise = unit_noise(mapped.shape[1], PAPERS_DRAWS, np.random.default_rng(3)) / epsilon
    queries = (mapped[words][:, None] + noise).reshape(-1, mapped.shape[1]).astype(np.float32)
    own = vector_search(EXACT, mapped).nearest(queries)
    papers = vector_search(EXACT, vectors).nearest((queries @ back).astype(np.float32))
    true = np.repeat(words, PAPERS_DRAWS)
    return (
        float((own == true).mean()),
        float((papers == true).mean()),
        float((own == papers).mean()),
    )


if __name__ == "__main__":
    main()
