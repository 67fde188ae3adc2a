"""Word inversion against the Bayes success of laws that are known in closed form.

Nothing is seeded. Guesses are compared with the exact ones where the joint probabilities that
compete for an output differ by ten deviations of their estimates or more (said at each), so that a
wrong one has a chance far below 1e-6. The success of fixed guesses on D fresh draws a word is off
by t with a probability of at most 2 exp(-2 t^2 D / sum prior^2) (Hoeffding 1963).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from scipy import stats

from quietcorpus.evaluation.attacks.inversion import (
    bayes_guesses,
    best_guesses,
    by_frequency,
    recovered,
    simulated_counts,
    zipf,
)
from quietcorpus.evaluation.simulation import MadlibSimulator

ALPHA = 1e-6
Law = npt.NDArray[np.float64]
PRIOR = np.array([0.42, 0.22, 0.1, 0.08, 0.07, 0.05, 0.04, 0.02])
# 3-to-1 randomised response over 8 words: the truth with 0.3, each other word with 0.1.
RESPONSE = np.where(np.eye(8, dtype=bool), 0.3, 0.1)


class Table:
    """A mechanism by its law, float64 (V, V)."""

    def __init__(self, law: Law) -> None:
        self._upper = law.cumsum(axis=1)[:, :-1]

    @property
    def size(self) -> int:
        return len(self._upper)

    def outputs(
        self,
        words: npt.NDArray[np.int64],
        epsilons: Sequence[float],
        draws: int,
        generator: np.random.Generator,
    ) -> npt.NDArray[np.int32]:
        uniforms = generator.random((len(words), draws))
        found = [np.searchsorted(self._upper[w], u) for w, u in zip(words, uniforms, strict=True)]
        return np.array([found] * len(epsilons), dtype=np.int32)


def optimum(law: npt.NDArray[np.float64], prior: npt.NDArray[np.float64]) -> float:
    """Compute the Bayes guess's success, sum_o max_w prior_w law_wo; float64 (n, V) and (n,)."""
    return float((prior[:, None] * law).max(axis=0).sum())


def drawn(law: Law, draws: int) -> sp.csr_array:
    words = np.arange(len(law))
    return simulated_counts(Table(law), words, 1.0, draws, np.random.SeedSequence())


def success(law: Law, prior: Law, guesses: npt.NDArray[np.int64], draws: int) -> float:
    return float(prior @ recovered(np.arange(len(law)), drawn(law, draws), guesses))


def bound(prior: Law, draws: int) -> float:
    return math.sqrt(math.log(2 / ALPHA) * float(prior @ prior) / (2 * draws))


@pytest.mark.parametrize(
    ("law", "prior", "best", "plain"),
    [
        # Outputs 0 and 1 are taken at their word (0.126 and 0.066 against 0.042 for word 0), the
        # other six for word 0 (0.042 against 0.03 or less): 0.126 + 0.066 + 6 * 0.042. The
        # nearest of these margins, 0.012, is 12 deviations.
        (RESPONSE, PRIOR, 0.444, 0.3),
        # 0.18 against 0.32: whatever comes out, it was word 1.
        (np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([0.2, 0.8]), 0.8, 0.66),
        # 0.45 against 0.2, and 0.05 against 0.3.
        (np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([0.5, 0.5]), 0.75, 0.75),
    ],
)
def test_the_bayes_guess_reaches_the_optimum(
    law: Law, prior: Law, best: float, plain: float
) -> None:
    # Kills: the prior left out or its scale mattering, the law transposed, the maximum taken over
    # outputs, an optimum that is not one.
    words, draws = np.arange(len(law)), 20_000
    guesses = bayes_guesses(words, drawn(law, draws), 7 * prior)
    np.testing.assert_array_equal(guesses, (prior[:, None] * law).argmax(axis=0))
    assert optimum(law, prior) == pytest.approx(best)
    assert abs(success(law, prior, guesses, draws) - best) < bound(prior, draws)
    # Control: the released word itself does as well only where the prior is even.
    nearest = success(law, prior, words, draws)
    assert abs(nearest - plain) < bound(prior, draws)
    assert (best - nearest > bound(prior, draws)) == (plain < best)


