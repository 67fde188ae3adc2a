"""The best attacker on released words, with a prior from public reviews.

The index has its first 8,000 words alone, which are the most frequent ones. The prior is learnt
from 5,000 reviews, and 200 others are released. Each word is guessed alone, and those of the first
ten reviews also together; beside them are the released word itself, what is expected over the
prior, and what the guarantee allows.

    python benchmarks/best_attacker.py --reviews REVIEWS.parquet --index INDEX
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from quietcorpus.evaluation.intervals import mean_over_blocks
from quietcorpus.indexes.tokenizer import tokenize
from quietcorpus.indexes.vocabulary import Vocabulary
from quietcorpus.indexes.word_index import WordIndex
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.pipelines.kinds.words.guesses import WordAttacker, by_text
from quietcorpus.transforms.artefacts.word_index import IndexSource
from quietcorpus.transforms.privatizers.words import WordMechanism, WordPrivatizer, WordsParameters
from quietcorpus.transforms.reading.documents import Documents

WORDS, PUBLIC, REVIEWS, TOGETHER = 8_000, 5_000, 200, 10
SETTINGS = (
    (WordMechanism.EXPONENTIAL, "0.2"),
    (WordMechanism.EXPONENTIAL, "2"),
    (WordMechanism.MADLIB, "6"),
    (WordMechanism.MADLIB, "10"),
    (WordMechanism.BRR, "0.3"),
    (WordMechanism.BRR, "0.45"),
)


def first_words(index: WordIndex) -> WordIndex:
    """Return an index of the first words, which the file of vectors begins with."""
    return WordIndex(
        replace(index.manifest, words=WORDS),
        Vocabulary(index.vocabulary.terms.to_pylist()[:WORDS]),
        index.vectors[:WORDS],
        index.codes[:WORDS],
    )


def main() -> None:
    """Print a row for each setting."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--reviews", required=True)
    parser.add_argument("--index", required=True)
    given = parser.parse_args()
    source = IndexSource.resolve("--index", given.index)
    index = first_words(source.open())
    table = pq.read_table(given.reviews, columns=["split", "text"])
    public, private = (table.filter(pc.equal(table["split"], name)) for name in ("train", "test"))
    chosen = np.random.default_rng(1).choice(len(private), REVIEWS, replace=False)
    texts = private["text"].take(pa.array(chosen)).combine_chunks().cast(pa.large_string())
    rows = np.arange(REVIEWS, dtype=np.int64)
    documents = Documents("reviews", rows, texts, pa.table({}))
    offsets, before = index.vocabulary.look_up(tokenize(texts))
    blocks = np.repeat(rows, np.diff(offsets))

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "public.parquet")
        pq.write_table(public.slice(0, PUBLIC), path)
        any_ = WordsParameters(WordMechanism.MADLIB, Fraction(1), "word", "drop", source)
        prior = by_text(path, "text", any_, index)
    attacker = WordAttacker(index, prior)
    print(f"{len(before):,} words of {REVIEWS} reviews; floor {attacker.floor:.3f}\n")
    print(
        "| mechanism | epsilon | released word | alone | together | expected, alone | between "
        "| the guarantee allows |\n|---|---|---|---|---|---|---|---|"
    )
    for mechanism, epsilon in SETTINGS:
        parameters = WordsParameters(mechanism, Fraction(epsilon), "word", "drop", source)
        released = WordPrivatizer(parameters, index, ReleaseKey.fresh()).release(documents)
        found, after = index.vocabulary.look_up(tokenize(released.rows["text"].combine_chunks()))
        assert np.array_equal(found, offsets)
        attack = attacker.against(parameters, float(Fraction(epsilon)))
        pieces = np.split(after.astype(np.int64), offsets[1:-1])[:TOGETHER]
        together = np.concatenate([attacker.together(attack.law, one) for one in pieces])
        shares = []
        for guesses in (after, attack.best.guesses[after], together):
            right = (guesses == before[: len(guesses)]).astype(float)
            low, high = mean_over_blocks(right, blocks[: len(guesses)], 0.95)
            shares.append(f"{right.mean():.3f} ({low:.3f} to {high:.3f})")
        best = attack.best
        print(
            f"| {mechanism.value} | {epsilon} | {' | '.join(shares)} | {best.success:.3f} "
            f"| {best.low:.3f} to {best.high:.3f} | {attack.bound:.4g} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
