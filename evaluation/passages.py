"""Passages: whether a short text can be made of a part of a long one by few edits of words."""

from __future__ import annotations

from quietcorpus.compiled import compiled


@compiled
def is_passage(short, long, edits, column):  # type: ignore[no-untyped-def]
    """Return whether at most `edits` edits make the short text from a passage of the long one.

    An edit replaces, inserts or removes one word. The least number of edits is the last row's
    minimum in Sellers's table (1980, "The theory and computation of evolutionary distances"), whose
    columns are computed only as far as they do not pass `edits` (Ukkonen 1985).

    Args:
        short: the words of the short text, as numbers, (m,).
        long: the words of the long one, (n,).
        edits: the largest number of edits, below m.
        column: space for a column, int64 (m + 1,) or more.
    """
    rows = len(short)
    for row in range(rows + 1):
        column[row] = row
    last = min(edits, rows)  # the last row whose value may be `edits` or less
    for word in long:
        diagonal = 0  # a passage may begin anywhere
        for row in range(1, last + 1):
            above = column[row]
            best = diagonal if short[row - 1] == word else diagonal + 1
            best = min(best, above + 1, column[row - 1] + 1)
            diagonal, column[row] = above, best
        if last < rows:
            # Below `last`, the column before this one holds more than `edits`.
            last += 1
            best = diagonal if short[last - 1] == word else diagonal + 1
            column[last] = min(best, column[last - 1] + 1)
        while column[last] > edits:
            last -= 1
        if last == rows:
            return True
    return False
