"""The speed of the kernels on one core, as ratios in one run: `make bench`.

Every rate is the median of several repetitions. The goals are those of the first release.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from quietcorpus.mechanisms.bags.bag_of_words import Accounting, BagOfWords, add_noise
from quietcorpus.mechanisms.bags.bags import Bags, clip
from quietcorpus.mechanisms.bags.decompression import Decompression
from quietcorpus.mechanisms.keystream import Addresses, Keystream, ReleaseKey
from quietcorpus.mechanisms.noise.geometric import DenseNoise, SparseNoise

REPETITIONS = 15
DOCUMENTS = 1024
TOKENS = 270
RATE = Fraction(1, 2)


def main() -> None:
    stream = ReleaseKey.derive(os.urandom(32), "benchmark", b"").stage("documents", 1)
    addresses = stream.addresses("corpus", range(DOCUMENTS), [b"text"] * DOCUMENTS)
    print("| kernel, one core | measured | goal |\n|---|---|---|")
    geometric_against_numpy(stream, addresses)
    documents_at_100_bins(stream, addresses)
    decompression(stream, addresses)
    without_compression(stream, addresses)


def seconds(run: Callable[[], object]) -> float:
    """Return the median seconds of a call, after one that warms up."""
    run()
    times = []
    for _ in range(REPETITIONS):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def geometric_against_numpy(stream: Keystream, addresses: Addresses) -> None:
    """Compare exact keyed noise with the insecure difference of two NumPy geometrics."""
    values = DOCUMENTS * 1000
    dense = DenseNoise(RATE, 1000)
    generator = np.random.default_rng()
    p = -np.expm1(-float(RATE))

    def numpy_noise() -> object:
        return generator.geometric(p, values) - generator.geometric(p, values)

    ours, theirs = seconds(lambda: dense.sample(stream, addresses)), seconds(numpy_noise)
    row(
        f"two-sided geometric, rate 0.5, {values / ours / 1e6:.0f} M values/s against NumPy's "
        f"{values / theirs / 1e6:.0f} M",
        f"{theirs / ours:.1f}x",
        ">= 5x",
    )


def documents_at_100_bins(stream: Keystream, addresses: Addresses) -> None:
    """Time noise for K = 100 bins, with and without the address (keyed hash) of each document."""
    dense = DenseNoise(RATE, 100)
    noise = seconds(lambda: dense.sample(stream, addresses))
    text = [b"x" * 1000] * DOCUMENTS
    hashing = seconds(lambda: stream.addresses("corpus", range(DOCUMENTS), text))
    row("noise for K = 100", documents(noise), ">= 1,000,000 documents/s")
    row("the same with the keyed hash of 1,000 bytes of text", documents(noise + hashing), "")


def decompression(stream: Keystream, addresses: Addresses) -> None:
    """Time the decompression of K = 100 noisy bins to 6,800 terms."""
    terms, bins = 6800, 100
    weights = (1e6 / np.arange(1, terms + 1)).astype(np.int64)
    map_ = (np.arange(terms) % bins).astype(np.int32)
    bags = release(stream, addresses, map_, weights, bins, RATE)
    table = Decompression(map_, weights, bins)

    def words(count: int) -> np.ndarray:
        """Draw random words from the keyed stream, as a release does."""
        return stream.blocks(addresses[:1], -(-count // 2), lane=254).view("<u8")[0, :count]

    row(
        f"decompression to 6,800 terms, {bags.counts.sum() / DOCUMENTS:.0f} tokens a document",
        documents(seconds(lambda: table.expand(bags, words))),
        ">= 100,000 documents/s",
    )


def release(
    stream: Keystream,
    addresses: Addresses,
    map_: np.ndarray,
    weights: np.ndarray,
    bins: int,
    rate: Fraction,
) -> Bags:
    """Return noisy, clipped bins of documents of 270 Zipf tokens."""
    generator = np.random.default_rng()
    tokens = generator.choice(len(weights), DOCUMENTS * TOKENS, p=weights / weights.sum())
    offsets = np.arange(0, DOCUMENTS * TOKENS + 1, TOKENS)
    mechanism = BagOfWords(1, rate, len(weights), bins, Accounting.TIGHT)
    return clip(add_noise(mechanism.noise(), bins, stream, addresses, offsets, map_[tokens]))


def without_compression(stream: Keystream, addresses: Addresses) -> None:
    """Time sparse noise over 100,000 terms."""
    few = addresses[:64]
    for rate in (1, 3, 5):
        sparse = SparseNoise(Fraction(rate), 100_000)
        rate_ = len(few) / seconds(lambda s=sparse: s.sample(stream, few))
        row(
            f"sparse noise, V = 100,000, rate {rate}",
            f"{rate_:,.0f} documents/s",
            ">= 10,000 documents/s" if rate == 3 else "",
        )


def documents(taken: float) -> str:
    """Format a rate of documents."""
    return f"{DOCUMENTS / taken:,.0f} documents/s"


def row(*cells: str) -> None:
    """Print one row of the table."""
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