def test_noise_alone_leaves_the_likeliest_word() -> None:
    # Kills: guesses that read something into noise. 0.0525 against 0.0275: 11 deviations.
    law = np.full((8, 8), 1 / 8)
    guesses = bayes_guesses(np.arange(8), drawn(law, 5000), PRIOR)
    assert (guesses == 0).all()
    np.testing.assert_array_equal(recovered(np.arange(8), drawn(law, 5), guesses), np.eye(8)[0])
    assert optimum(law, PRIOR) == pytest.approx(0.42)


def test_guesses_are_no_better_than_chance_on_fresh_draws_of_noise() -> None:
    # Kills: guesses that depend on the draws they are measured by. Of 10,000 fresh draws, each is
    # right independently, on average with 1 / 200, so that the tail is at most the binomial's
    # (Hoeffding 1956).
    words, law = np.arange(200), np.full((200, 200), 1 / 200)
    seen = drawn(law, 5)
    guesses = bayes_guesses(words, seen, np.ones(200))
    most = stats.binom.isf(ALPHA, 10_000, 1 / 200) / 10_000
    assert recovered(words, drawn(law, 50), guesses).mean() <= most
    # Control: on the draws the guesses were made from, they are.
    assert recovered(words, seen, guesses).mean() > most


def test_madlib_on_a_line_is_inverted_as_well_as_can_be() -> None:
    # Kills: epsilon not handed on. Between the points 0 and 1 the noise is Laplace's, and a word is
    # left with exp(-epsilon / 2) / 2: 0.184 at epsilon = 2, 100 deviations from even odds.
    simulator = MadlibSimulator(np.array([[0.0], [1.0]], dtype=np.float32))
    words, prior = np.arange(2), np.array([0.5, 0.5])
    counts, fresh = (
        simulated_counts(simulator, words, 2.0, 20_000, np.random.SeedSequence()) for _ in range(2)
    )
    guesses = bayes_guesses(words, counts, prior)
    np.testing.assert_array_equal(guesses, words)
    for share in recovered(words, fresh, guesses):  # the two share their noise
        assert abs(share - (1 - math.exp(-1) / 2)) < bound(np.ones(1), 20_000)


def test_rows_are_words_and_columns_outputs_over_all_blocks() -> None:
    # Kills: blocks out of order or with one seed, a cut last block, rows of vocabulary words. 130
    # words are three blocks; words 3 and 103 have one law and noise of their own (equal counts
    # have a chance below 1e-6: each of 150 outputs has about 100 draws).
    law = np.roll(np.eye(150), 1, axis=1)
    law[[3, 103]] = 1 / 150
    words = np.arange(149, 19, -1)
    words[words == 39] = 3  # as far into the second block as 103 is into the first
    seed = np.random.SeedSequence()
    counts = simulated_counts(Table(law), words, 1.0, 15_000, seed).toarray()
    assert counts.shape == (130, 150)
    assert (counts.sum(axis=1) == 15_000).all()
    certain = ~np.isin(words, [3, 103])
    np.testing.assert_array_equal(counts[certain].argmax(axis=1), (words[certain] + 1) % 150)
    assert (counts[certain].max(axis=1) == 15_000).all()
    assert (counts[words == 3] != counts[words == 103]).any()
    again = simulated_counts(Table(law), words, 1.0, 15_000, seed).toarray()
    np.testing.assert_array_equal(counts, again)


def test_guesses_by_hand() -> None:
    # Kills: counts for shares (40 > 9), a stored zero or a prior of zero taken for a chance, an
    # unseen output guessed to be the first word, the last named of equals.
    words = np.array([5, 2, 0])
    counts = sp.csr_array(
        np.array([[9, 1, 0, 7, 0, 0], [40, 60, 0, 0, 0, 0], [0, 10, 10, 0, 10, 10]])
    )
    counts.data[2] = 0  # the 7
    prior = np.array([1.0, 1.0, 0.0])
    np.testing.assert_array_equal(bayes_guesses(words, counts, prior), [5, 2, 2, 3, 4, 5])
    equal = sp.csr_array(np.full((3, 6), 2))
    assert (bayes_guesses(words, equal, np.ones(3)) == 5).all()


