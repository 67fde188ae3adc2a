"""An encoder that encodes every text once, for studies that look at the same texts repeatedly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from quietcorpus.indexes.documents.lsa import Lsa
from quietcorpus.transforms.artefacts.encoder import Encoder


class Remembering(Encoder):
    """An encoder that encodes every text once."""

    def __init__(self, encoder: Encoder | Lsa) -> None:
        self._encoder = encoder
        self._known: dict[str, npt.NDArray[np.float32]] = {}

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        new = list(dict.fromkeys(one for one in texts if one not in self._known))
        if new:
            self._known |= zip(new, self._encoder.encode(new), strict=True)
        if not texts:
            return self._encoder.encode(texts)
        return np.stack([self._known[one] for one in texts])
