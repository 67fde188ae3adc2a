"""Batches of sparse integer vectors (bags of words, or of bins), in compressed rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled, inlined


class Bags(NamedTuple):
    """`n` sparse rows: row i holds `entries[offsets[i]:offsets[i + 1]]`, ascending.

    Attributes:
        offsets: int64, shape (n + 1,).
        entries: int32, column numbers, strictly ascending within a row.
        counts: int32, the (non-zero) value at each entry.
    """

    offsets: npt.NDArray[np.int64]
    entries: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]


def clip(bags: Bags) -> Bags:
    """Drop the negative counts; this is post-processing and costs nothing."""
    return Bags(*_clip(bags.offsets, bags.entries, bags.counts))


@compiled
def _clip(offsets, entries, counts):  # type: ignore[no-untyped-def]
    out_offsets = np.zeros(len(offsets), dtype=np.int64)
    out_entries = np.empty(len(entries), dtype=np.int32)
    out_counts = np.empty(len(entries), dtype=np.int32)
    kept = 0
    for row in range(len(offsets) - 1):
        for i in range(offsets[row], offsets[row + 1]):
            # Without a branch, which would be guessed wrong for every second count of noise.
            out_entries[kept] = entries[i]
            out_counts[kept] = counts[i]
            kept += counts[i] > 0
        out_offsets[row + 1] = kept
    return out_offsets, out_entries[:kept], out_counts[:kept]


def dense(bags: Bags, size: int) -> npt.NDArray[np.int32]:
    """Return all `size` entries of every row, zeros included: int32 (n, size)."""
    rows = np.zeros((len(bags.offsets) - 1, size), np.int32)
    rows[np.repeat(np.arange(len(rows)), np.diff(bags.offsets)), bags.entries] = bags.counts
    return rows


def permute(bags: Bags, order: npt.NDArray[np.int64]) -> Bags:
    """Reorder the rows: row i of the result is row `order[i]`."""
    return Bags(*_permute(bags.offsets, bags.entries, bags.counts, order))


@compiled
def _permute(offsets, entries, counts, order):  # type: ignore[no-untyped-def]
    out_offsets = np.zeros(len(order) + 1, dtype=np.int64)
    for i in range(len(order)):
        out_offsets[i + 1] = out_offsets[i] + offsets[order[i] + 1] - offsets[order[i]]
    out_entries = np.empty(out_offsets[-1], dtype=np.int32)
    out_counts = np.empty(out_offsets[-1], dtype=np.int32)
    for i in range(len(order)):
        # Unsigned, and one array after the other: loops that become vector instructions.
        start, out = np.uint64(offsets[order[i]]), np.uint64(out_offsets[i])
        size = np.uint64(out_offsets[i + 1]) - out
        for j in range(size):
            out_entries[out + j] = entries[start + j]
        for j in range(size):
            out_counts[out + j] = counts[start + j]
    return out_offsets, out_entries, out_counts


@compiled
def add_dense(offsets, entries, noise):  # type: ignore[no-untyped-def]
    """Add tokens (compressed rows of entries, in any order) to dense noise (n, size), as Bags."""
    documents, size = noise.shape
    out_offsets = np.empty(documents + 1, dtype=np.int64)
    out_entries = np.empty(documents * size, dtype=np.int32)
    out_counts = np.empty(documents * size, dtype=np.int32)
    row = np.empty(size, dtype=np.int64)
    found = 0
    out_offsets[0] = 0
    for document in range(documents):
        for entry in range(size):
            row[entry] = noise[document, entry]
        for token in range(offsets[document], offsets[document + 1]):
            row[entries[token]] += 1
        for entry in range(size):
            if row[entry] != 0:
                out_entries[found] = entry
                out_counts[found] = _saturate(row[entry])
                found += 1
        out_offsets[document + 1] = found
    return out_offsets, out_entries[:found].copy(), out_counts[:found].copy()


@compiled
def add_sparse(offsets, entries, noise_document, noise_entry, noise_value):  # type: ignore[no-untyped-def]
    """Add tokens, as `add_dense` does, to noise given by its sorted non-zero entries."""
    documents = len(offsets) - 1
    capacity = len(entries) + len(noise_entry)
    out_offsets = np.empty(documents + 1, dtype=np.int64)
    out_entries = np.empty(capacity, dtype=np.int32)
    out_counts = np.empty(capacity, dtype=np.int32)
    found = 0
    noise = 0
    out_offsets[0] = 0
    for document in range(documents):
        tokens = np.sort(entries[offsets[document] : offsets[document + 1]])
        token = 0
        while True:
            noisy = noise < len(noise_entry) and noise_document[noise] == document
            if token < len(tokens) and (not noisy or tokens[token] <= noise_entry[noise]):
                entry = tokens[token]
            elif noisy:
                entry = noise_entry[noise]
            else:
                break
            value = np.int64(0)
            while token < len(tokens) and tokens[token] == entry:
                value += 1
                token += 1
            if noisy and noise_entry[noise] == entry:
                value += noise_value[noise]
                noise += 1
            if value != 0:
                out_entries[found] = entry
                out_counts[found] = _saturate(value)
                found += 1
        out_offsets[document + 1] = found
    return out_offsets, out_entries[:found].copy(), out_counts[:found].copy()


@inlined
def _saturate(value):  # type: ignore[no-untyped-def]
    # Clamping is post-processing; wrapping round would turn a large count into a negative one.
    return np.int32(min(max(value, -(2**31 - 1)), 2**31 - 1))