def test_smoothing_by_hand() -> None:
    # Two words of prior 3 and 1 and four draws each; the outputs' law is (9, 3, 4, 0) / 16. With 4
    # further draws: word 0 has 3/8 (3 + 9/4), 3/8 (1 + 3/4), 3/8 (0 + 1); word 1 has 1/8 (0 + 9/4),
    # 1/8 (0 + 3/4), 1/8 (4 + 1). Output 2 goes to word 1 by .625 against .375; output 3, which
    # nobody gave, to word 0. Kills: smoothing by a uniform law, or not scaled by the draws.
    words, prior = np.array([2, 0]), np.array([3.0, 1.0])
    counts = sp.csr_array(np.array([[3, 1, 0, 0], [0, 0, 4, 0]]))
    np.testing.assert_array_equal(bayes_guesses(words, counts, prior, 4), [2, 2, 0, 2])
    # So much that the prior alone is left.
    np.testing.assert_array_equal(bayes_guesses(words, counts, prior, 1e9), [2, 2, 2, 2])
    # With 18, output 2 is 1/22 (4 + 4.5) = .386 against 3/22 (0 + 4.5) = .614.
    np.testing.assert_array_equal(bayes_guesses(words, counts, prior, 18), [2, 2, 2, 2])


@pytest.mark.parametrize("stays", [0.5, 0.0])
def test_the_best_guess_is_no_worse_than_the_simple_ones(stays: float) -> None:
    # A word stays itself with 1/2, or never but by chance, and is any of 2,000 otherwise. Of 4
    # draws a word the plain Bayes guess is worse than the output itself (the first case), and than
    # the likeliest word whatever comes out (the second). Success on fresh draws is off by .03 with
    # a probability far below ALPHA in the first case (20 draws a word, even prior: Hoeffding), and
    # the constant guess's is the prior's exactly. Kills: guesses that trust few draws.
    size = 2_000
    law = np.full((size, size), (1 - stays) / size) + np.eye(size) * stays
    words = np.arange(size)
    prior = np.full(size, 1 / size) if stays else np.r_[0.1, np.full(size - 1, 0.9 / (size - 1))]
    once, again = drawn(law, 4), drawn(law, 40)  # by 4 a worse guess wins once in 250 times
    plain, best = bayes_guesses(words, once, prior), best_guesses(words, once, again, prior)
    fresh = drawn(law, 20)
    success = [float(prior @ recovered(words, fresh, guesses)) for guesses in (plain, best)]
    simple = stays or 0.1
    assert success[1] > simple - 0.03
    assert success[0] < success[1] - 0.01


def test_frequent_words_are_drawn_more() -> None:
    # Kills: one number of draws for all blocks, the least of a block's.
    law = np.eye(130)
    draws = np.r_[np.arange(1, 65), np.full(64, 7), [3, 2]]
    counts = simulated_counts(Table(law), np.arange(130), 1.0, draws, np.random.SeedSequence())
    np.testing.assert_array_equal(counts.sum(axis=1), np.r_[np.full(64, 64), np.full(64, 7), 3, 3])


def test_recovered_by_hand() -> None:
    # Kills: rows for words, draws counted once an output, shares of all words' draws.
    words, counts = np.array([5, 2]), sp.csr_array(np.array([[3, 1, 0], [2, 2, 4]]))
    np.testing.assert_array_equal(recovered(words, counts, np.array([5, 2, 2])), [0.75, 0.75])
    np.testing.assert_array_equal(recovered(words, counts, np.array([0, 1, 9])), [0, 0])


def test_bands_hold_their_last_rank() -> None:
    # Kills: an edge on the wrong side, zero-based ranks, an empty band, another order.
    ranks = np.array([10_001, 1, 100, 101, 1000, 10_000])
    assert {
        label: np.flatnonzero(band).tolist() for label, band in by_frequency(ranks).items()
    } == {
        "1-100": [1, 2],
        "101-1,000": [3, 4],
        "1,001-10,000": [5],
        "beyond 10,000": [0],
    }
    few = by_frequency(ranks[:2], (5, 9))
    assert [(label, band.tolist()) for label, band in few.items()] == [
        ("1-5", [False, True]),
        ("beyond 9", [True, False]),
    ]


def test_the_prior_falls_with_rank() -> None:
    # Kills: the order of words for their ranks, another shift, weights that are not a probability.
    prior = zipf(np.array([3, 1, 2]))
    assert prior.sum() == pytest.approx(1)
    np.testing.assert_allclose(prior / prior[1], [3.7 / 5.7, 1, 3.7 / 4.7])
