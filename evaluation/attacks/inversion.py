"""Word inversion: which word stood where a word mechanism put another one.

The attacker knows the mechanism and a public prior over words. The best it can do is the Bayes
guess (Chatzikokolakis, Palamidessi and Panangaden 2008); the plain guess is the released word
itself, the one nearest to the noisy vector: `np.arange(V)` as guesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from evaluation.simulation import Simulator
from evaluation.tallies import Block, blocks_of

_SHIFT = 2.7


def zipf(ranks: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """A public prior: probabilities proportional to 1 / (rank + 2.7), which sum to one.

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
    """How often each output came of each word: int64 (n, V); every row sums to its `draws`.

    Rows follow the mechanism's law, but those of up to 64 words in a row share their noise.

    Args:
        simulator: the mechanism on V words.
        words: int64 (n,), the secrets, distinct.
        epsilon: per unit of the mechanism's distance.
        draws: the number of outputs of each word; where they differ, int64 (n,), each word has
            those of the 64 words in a row that has most.
        seed: give another one for the draws that measure what guesses recover.
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
    # Equal places are added up.
    return sp.coo_array(
        (ones, (rows, outputs.ravel())), shape=(len(outputs), simulator.size)
    ).tocsr()


def bayes_guesses(
    words: npt.NDArray[np.int64], counts: sp.csr_array, prior: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """For each output, the word of the largest prior times estimated probability: int64 (V,).

    The estimate is the share of the word's draws, zero for what it never gave: an error there
    makes the guess worse, never better than the Bayes guess. Of equals, the word that is named
    first. An output that no word ever gave is guessed to be itself.

    Args:
        words: int64 (n,), the secrets, distinct, of 0 .. V - 1.
        counts: non-negative (n, V), of `simulated_counts`; every row has a draw.
        prior: float64 (n,), non-negative, to any scale.
    """
    # A product stores no zeros, so a word of no probability is never the guess.
    joint = (sp.diags_array(prior / counts.sum(axis=1)) @ counts).tocsc()
    best = joint.argmax(axis=0)
    return np.where(np.diff(joint.indptr) > 0, words[best], np.arange(joint.shape[1]))


def confirmed_guesses(
    words: npt.NDArray[np.int64],
    counts: sp.csr_array,
    others: sp.csr_array,
    prior: npt.NDArray[np.float64],
) -> npt.NDArray[np.int64]:
    """The guesses of `bayes_guesses` where other draws agree, elsewhere the output: int64 (V,).

    Of thousands of words, some one's estimate is too high for almost every output, and the largest
    of them is chosen. A guess therefore stands only if it is likelier than the output itself by
    draws that had no part in choosing it; with more and more draws it is the Bayes guess.

    Args:
        words, counts, prior: as for `bayes_guesses`.
        others: (n, V), of further draws.
    """
    guesses = bayes_guesses(words, counts, prior)
    outputs = np.arange(len(guesses))
    places = np.full(len(guesses), len(words))  # those of no word are a last row, of zeros
    places[words] = np.arange(len(words))
    joint = sp.diags_array(prior / others.sum(axis=1)) @ others
    whole = sp.vstack([joint, sp.csr_array((1, len(guesses)))], format="csr")
    chosen, itself = (whole[places[some], outputs] for some in (guesses, outputs))
    return np.where(chosen > itself, guesses, outputs)


def recovered(
    words: npt.NDArray[np.int64], counts: sp.csr_array, guesses: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """The share of each word's draws from which it is guessed: float64 (n,).

    Weighted by the prior, it averages to the attack's success. Draws that the guesses themselves
    were made from overstate it.

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


def optimum(law: npt.NDArray[np.float64], prior: npt.NDArray[np.float64]) -> float:
    """The Bayes guess's success, sum_o max_w prior_w law_wo; float64 (n, V) and (n,)."""
    return float((prior[:, None] * law).max(axis=0).sum())


@dataclass(frozen=True)
class Band:
    """Words of neighbouring frequency: the share recovered, and how many entries it averages."""

    label: str
    share: float
    count: int


def by_frequency(
    shares: npt.NDArray[np.float64],
    ranks: npt.NDArray[np.int64],
    edges: Sequence[int] = (100, 1_000, 10_000),
) -> list[Band]:
    """The mean share recovered by rank, for the bands that have an entry, frequent words first.

    Args:
        shares: float64 (n,), of words, or 0 and 1 of the tokens of a release.
        ranks: int64 (n,), the rank of each, from 1.
        edges: the last rank of each band but the open one, ascending.
    """
    places = np.searchsorted(edges, ranks)
    first = [1, *(edge + 1 for edge in edges)]
    labels = [f"{low:,}-{high:,}" for low, high in zip(first, edges, strict=False)]
    bands = enumerate([*labels, f"beyond {edges[-1]:,}"])
    inside = [(label, shares[places == number]) for number, label in bands]
    return [Band(label, float(own.mean()), len(own)) for label, own in inside if len(own)]
