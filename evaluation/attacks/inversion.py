"""Word inversion: guesses of the original word from the one that a word mechanism released.

The attacker knows the mechanism and a public prior over words. Its best guess is the Bayes guess
(Chatzikokolakis, Palamidessi and Panangaden 2008); the plain guess is the released word itself, the
one nearest to the noisy vector: `np.arange(V)` as guesses.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from quietcorpus.evaluation.simulation import Simulator
from quietcorpus.evaluation.tallies import Block, blocks_of

_SHIFT = 2.7
_EDGES = (100, 1_000, 10_000)
_SMOOTHINGS = (0.0, 1.0, 10.0, 100.0, 1e3, 1e4, 1e9)


def zipf(ranks: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Compute a public prior: probabilities proportional to 1 / (rank + 2.7), which sum to one.

    Ranks are by frequency, 1 for the most frequent word, int64 (n,). It is Mandelbrot's (1953) form
    of Zipf's law, with the constants for English of Piantadosi (2014).
    """
    weights = 1 / (ranks + _SHIFT)
    prior: npt.NDArray[np.float64] = weights / weights.sum()
    return prior


def simulated_counts(
    simulator: Simulator,
    words: npt.NDArray[np.int64],
    epsilon: float,
    draws: int | npt.NDArray[np.int64],
    seed: np.random.SeedSequence,
) -> sp.csr_array:
    """Count each word's outputs in simulated draws: int64 (n, V); every row sums to its `draws`.

    Rows follow the mechanism's law, but up to 64 consecutive words share their noise.

    Args:
        simulator: the mechanism on V words.
        words: int64 (n,), the secrets, distinct.
        epsilon: per unit of the mechanism's distance.
        draws: the number of outputs of each word; where these differ, int64 (n,), each block of 64
            consecutive words takes the largest number of the block.
        seed: the seed of the draws; draws that measure the guesses' success need another one.
    """
    each = np.broadcast_to(draws, len(words))
    parts, done = [], 0
    for block in blocks_of(words, seed):
        most = int(each[done : done + len(block.words)].max())
        parts.append(_counted(simulator, block, epsilon, most))
        done += len(block.words)
    return sp.vstack(parts, format="csr")


def _counted(simulator: Simulator, block: Block, epsilon: float, draws: int) -> sp.csr_array:
    generator = np.random.default_rng(block.seed)
    outputs = simulator.outputs(block.words, [epsilon], draws, generator)[0]
    rows = np.repeat(np.arange(len(outputs)), draws)
    ones = np.ones(outputs.size, dtype=np.int64)
    # The conversion adds up the ones at equal places.
    return sp.coo_array(
        (ones, (rows, outputs.ravel())), shape=(len(outputs), simulator.size)
    ).tocsr()


def bayes_guesses(
    words: npt.NDArray[np.int64],
    counts: sp.csr_array,
    prior: npt.NDArray[np.float64],
    smoothing: float = 0.0,
) -> npt.NDArray[np.int64]:
    """Guess, for each output, the word of largest prior times estimated probability: int64 (V,).

    The probability is estimated by the share of the word's draws, with `smoothing` further draws
    that follow the output's law under the prior (additive smoothing). Without smoothing, a word is
    never guessed for an output that it never gave, and an output that no word ever gave is guessed
    to be itself. An estimation error makes the guess worse, never better than the Bayes guess. Of
    equals, the first in `words` is guessed.

    Args:
        words: int64 (n,), the secrets, distinct, of 0 .. V - 1.
        counts: non-negative (n, V), of `simulated_counts`; every row has a draw.
        prior: float64 (n,), non-negative, to any scale.
        smoothing: 0 for an estimate from the draws alone.
    """
    draws = counts.sum(axis=1)
    drawn = counts.tocoo()
    seen = drawn.data > 0
    rows, outputs, times = drawn.row[seen], drawn.col[seen], drawn.data[seen]
    output = np.bincount(outputs, times * (prior / draws)[rows], counts.shape[1]) / prior.sum()
    weights = prior / (draws + smoothing)
    joint = sp.csc_array(
        (weights[rows] * (times + smoothing * output[outputs]), (rows, outputs)), counts.shape
    )
    joint.eliminate_zeros()  # of words that the prior rules out
    best = joint.argmax(axis=0)
    unseen = int(np.argmax(weights))  # the likeliest word for an output that it never gave
    reached = np.diff(joint.indptr) > 0
    itself = np.arange(len(output))
    if not smoothing:
        return np.where(reached, words[best], itself)
    values = np.asarray(joint.max(axis=0).todense()).ravel()
    likelier = reached & (values >= weights[unseen] * smoothing * output)
    guesses: npt.NDArray[np.int64] = np.where(likelier, words[best], words[unseen])
    return guesses


def best_guesses(
    words: npt.NDArray[np.int64],
    counts: sp.csr_array,
    others: sp.csr_array,
    prior: npt.NDArray[np.float64],
) -> npt.NDArray[np.int64]:
    """Choose the most successful of several guesses, by further draws: int64 (V,).

    They are the output itself, and `bayes_guesses` from no smoothing to so much that only the prior
    is left. The best smoothing depends on the noise: with thousands of words and a few draws for
    each, some word's estimate is too high for almost every output.

    Args:
        words, counts, prior: as for `bayes_guesses`.
        others: (n, V), of draws that had no part in the guesses.
    """
    tried = [np.arange(counts.shape[1])]
    tried += [bayes_guesses(words, counts, prior, amount) for amount in _SMOOTHINGS]
    successes = [float(prior @ recovered(words, others, guesses)) for guesses in tried]
    return tried[int(np.argmax(successes))]


def recovered(
    words: npt.NDArray[np.int64], counts: sp.csr_array, guesses: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Compute the share of each word's draws from which the word is guessed: float64 (n,).

    Its average, weighted by the prior, is the attack's success. Draws that the guesses were made
    from overstate it.

    Args:
        words: int64 (n,), the secrets.
        counts: non-negative (n, V), of fresh draws; every row has one.
        guesses: int64 (V,), the guess for each output.
    """
    drawn = counts.tocoo()
    right = guesses[drawn.col] == words[drawn.row]
    hits = np.bincount(drawn.row[right], weights=drawn.data[right], minlength=len(words))
    shares: npt.NDArray[np.float64] = hits / counts.sum(axis=1)
    return shares


def by_frequency(
    ranks: npt.NDArray[np.int64], edges: Sequence[int] = _EDGES
) -> dict[str, npt.NDArray[np.bool_]]:
    """Mark the words of each band of frequency, (n,); bands with words only, frequent words first.

    Args:
        ranks: int64 (n,), the rank of each word, from 1.
        edges: the last rank of each band except the open one, ascending.
    """
    places = np.searchsorted(edges, ranks)
    first = [1, *(edge + 1 for edge in edges)]
    labels = [f"{low:,}-{high:,}" for low, high in zip(first, edges, strict=False)]
    bands = enumerate([*labels, f"beyond {edges[-1]:,}"])
    inside = {label: places == number for number, label in bands}
    return {label: band for label, band in inside.items() if band.any()}
