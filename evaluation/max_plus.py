"""The max-plus matrix product, with the place of each maximum."""

from __future__ import annotations

import numpy as np

from quietcorpus.compiled import compiled

GROUP = 8


@compiled
def improve(own, drawn, best, group, found, first):  # type: ignore[no-untyped-def]
    """Raise best[w, k] to the largest own[w, j] + drawn[j, k] of a tile, if that is larger.

    The inner loop runs over k, which compilers turn into vector instructions, and takes eight j at
    a time, so that it does not wait for memory. It only notes which group of eight was better; the
    j within the group is looked up afterwards, for the few that improved. Of equal sums the lowest
    j counts.

    Args:
        own: float32 (n, J), J a multiple of `GROUP`; -inf where there is no such j.
        drawn: float32 (J, draws).
        best: float32 (n, draws), changed in place; -inf at first.
        group: int32 (n, draws), all -1, before and after.
        found: int32 (n, draws), changed in place: `first` + j where best[w, k] was raised.
        first: int32, the number of the tile's first j.
    """
    words, draws = best.shape
    for j in range(0, drawn.shape[0], GROUP):
        b0, b1, b2, b3 = drawn[j], drawn[j + 1], drawn[j + 2], drawn[j + 3]
        b4, b5, b6, b7 = drawn[j + 4], drawn[j + 5], drawn[j + 6], drawn[j + 7]
        number = np.int32(j)
        for w in range(words):
            a0, a1, a2, a3 = own[w, j], own[w, j + 1], own[w, j + 2], own[w, j + 3]
            a4, a5, a6, a7 = own[w, j + 4], own[w, j + 5], own[w, j + 6], own[w, j + 7]
            top = best[w]
            where = group[w]
            for k in range(draws):
                s0, s1, s2, s3 = a0 + b0[k], a1 + b1[k], a2 + b2[k], a3 + b3[k]
                s4, s5, s6, s7 = a4 + b4[k], a5 + b5[k], a6 + b6[k], a7 + b7[k]
                s0 = s0 if s0 > s1 else s1
                s2 = s2 if s2 > s3 else s3
                s4 = s4 if s4 > s5 else s5
                s6 = s6 if s6 > s7 else s7
                s0 = s0 if s0 > s2 else s2
                s4 = s4 if s4 > s6 else s6
                s0 = s0 if s0 > s4 else s4
                better = s0 > top[k]
                where[k] = number if better else where[k]
                top[k] = s0 if better else top[k]
    for w in range(words):
        for k in range(draws):
            if group[w, k] >= 0:
                j = group[w, k]
                while own[w, j] + drawn[j, k] != best[w, k]:
                    j += 1
                found[w, k] = first + np.int32(j)
                group[w, k] = -1
