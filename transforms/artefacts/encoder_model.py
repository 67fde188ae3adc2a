"""The interface between an encoder and the library that runs its model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

TOKENS = "input_ids"
Row = dict[str, list[int]]
"""The tokens of one sentence, `TOKENS`, and what a model has beside them: lists of equal length."""


class EncoderModel(Protocol):
    """A model that embeds sentences, loaded into this process.

    Attributes:
        most: the number of tokens that it reads; sentences are cut to it.
        known: the number of tokens that there are.
        rows: the number of sentences in a batch.
        longest_shared: the tokens of the longest sentences that share batches.
    """

    most: int
    known: int
    rows: int
    longest_shared: int

    def tokens(self, texts: Sequence[str]) -> list[Row]:
        """Return each text's tokens, at most `most`, after those of the model's prompt.

        It is safe to call from several threads.
        """

    def run(self, rows: Sequence[Row], length: int) -> npt.NDArray[np.float32]:
        """Compute the embeddings of rows, padded to `length` tokens, on one thread: (n, d)."""
