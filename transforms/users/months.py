"""The months that documents are counted in, by a column of dates."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..reading.documents import Documents
from ..reading.identifiers import as_text

_MONTH = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])(?![0-9])")


@dataclass(frozen=True)
class Months:
    """The months that documents are counted in.

    Attributes:
        column: its values are dates, or texts that begin with YYYY-MM.
        first: the number of the first month, 12 * year + month - 1.
        count: how many there are; documents of other months are counted in none.
    """

    column: str
    first: int
    count: int

    def numbers(self, documents: Documents) -> npt.NDArray[np.int64]:
        """Return the number of each document's month, int64 (n,); -1 for one of no such month."""
        values = as_text(documents.columns[self.column]).to_pylist()
        found = np.array([month_of(value) for value in values], dtype=np.int64) - self.first
        return np.where((found >= 0) & (found < self.count), found, -1)


def month_of(value: str | None) -> int:
    """Return the number of the month that a date begins with; -1 if it begins with none."""
    found = _MONTH.match(value or "")
    return 12 * int(found[1]) + int(found[2]) - 1 if found else -1
