"""Sizes and telling words: what stands out of the noise, and what does not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from quietcorpus.pipelines.kinds.overview.findings import (
    MOST_WORDS,
    Noise,
    counts_table,
    groups_table,
    months_table,
    threshold,
    words_table,
)

NOISE = Noise(5.0, 20.0)
GENERATOR = np.random.default_rng


def test_small_groups_are_empty_and_have_no_share() -> None:
    # Kills: shares of noise, a threshold for one group alone.
    least = NOISE.least_size(4)
    table = groups_table(np.array([least, least - 1, -3, 3 * least]), NOISE)
    assert table["is_empty"].to_pylist() == [False, True, True, False]
    assert table["share"].to_pylist() == [0.25, 0, 0, 0.75]
    assert least > 2 * NOISE.of_size
    every = groups_table(np.zeros(3, np.int64), NOISE)
    assert every["share"].to_pylist() == [0, 0, 0]


def test_noise_alone_rarely_fills_a_group_or_tells_a_word() -> None:
    # Each has a chance of 5 % at most; of 200 draws, more than 30 have one of 1e-7. Kills: a
    # threshold for a single number.
    generator, groups, words = GENERATOR(), 6, 300
    filled = told = 0
    for _ in range(200):
        sizes = np.rint(generator.normal(0, NOISE.of_size, groups)).astype(np.int64)
        filled += not all(groups_table(sizes, NOISE)["is_empty"].to_pylist())
        full = groups_table(np.full(groups, 1000), NOISE)
        counts = 400 + np.rint(generator.normal(0, NOISE.of_word, (groups, words))).astype(np.int64)
        terms = pa.array([f"w{n}" for n in range(words)])
        told += len(words_table(counts, full, terms, NOISE)) > 0
    assert max(filled, told) <= 30
    assert threshold(10) < threshold(1000)


def test_words_are_told_with_the_true_ratio_between_the_ends() -> None:
    # Of 400 intervals of 95 %, fewer than 350 hold their truth with a chance of 1e-9. Kills:
    # ends of one deviation, or without the noise of the whole; the wrong group; another ratio.
    generator, groups = GENERATOR(), 4
    sizes = np.array([4000, 2000, 2000, 2000])
    true = np.full((groups, 100), 500) * sizes[:, None] // 2000
    true[1] = 2000
    held = 0
    for _ in range(4):
        counts = true + np.rint(generator.normal(0, NOISE.of_word, true.shape)).astype(np.int64)
        noisy = sizes + np.rint(generator.normal(0, NOISE.of_size, groups)).astype(np.int64)
        terms = pa.array([f"w{n}" for n in range(100)])
        table = words_table(counts, groups_table(noisy, NOISE), terms, NOISE)
        assert set(table["group"].to_pylist()) == {1}
        assert len(table) == MOST_WORDS
        truth = (2000 / 2000) / (4000 / 10_000)
        low, high = table["low"].to_numpy(), table["high"].to_numpy()
        # Those of the largest lower ends are chosen, so the lower end alone is off more often.
        held += int(((low < truth * 1.05) & (truth < high)).sum())
        assert np.diff(low).max() <= 0
    assert held >= 175


def test_empty_groups_have_no_words_and_no_part_in_the_whole() -> None:
    # Kills: words of groups that are said to be empty, whose noise counts as use.
    sizes = groups_table(np.array([1000, 1000, 0]), NOISE)
    counts = np.array([[900, 100], [100, 100], [5000, 5000]])
    table = words_table(counts, sizes, pa.array(["a", "b"]), NOISE)
    assert [(one["group"], one["term"]) for one in table.to_pylist()] == [(0, "a")]
    assert table["ratio"].to_pylist() == [pytest.approx(1.8)]
    assert (
        len(words_table(counts, groups_table(np.zeros(3, int), NOISE), pa.array(["a", "b"]), NOISE))
        == 0
    )


def test_tables_have_a_row_for_each_number() -> None:
    # Kills: rows in another order than their numbers.
    counts = counts_table(np.arange(6).reshape(2, 3))
    assert counts.to_pylist()[4] == {"group": 1, "term_id": 1, "count": 4}
    months = months_table(np.arange(4).reshape(2, 2), 12 * 1999 + 11).to_pylist()
    assert months[1] == {"group": 1, "month": "1999-12", "documents": 1}
    assert months[2] == {"group": 0, "month": "2000-01", "documents": 2}


def test_one_group_alone_has_no_telling_words() -> None:
    # Kills: a quotient of zeros, where the group is the whole and noise cancels out.
    sizes = groups_table(np.array([1000, 0]), NOISE)
    counts = np.array([[900, 100], [7, 7]])
    assert len(words_table(counts, sizes, pa.array(["a", "b"]), NOISE)) == 0
