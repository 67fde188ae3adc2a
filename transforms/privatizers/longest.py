"""The length to which documents of words are cut, where epsilon was found for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..errors import InputError


@dataclass(frozen=True)
class Longest:
    """The most words that are released of a document, and what becomes of a longer one."""

    words: int
    longer: Literal["cut", "refuse"]

    def shortened(
        self, offsets: npt.NDArray[np.int64], words: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Return each document's first words, and their offsets.

        Raises InputError for a longer document, unless such are cut.
        """
        lengths = np.diff(offsets)
        if lengths.max(initial=0) <= self.words:
            return offsets, words
        if self.longer == "refuse":
            raise InputError(
                f"mechanism.document_epsilon.words: a document has more than {self.words:,} words "
                "to release; give more, or `longer: cut`"
            )
        places = np.arange(len(words)) - np.repeat(offsets[:-1], lengths)
        kept = np.minimum(lengths, self.words)
        return np.concatenate([offsets[:1], np.cumsum(kept)]), words[places < self.words]
