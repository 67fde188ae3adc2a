"""The co-occurrence counts of a corpus, released once: clipped by user, summed, noised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.mechanisms.encoding import Value
from quietcorpus.mechanisms.keystream import Keystream, ReleaseKey
from quietcorpus.mechanisms.users.cooccurrence import Cells, cells_of, contribution

from ..errors import InputError, NoisyOutcome, redacted
from ..shards import Written, write_tables
from ..sums import OfParts
from ..vocabulary import KeySource
from .clipped_sums import NoisySums, ShareSums
from .users import Share

FOLDER = "cooccurrences"
_SCHEMA = pa.schema([pa.field("count", pa.int64())])
MOST_WORDS = 20_000
"""The largest vocabulary: all pairs of its words get noise, and are held by the launcher."""


@dataclass(frozen=True, kw_only=True)
class Cooccurrences(ShareSums):
    """The parameters of the counts of pairs of words.

    Attributes:
        window: the largest distance of two words that make a pair.
    """

    window: int

    @property
    def counted(self) -> dict[str, Value]:
        return {"window": self.window}

    def stream(self, key: ReleaseKey, **parameters: Value) -> Keystream:
        return key.stage("cooccurrences", 1, **parameters)

    def values(
        self, texts: Sequence[npt.NDArray[np.int32]], size: int
    ) -> tuple[Cells, npt.NDArray[np.float64]]:
        return contribution(texts, self.window, size)

    def cells_of(self, size: int) -> int:
        return cells_of(size)

    def require_few(self, size: int) -> None:
        refuse_large(size, NoisyOutcome)


class ReleaseCooccurrences(beam.PTransform):
    """A PTransform from (digest, `Share`) pairs to a `Written` file of noisy counts per block."""

    def __init__(
        self,
        counting: Cooccurrences,
        vocabulary: beam.pvalue.AsSingleton,
        shards: int,
        key: KeySource,
        staging: str,
    ) -> None:
        super().__init__()
        self._noisy = NoisySums(counting, vocabulary, shards, key, OfParts(shards))
        self._write = _WriteBlock(key, staging)

    def expand(self, shares: beam.PCollection[tuple[bytes, Share]]) -> beam.PCollection[Written]:
        return shares | self._noisy | "write" >> beam.ParDo(self._write)


def refuse_large(words: int, refusal: type[InputError] = InputError) -> None:
    """Raise a refusal for a vocabulary of too many words."""
    if words > MOST_WORDS:
        raise refusal(
            f"mechanism.vocabulary: {words} words have too many pairs; give at most {MOST_WORDS}, "
            "or train with `method: sgd` of a release"
        )


class _WriteBlock(beam.DoFn):
    """A DoFn that writes a block's file."""

    def __init__(self, key: KeySource, staging: str) -> None:
        self._key = key
        self._staging = staging

    @redacted
    def process(self, block: tuple[int, bytes]) -> Iterator[Written]:
        number, noisy = block
        table = pa.table([pa.array(np.frombuffer(noisy, np.int64))], schema=_SCHEMA)
        path = f"{FOLDER}/block-{number:05d}.parquet"
        yield write_tables([table], _SCHEMA, path, self._staging, self._key())
