"""The cells that users' documents are counted in: by public group, by month, and by word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.indexes.search.largest_products import largest
from quietcorpus.mechanisms.bags.histogram import Counts
from quietcorpus.mechanisms.encoding import Value
from quietcorpus.mechanisms.keystream import Keystream, ReleaseKey
from quietcorpus.mechanisms.sentences.deep_candidate import on_grid
from quietcorpus.mechanisms.users.grouped_counts import GroupedCounts

from ..artefacts.encoder import EncoderSource
from ..artefacts.folders import CarriedEncoder, PoolSource
from ..errors import InputError, NoisyOutcome
from ..reading.documents import Documents
from ..sums import OfParts
from ..vocabulary import KeySource
from .clipped_sums import Cells, NoisySums, ShareSums
from .months import Months
from .users import Ragged, Share
from .word_counts import JoinBlocks

MOST_CELLS = 20_000_000
"""The largest number of cells: all of them get noise, and one process holds them."""


@dataclass(frozen=True)
class Grouping:
    """The rule that gives a document its group: that of the nearest public centroid.

    Attributes:
        pool: public texts in lists, each of which is a group around its centroid.
        encoder: the encoder of documents, with which the pool was made.
        groups: the number of groups.
        months: None if documents are not counted by month.

    Guarantee:
        A document's cells are a function of that document and of public data alone: the embedding
        is, and its products with centroids are exact (`indexes.search.largest_products`).
    """

    pool: PoolSource
    encoder: EncoderSource | CarriedEncoder
    groups: int
    months: Months | None = None

    @property
    def stage_parameters(self) -> dict[str, Value]:
        """Return all that a document's cells depend on besides the document."""
        months = self.months
        return {
            "pool": self.pool.digest,
            "encoder": self.encoder.digest,
            "months": [months.column, months.first, months.count] if months else None,
        }

    def numbers(self, texts: pa.Array) -> npt.NDArray[np.int64]:
        """Return the number of the group of each document, by its text, int64 (n,).

        It is -1 for a document whose embedding is zero, which is near nothing.
        """
        lists = self.pool.open().lists
        assert lists is not None
        vectors = on_grid(self.encoder.open().encode(texts.to_pylist()))
        nearest = largest(vectors, lists.centroids, 1)[:, 0]
        return np.where(vectors.any(axis=1), nearest, -1)

    def __call__(self, documents: Documents, words: Ragged, size: int) -> Ragged:
        """Return the cells of each document: of its group, of the group's month, of its words.

        A document without a group has none. `size` is the number of words of the vocabulary.
        """
        offsets, terms = words
        groups, months = self.numbers(documents.texts), self._months(documents)
        kept = groups >= 0
        first = self.groups * (1 + (self.months.count if self.months else 0))
        of_words = np.repeat(first + groups * size, np.diff(offsets)) + terms
        headers = np.stack([groups, self.groups * (1 + months) + groups], axis=1)
        has = np.stack([kept, kept & (months >= 0)], axis=1)
        places = np.repeat(np.arange(len(groups)), np.diff(offsets))
        own = kept[places]
        # Headers come first: of a document that is cut, they are left.
        every = np.concatenate([headers[has], of_words[own]])
        whose = np.concatenate([np.nonzero(has)[0], places[own]])
        order = np.argsort(whose, kind="stable")
        sizes = np.bincount(whose, minlength=len(groups))
        return np.concatenate([[0], np.cumsum(sizes)]), every[order].astype(np.int32)

    def _months(self, documents: Documents) -> npt.NDArray[np.int64]:
        if self.months is None:
            return np.full(len(documents.rows), -1)
        return self.months.numbers(documents)


@dataclass(frozen=True, kw_only=True)
class OverviewCounts(ShareSums):
    """The parameters of counts by group.

    Attributes:
        bound: what a user adds to them.
        grouping: gives documents their cells.
    """

    bound: GroupedCounts
    grouping: Grouping

    @property
    def counted(self) -> dict[str, Value]:
        return {
            "items": self.bound.items,
            "documents": self.bound.documents,
            "groups": self.bound.groups,
            **self.grouping.stage_parameters,
        }

    def stream(self, key: ReleaseKey, **parameters: Value) -> Keystream:
        return key.stage("overview", 1, **parameters)

    def values(
        self, texts: Sequence[npt.NDArray[np.int32]], size: int
    ) -> tuple[Cells, npt.NDArray[np.float64]]:
        return self.bound.values(texts)

    def cells_of(self, size: int) -> int:
        return self.bound.cells_of(size)

    def cut(
        self,
        cells: Cells,
        values: npt.NDArray[np.float64],
        bits: npt.NDArray[np.uint16],
        most: int,
    ) -> npt.NDArray[np.int32]:
        return self.bound.cut(cells, values, bits, most)

    def require_few(self, size: int) -> None:
        refuse_many(self.bound, size, NoisyOutcome)


class NoisyOverview(beam.PTransform):
    """A PTransform from (digest, `Share`) pairs, one for each user, to one array of noisy counts.

    It is int64, of all cells in order, also where no user adds anything.
    """

    def __init__(
        self,
        counting: OverviewCounts,
        vocabulary: beam.pvalue.AsSingleton,
        shards: int,
        key: KeySource,
    ) -> None:
        super().__init__()
        self._vocabulary = vocabulary
        self._noisy = NoisySums(counting, vocabulary, shards, key, OfParts(shards))
        self._join = JoinBlocks(counting, counting.bound.counts)

    def expand(self, shares: beam.PCollection[tuple[bytes, Share]]) -> beam.PCollection[Counts]:
        return (
            shares
            | self._noisy
            | "gather" >> beam.CombineGlobally(beam.combiners.ToListCombineFn())
            | "join" >> beam.ParDo(self._join, self._vocabulary)
        )


def refuse_many(bound: GroupedCounts, words: int, refusal: type[InputError] = InputError) -> None:
    """Raise a refusal for more cells than are counted."""
    cells = bound.cells_of(words)
    if cells > MOST_CELLS:
        raise refusal(
            f"mechanism.vocabulary: {words:,} words of {bound.groups:,} groups, with their months, "
            f"make {cells:,} counts; give fewer, for at most {MOST_CELLS:,}"
        )
