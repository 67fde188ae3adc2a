"""Words drawn by their distances: tables, draws a second, and an audit of 2,000 words.

Rows of a table are made for a sample of words, and the whole is estimated from it. Draws are of
words as frequent as in English text, of a table that has them. Times are of one thread's processor,
and those of draws the least of ten, since other work on the machine can only add to them.

    OPENBLAS_NUM_THREADS=1 python benchmarks/drawn_words.py --wide build/wide.npz
"""

from __future__ import annotations

import argparse
import os
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

from quietcorpus.evaluation.attacks.inversion import zipf
from quietcorpus.indexes.vectors import read
from quietcorpus.indexes.within import Within
from quietcorpus.mechanisms.distance_draws import Decline, DistanceDraws
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.tem import TruncatedExponential, radius_of
from quietcorpus.mechanisms.word_exponential import WordExponential
from quietcorpus.pipelines.kinds.words.laws import largest_loss

EPSILONS = Fraction(5), Fraction(10), Fraction(12), Fraction(15)
AUDITED = Fraction(4), Fraction(10)
SAMPLE, FREQUENT = 512, 1_000
DRAWS, REPEATS = 1 << 16, 10
MOST_ENTRIES = 1 << 27
AUDITED_WORDS = 2_000
ENTRY_BYTES = 14


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--wide", required=True, help="100-d vectors of 341k words, .npz")
    path = Path(parser.parse_args().wide)
    values = read(path.name, lambda sibling: (path.parent / sibling).open("rb")).values
    distances = Within(values)
    scale = len(values) * ENTRY_BYTES / 2**30
    print(f"{len(values):,} words, {values.shape[1]} dimensions\n")
    print(
        "| epsilon | gamma | entries a word | ms a row | all rows, core minutes | all rows, GiB | "
        "TEM, M words/s | exponential, M words/s |\n|---|---|---|---|---|---|---|---|"
    )
    for epsilon in EPSILONS:
        gamma = radius_of(epsilon, len(values))
        entries, seconds = rows_of(distances, TruncatedExponential(epsilon, gamma).decline)
        rates = [
            drawn_a_second(distances, decline, entries) / 1e6
            for decline in (
                TruncatedExponential(epsilon, gamma).decline,
                WordExponential(epsilon).decline,
            )
        ]
        print(
            f"| {epsilon} | {float(gamma):.3g} | {entries:,.0f} | {1000 * seconds:.1f} | "
            f"{seconds * len(values) / 60:.0f} | {entries * scale:.1f} | "
            f"{rates[0]:.1f} | {rates[1]:.1f} |",
            flush=True,
        )
    print(
        "\n| audited | epsilon | stated | largest loss | a peer's constant |\n|---|---|---|---|---|"
    )
    few = Within(values[:AUDITED_WORDS])
    for epsilon in AUDITED:
        gamma = radius_of(epsilon, AUDITED_WORDS)
        for name, decline in (
            ("TEM", TruncatedExponential(epsilon, gamma).decline),
            ("exponential", WordExponential(epsilon).decline),
        ):
            found = largest_loss(DistanceDraws(few, decline), few, AUDITED_WORDS)
            peer = largest_loss(Peer(few, decline), few, AUDITED_WORDS) if name == "TEM" else None
            shown = "" if peer is None else f"{peer:.4g}"
            print(f"| {name} | {epsilon} | {epsilon} | {found:.4g} | {shown} |", flush=True)


class Peer(DistanceDraws):
    """TEM with ln(V / (V - k)) in place of ln(k) for the k words beyond gamma."""

    def weights(self, words: np.ndarray) -> tuple:
        (offsets, ids, squares), rests, bases = super().weights(words)
        near, size = np.diff(offsets), self._distances.size
        wrong = bases * (size / near) / np.maximum(size - near, 1)
        return (offsets, ids, squares), np.maximum(0, rests + np.repeat(bases - wrong, near)), wrong


def rows_of(distances: Within, decline: Decline) -> tuple[float, float]:
    """Return the mean number of entries of a word's row, and the seconds that a row takes."""
    words = np.random.default_rng().choice(distances.size, SAMPLE, replace=False).astype(np.int32)
    draws = DistanceDraws(distances, decline, most_entries=1)
    draws.add(words[:2])  # compiles
    entries, begun = 0, time.process_time()
    for start in range(0, SAMPLE, 64):
        draws.add(words[start : start + 64])
        entries += draws.entries
    return entries / SAMPLE, (time.process_time() - begun) / SAMPLE


def drawn_a_second(distances: Within, decline: Decline, entries: float) -> float:
    """Return how many words are drawn a second; the most frequent ones come first in the file.

    There are as many different words as a table holds, with rows of so many `entries`.
    """
    frequent = int(min(FREQUENT, MOST_ENTRIES / 2 / entries))
    chances = zipf(np.arange(1, frequent + 1))
    words = np.random.default_rng().choice(frequent, DRAWS, p=chances).astype(np.int32)
    stream = ReleaseKey.derive(os.urandom(32), "benchmark", b"").stage("words", 1)
    addresses = stream.addresses("", range(DRAWS), [b""] * DRAWS)
    draws = DistanceDraws(distances, decline, most_entries=MOST_ENTRIES)
    draws.draw(words, stream, addresses)
    spent = []
    for _ in range(REPEATS):
        begun = time.process_time()
        draws.draw(words, stream, addresses)
        spent.append(time.process_time() - begun)
    return DRAWS / min(spent)


if __name__ == "__main__":
    main()
