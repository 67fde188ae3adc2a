"""The counts of words over users, released once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam
import numpy as np
import numpy.typing as npt

from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.bags.histogram import Counts
from quietcorpus.mechanisms.encoding import Value
from quietcorpus.mechanisms.keystream import Keystream, ReleaseKey
from quietcorpus.mechanisms.users.word_counts import WordCounts

from ..errors import redacted
from ..sums import Coverage, require_all
from ..vocabulary import KeySource
from .clipped_sums import Cells, NoisySums, UserSums
from .users import Share


@dataclass(frozen=True, kw_only=True)
class UserCounts(UserSums):
    """The parameters of the counts of words.

    Attributes:
        bound: what a user adds to them.
    """

    bound: WordCounts

    @property
    def counted(self) -> dict[str, Value]:
        return {"items": self.bound.items, "weight": self.bound.weight}

    def stream(self, key: ReleaseKey, **parameters: Value) -> Keystream:
        return key.stage("word counts", 1, **parameters)

    def values(
        self, texts: Sequence[npt.NDArray[np.int32]], size: int
    ) -> tuple[Cells, npt.NDArray[np.float64]]:
        return self.bound.values(texts)

    def cells_of(self, size: int) -> int:
        return size


class NoisyWordCounts(beam.PTransform):
    """A PTransform from (digest, `Share`) pairs, one for each user, to one array of noisy counts.

    It is int64 (V,), also where no user adds anything.
    """

    def __init__(
        self,
        counting: UserCounts,
        vocabulary: beam.pvalue.AsSingleton,
        shards: int,
        key: KeySource,
        coverage: Coverage,
        identified: beam.pvalue.AsIter | tuple[()] = (),
    ) -> None:
        """Configure as `NoisySums`."""
        super().__init__()
        self._vocabulary = vocabulary
        self._noisy = NoisySums(counting, vocabulary, shards, key, coverage, identified)
        self._join = _Join(counting)

    def expand(self, shares: beam.PCollection[tuple[bytes, Share]]) -> beam.PCollection[Counts]:
        return (
            shares
            | self._noisy
            | "gather" >> beam.CombineGlobally(beam.combiners.ToListCombineFn())
            | "join" >> beam.ParDo(self._join, self._vocabulary)
        )


class _Join(beam.DoFn):
    """A DoFn from all blocks of noisy sums to the counts of all words."""

    def __init__(self, counting: UserCounts) -> None:
        self._counting = counting

    @redacted
    def process(
        self, blocks: Sequence[tuple[int, bytes]], vocabulary: Vocabulary
    ) -> Iterator[Counts]:
        found = sorted(blocks)
        expected = self._counting.blocks_of(len(vocabulary))
        require_all(tuple(number for number, _ in found), len(expected))
        sums = np.concatenate([np.frombuffer(own, np.int64) for _, own in found])
        yield self._counting.bound.counts(sums)
