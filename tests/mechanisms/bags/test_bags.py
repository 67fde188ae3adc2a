"""Sparse bags: both ways to add noise agree with a dense sum in NumPy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quietcorpus.mechanisms.bags.bags import Bags, add_dense, add_sparse, clip

LARGEST = 2**31 - 1
SIZE = 6

Documents = list[list[int]]
documents = st.lists(st.lists(st.integers(0, SIZE - 1), max_size=12), max_size=5)
values = st.one_of(
    st.integers(-4, 4), st.sampled_from([LARGEST, -LARGEST, LARGEST - 1, 1 - LARGEST])
)


def compressed(rows: Documents) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return offsets, np.array([token for row in rows for token in row], dtype=np.int32)


def naive(rows: Documents, noise: np.ndarray) -> np.ndarray:
    total = noise.astype(np.int64)
    for i, row in enumerate(rows):
        total[i] += np.bincount(np.array(row, dtype=np.int64), minlength=SIZE)
    return np.clip(total, -LARGEST, LARGEST)


def dense(bags: Bags) -> np.ndarray:
    matrix = np.zeros((len(bags.offsets) - 1, SIZE), dtype=np.int64)
    rows = np.repeat(np.arange(len(matrix)), np.diff(bags.offsets))
    np.add.at(matrix, (rows, bags.entries), bags.counts)
    return matrix


def assert_well_formed(bags: Bags) -> None:
    assert (bags.offsets.dtype, bags.entries.dtype, bags.counts.dtype) == (
        np.int64,
        np.int32,
        np.int32,
    )
    assert bags.offsets[0] == 0
    assert bags.offsets[-1] == len(bags.entries) == len(bags.counts)
    assert (bags.counts != 0).all()
    for start, end in zip(bags.offsets[:-1], bags.offsets[1:], strict=True):
        assert (np.diff(bags.entries[start:end]) > 0).all()


@given(rows=documents, data=st.data())
def test_both_additions_are_the_sum(rows: Documents, data: st.DataObject) -> None:
    # Kills: noise of another document, a token counted twice, an entry that cancels kept, a sum
    # that wraps at 2^31, the noise after the last token forgotten.
    drawn = data.draw(
        st.lists(
            st.lists(values, min_size=SIZE, max_size=SIZE), min_size=len(rows), max_size=len(rows)
        )
    )
    noise = np.array(drawn, dtype=np.int32).reshape(len(rows), SIZE)
    expected = naive(rows, noise)
    document, entry = noise.nonzero()
    results = [
        Bags(*add_dense(*compressed(rows), noise)),
        Bags(
            *add_sparse(
                *compressed(rows),
                document.astype(np.int32),
                entry.astype(np.int32),
                noise[document, entry],
            )
        ),
    ]
    for bags in results:
        assert_well_formed(bags)
        np.testing.assert_array_equal(dense(bags), expected)
        clipped = clip(bags)
        assert_well_formed(clipped)
        np.testing.assert_array_equal(dense(clipped), np.maximum(expected, 0))


def test_dense_noise_takes_int16_and_a_slice_of_the_offsets() -> None:
    # Batches are cut by slicing the offsets, which then do not begin at zero.
    offsets, entries = compressed([[0, 0, 1], [5], []])
    noise = np.array([[1, 0, 0, 0, 0, -1], [-32767, 0, 0, 0, 0, 0]], dtype=np.int16)
    bags = Bags(*add_dense(offsets[1:], entries, noise))
    np.testing.assert_array_equal(dense(bags), [[1, 0, 0, 0, 0, 0], [-32767, 0, 0, 0, 0, 0]])


def test_saturation_is_symmetric() -> None:
    # Kills: -2^31, whose absolute value does not fit.
    offsets, entries = compressed([[0] * 3])
    noise = np.array([[LARGEST, -LARGEST, 0, 0, 0, 0]], dtype=np.int32)
    assert Bags(*add_dense(offsets, entries, noise)).counts.tolist() == [LARGEST, -LARGEST]


def test_clip_keeps_ones_and_drops_the_negative() -> None:
    # Kills: `>=` (zeros kept) and `> 1`.
    bags = Bags(
        np.array([0, 3, 3, 4]), np.arange(4, dtype=np.int32), np.array([-1, 1, 2, -5], np.int32)
    )
    clipped = clip(bags)
    assert clipped.offsets.tolist() == [0, 2, 2, 2]
    assert clipped.entries.tolist() == [1, 2]
    assert clipped.counts.tolist() == [1, 2]
    with_zero = Bags(np.array([0, 1]), np.zeros(1, np.int32), np.zeros(1, np.int32))
    assert clip(with_zero).offsets.tolist() == [0, 0]
