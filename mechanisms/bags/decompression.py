"""Decompression: spread every bin's noisy count over its terms (LPLP, section 4).

This is post-processing of the noisy bins and the noisy histogram: it costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled, lowest

from .bags import Bags

_DRAWS_AT_ONCE = 1 << 22


class Decompression:
    """A multinomial over the terms of every bin, as alias tables (Walker 1977, Vose 1991)."""

    def __init__(
        self, bins: npt.NDArray[np.int32], weights: npt.NDArray[np.int64], size: int
    ) -> None:
        """Build the tables.

        Args:
            bins: int32 (V,); each term's bin in 0 .. size - 1.
            weights: int64 (V,); noisy counts. Negative ones are clipped at zero, and a bin whose
                weights are all zero is uniform.
            size: the number of bins K.
        """
        terms = np.argsort(bins, kind="stable").astype(np.int32)
        self._starts = np.searchsorted(bins[terms], np.arange(size + 1)).astype(np.int64)
        clipped = np.maximum(weights, 0).astype(np.float64)[terms]
        thresholds, aliases = _alias_tables(clipped, self._starts)
        aliases += np.repeat(self._starts[:-1], np.diff(self._starts))
        # A slot's threshold, and its term and alias in the halves of a word beside it: one line of
        # the cache, of which the kernel takes one half or the other without a branch. No guess of
        # the processor's would be right more often than a coin.
        pairs = terms.astype(np.uint64) | terms[aliases].astype(np.uint64) << np.uint64(32)
        self._slots = np.stack([thresholds, pairs], axis=1)

    def expand(self, bags: Bags, bits: Callable[[int], npt.NDArray[np.uint64]]) -> Bags:
        """Draw a term for every unit of every count.

        Args:
            bags: bins with positive counts.
            bits: returns that many uniform random words of 64 bits, fresh ones at every call.

        Returns:
            Terms with positive counts; a row's total is that of its bins.
        """
        totals = np.concatenate([[0], np.cumsum(bags.counts, dtype=np.int64)])[bags.offsets]
        parts = []
        first = 0
        while first < len(totals) - 1:
            reach = int(np.searchsorted(totals, totals[first] + _DRAWS_AT_ONCE, side="right")) - 1
            last = min(max(first + 1, reach), len(totals) - 1)
            parts.append(
                _draw(
                    bags.offsets[first : last + 1],
                    bags.entries,
                    bags.counts,
                    self._starts,
                    self._slots,
                    bits(int(totals[last] - totals[first])),
                )
            )
            first = last
        if not parts:
            return Bags(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.int32))
        lengths, entries, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Bags(np.concatenate([[0], np.cumsum(lengths)]), entries, counts)


@compiled
def _alias_tables(weights, starts):  # type: ignore[no-untyped-def]
    """Build alias tables bin by bin (Vose): thresholds times 2^32, aliases within the bin."""
    thresholds = np.empty(len(weights), dtype=np.uint64)
    aliases = np.zeros(len(weights), dtype=np.int64)
    small = np.empty(len(weights), dtype=np.int64)
    large = np.empty(len(weights), dtype=np.int64)
    one = np.uint64(1) << np.uint64(32)
    for k in range(len(starts) - 1):
        start = starts[k]
        size = starts[k + 1] - start
        if size == 0:
            continue
        total = weights[start : start + size].sum()
        scaled = np.ones(size)
        if total > 0:
            scaled = weights[start : start + size] * (size / total)
        smalls = larges = 0
        for j in range(size):
            if scaled[j] < 1.0:
                small[smalls] = j
                smalls += 1
            else:
                large[larges] = j
                larges += 1
        while smalls > 0 and larges > 0:
            smalls -= 1
            lesser, greater = small[smalls], large[larges - 1]
            thresholds[start + lesser] = np.uint64(scaled[lesser] * 4294967296.0)
            aliases[start + lesser] = greater
            scaled[greater] -= 1.0 - scaled[lesser]
            if scaled[greater] < 1.0:
                larges -= 1
                small[smalls] = greater
                smalls += 1
        # Only rounding leaves slots over in `small`; like those in `large` they keep their term.
        for i in range(larges):
            thresholds[start + large[i]] = one
        for i in range(smalls):
            thresholds[start + small[i]] = one
    return thresholds, aliases


@compiled
def _draw(offsets, bins, counts, starts, slots, bits):  # type: ignore[no-untyped-def]
    """Draw one term for every unit of every bin; a bitmap brings them out in ascending order."""
    documents = len(offsets) - 1
    lengths = np.empty(documents, dtype=np.int64)
    out_terms = np.empty(len(bits), dtype=np.int32)
    out_counts = np.empty(len(bits), dtype=np.int32)
    tally = np.zeros(len(slots), dtype=np.int32)
    bitmap = np.zeros((len(slots) + 63) // 64, dtype=np.uint64)
    half, low_half = np.uint64(32), np.uint64(0xFFFFFFFF)
    found = 0
    drawn = 0
    for document in range(documents):
        for i in range(offsets[document], offsets[document + 1]):
            start = np.uint64(starts[bins[i]])
            size = np.uint64(starts[bins[i] + 1]) - start
            for _ in range(counts[i]):
                # The upper half of a word picks a slot, the lower half the slot's term or alias.
                word = bits[drawn]
                drawn += 1
                slot = start + ((word >> half) * size >> half)
                alias = half * np.uint64(word & low_half >= slots[slot, 0])
                term = slots[slot, 1] >> alias & low_half
                tally[term] += 1
                bitmap[term >> np.uint64(6)] |= np.uint64(1) << (term & np.uint64(63))
        before = found
        for i in range(len(bitmap)):
            rest = bitmap[i]
            bitmap[i] = 0
            while rest:
                term = (i << 6) + lowest(rest)
                rest &= rest - np.uint64(1)
                out_terms[found] = term
                out_counts[found] = tally[term]
                tally[term] = 0
                found += 1
        lengths[document] = found - before
    return lengths, out_terms[:found].copy(), out_counts[:found].copy()
