"""Counting, the choice of words, and numbers that do not depend on who runs the blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from quietcorpus.evaluation.calibration import (
    WORDS_A_BLOCK,
    Block,
    BlockTask,
    DrawCounts,
    Measured,
    child,
    choose_words,
    held_draws,
    measure,
)
from quietcorpus.evaluation.simulation import CodeSimulator, Simulator, VectorSimulator

ALPHA = 1e-6


class Fixed:
    """A mechanism whose outputs are given."""

    def __init__(self, outputs: np.ndarray) -> None:
        self.given = outputs
        self.size = outputs.max() + 1

    def outputs(
        self,
        words: np.ndarray,
        epsilons: Sequence[float],
        draws: int,
        generator: np.random.Generator,
    ) -> np.ndarray:
        return self.given.copy()


def simulators(words: int = 300) -> list[Simulator]:
    generator = np.random.default_rng()
    vectors = generator.normal(size=(words, 6)).astype(np.float32)
    codes = generator.integers(2**64, size=(words, 2), dtype=np.uint64)
    return [VectorSimulator(vectors), CodeSimulator(codes)]


def same(one: Measured, other: Measured) -> bool:
    return all(
        np.array_equal(getattr(one, field.name), getattr(other, field.name))
        for field in fields(Measured)
    )


@pytest.mark.parametrize("held", [1, 17, 50])
def test_counts_are_those_of_a_counter(held: int) -> None:
    # Kills: the last run lost, least frequent first, `>` for `>=` held, a word's count for
    # another's, a run's length shifted. Few outputs make ties, many make runs of one.
    generator = np.random.default_rng()
    for kinds in (1, 3, 30, 1000):
        outputs = generator.integers(kinds, size=(2, 9, 50)).astype(np.int32)
        words = generator.integers(kinds, size=9)
        block = Block(4, words, np.random.SeedSequence())
        tally = BlockTask(Fixed(outputs), (1.0, 2.0), 50, held)(block)
        assert tally.number == 4
        for e in range(2):
            for w in range(9):
                counts = Counter(outputs[e, w].tolist())
                frequent = sorted(counts.values(), reverse=True)
                sizes = [size for size in range(51) if sum(frequent[:size]) >= held]
                assert tally.unchanged[e, w] == counts[words[w]]
                assert tally.distinct[e, w] == len(counts)
                assert tally.set_size[e, w] == sizes[0]


def test_held_draws_are_exact() -> None:
    # Kills: floats (0.9 * 10 and 0.7 * 10 round either way), rounding down, eta for 1 - eta.
    assert held_draws(1000, Fraction(1, 20)) == 950
    assert held_draws(10, Fraction(3, 10)) == 7
    assert held_draws(10, Fraction(1, 10)) == 9
    assert held_draws(7, Fraction(1, 10)) == 7
    for eta in (Fraction(0), Fraction(1), Fraction(-1, 2)):
        with pytest.raises(ValueError, match="eta"):
            held_draws(10, eta)


def test_shares_and_entropies_by_hand() -> None:
    # Kills: proxies swapped, the sign, base 2, an error where no draw was unchanged.
    zeros = np.zeros(2, dtype=np.int64)
    counts = np.array([[5, 0]], dtype=np.int32)
    sizes = np.array([[1, 8]], dtype=np.int32)
    measured = Measured((1.0,), zeros, zeros, 10, 9, counts, sizes, sizes)
    np.testing.assert_allclose(measured.unchanged_share, [[0.5, 0.0]])
    np.testing.assert_allclose(measured.min_entropy, [[np.log(2), np.inf]])
    np.testing.assert_allclose(measured.max_entropy, [[0.0, np.log(8)]])


def reversed_order(task: BlockTask, blocks: Sequence[Block]) -> Iterable[DrawCounts]:
    return [task(block) for block in reversed(blocks)]


def threaded(task: BlockTask, blocks: Sequence[Block]) -> Iterable[DrawCounts]:
    with ThreadPoolExecutor(2) as pool:
        yield from pool.map(task, blocks)


@pytest.mark.parametrize("which", [0, 1])
def test_whoever_runs_the_blocks_the_numbers_are_the_same(which: int) -> None:
    # Kills: a generator shared by blocks, results in order of arrival, seeds spawned in turn.
    simulator = simulators()[which]
    seed = np.random.SeedSequence()
    words = choose_words(simulator.size, 200, child(seed, 0))  # four blocks, the last a short one
    runs = [
        measure(simulator, words, [0.5, 2.0], 80, 76, child(seed, 1), run)
        for run in (map, threaded, reversed_order)
    ]
    assert same(runs[0], runs[1])
    assert same(runs[0], runs[2])
    assert runs[0].unchanged.shape == (2, 200)
    other = measure(simulator, words, [0.5, 2.0], 80, 76, child(seed, 2))
    assert not same(runs[0], other)


@pytest.mark.parametrize("which", [0, 1])
def test_blocks_have_noise_of_their_own(which: int) -> None:
    # Kills: one seed for all blocks. The same words in two blocks are measured differently.
    simulator = simulators()[which]
    words = np.tile(np.arange(WORDS_A_BLOCK), 2)
    measured = measure(simulator, words, [1.0], 200, 190, np.random.SeedSequence())
    first, second = np.split(measured.unchanged[0], 2)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(measured.blocks, np.repeat([0, 1], WORDS_A_BLOCK))


@pytest.mark.parametrize("which", [0, 1])
def test_words_are_better_hidden_as_epsilon_falls(which: int) -> None:
    # Kills: epsilons in another order than asked for, counts of one epsilon for another's.
    simulator = simulators()[which]
    epsilons = [[10.0, 6.0, 4.0, 2.5], [0.8, 0.6, 0.4, 0.25]][which]
    measured = measure(simulator, np.arange(100), epsilons, 300, 285, np.random.SeedSequence())
    assert (np.diff(measured.unchanged_share.mean(axis=1)) < -0.02).all()
    assert (np.diff(measured.set_size.mean(axis=1)) > 1).all()
    assert (np.diff(measured.distinct.mean(axis=1)) > 1).all()


def test_children_do_not_depend_on_when_they_are_asked_for() -> None:
    # Kills: `spawn`, which gives others the second time; children of children that collide.
    seed = np.random.SeedSequence()
    states = [
        tuple(made.generate_state(4))
        for made in (child(seed, 0), child(seed, 1), child(child(seed, 0), 1), seed)
    ]
    assert len(set(states)) == 4
    assert tuple(child(seed, 1).generate_state(4)) == states[1]
    assert tuple(np.random.SeedSequence(seed.entropy).spawn(2)[1].generate_state(4)) == states[1]


def test_words_alike_are_drawn_once_and_in_no_order() -> None:
    # Kills: drawing with replacement, or the first words of the vocabulary.
    seed = np.random.SeedSequence()
    everything = choose_words(50, None, seed)
    assert sorted(everything) == list(range(50))
    assert everything.tolist() != list(range(50))
    some = choose_words(10**6, 1000, seed)
    assert len(set(some.tolist())) == 1000
    # The mean of 1,000 uniforms of a million: 4.9 standard deviations are 45,000 (alpha 1e-6).
    assert abs(some.mean() - 5e5) < 45_000


def test_weighted_words_come_as_often_as_their_weight_says() -> None:
    # Kills: weights ignored, normalised wrongly, or words drawn only once.
    weights = np.array([5.0, 0.0, 3.0, 2.0])
    drawn = np.bincount(choose_words(4, 10_000, np.random.SeedSequence(), weights), minlength=4)
    assert drawn[1] == 0
    share = np.array([0.5, 0.3, 0.2])
    assert stats.chisquare(drawn[[0, 2, 3]], 10_000 * share).pvalue >= ALPHA
    # Control: 10,000 draws tell these weights from equal ones.
    assert stats.chisquare(drawn[[0, 2, 3]]).pvalue < ALPHA


@pytest.mark.parametrize(
    ("count", "weights", "message"),
    [
        (0, None, "name 1 to 4"),
        (5, None, "name 1 to 4"),
        (None, [1, 1, 1, 1], "needs a number"),
        (0, [1, 1, 1, 1], "needs a number"),
        (2, [1, 1, 1], "must be 4"),
        (2, [1, -1, 1, 1], "negative"),
        (2, [1, np.nan, 1, 1], "finite"),
        (2, [1, np.inf, 1, 1], "finite"),
        (2, [0, 0, 0, 0], "all weights are zero"),
    ],
)
def test_words_that_cannot_be_chosen(
    count: int | None, weights: list[float] | None, message: str
) -> None:
    given = None if weights is None else np.array(weights, dtype=np.float64)
    with pytest.raises(ValueError, match=message):
        choose_words(4, count, np.random.SeedSequence(), given)


@pytest.mark.parametrize(
    ("words", "epsilons", "draws", "held", "message"),
    [
        ([], [1.0], 10, 9, "nothing to measure"),
        ([0], [], 10, 9, "nothing to measure"),
        ([0], [1.0, 0.0], 10, 9, "above 0"),
        ([0], [-1.0], 10, 9, "above 0"),
        ([0], [np.nan], 10, 9, "above 0"),
        ([0], [np.inf], 10, 9, "finite"),
        ([0], [1.0], 10, 0, "name 1 to 10"),
        ([0], [1.0], 10, 11, "name 1 to 10"),
    ],
)
def test_what_cannot_be_measured(
    words: list[int], epsilons: list[float], draws: int, held: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        measure(
            simulators(4)[0],
            np.array(words, dtype=np.int64),
            epsilons,
            draws,
            held,
            np.random.SeedSequence(),
        )
