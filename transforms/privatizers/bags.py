"""The per-document path of a bag-of-words release: batches in, released rows out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.indexes.tokens.written_language import FrequentCounts
from quietcorpus.mechanisms.bags.bag_of_words import Accounting, BagOfWords, add_noise
from quietcorpus.mechanisms.bags.bags import Bags, clip, dense, permute
from quietcorpus.mechanisms.bags.decompression import Decompression
from quietcorpus.mechanisms.keystream import Addresses, ReleaseKey

from ..codebook import Codebook
from ..reading.documents import BATCH_DOCUMENTS, Documents
from ..shards import ROW_GROUP_ROWS
from ..tokens import terms_of
from .rows import Released, document_addresses, identified

_ENTRIES_AT_ONCE = 1 << 22
_SPREAD_LANE = 254  # a lane of the stage's keystream that the noise does not use


@dataclass(frozen=True)
class BagOfWordsParameters:
    """The spec's parameters of the documents' mechanism, without the vocabulary's size.

    Attributes:
        with_bins: whether rows also hold the mechanism's own output, the noisy count of every bin.
    """

    precision: int
    epsilon: Fraction
    accounting: Accounting
    with_bins: bool = False

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """Return the columns, all of them lists of integers."""
        names = ("terms", "counts", *(("bins",) if self.with_bins else ()))
        return tuple(pa.field(name, pa.list_(pa.int32())) for name in names)

    def mechanism(self, vocabulary_size: int, bins: int) -> BagOfWords:
        """Return the mechanism for a vocabulary and a map of these sizes."""
        return BagOfWords(self.precision, self.epsilon, vocabulary_size, bins, self.accounting)

    def privatizer(self, key: ReleaseKey, side: Codebook) -> BagPrivatizer:
        """Build the privatizer of one worker, from the finished codebook."""
        return BagPrivatizer(self, side, key)


def row_group_rows(mechanism: BagOfWords, *, with_bins: bool) -> int:
    """Return the number of rows of a row group.

    It follows from the noise alone: the size of a row group must not reveal how long the texts in
    it are.
    """
    expected = max(mechanism.expected_noise_terms, mechanism.bins * with_bins)
    return int(np.clip(_ENTRIES_AT_ONCE // expected, 64, ROW_GROUP_ROWS))


class BagPrivatizer:
    """A privatizer that turns batches of documents into tables of noisy bags."""

    def __init__(
        self, parameters: BagOfWordsParameters, codebook: Codebook, key: ReleaseKey
    ) -> None:
        self._codebook = codebook
        mechanism = parameters.mechanism(len(codebook.vocabulary), codebook.size)
        self._noise = mechanism.noise()
        self._with_bins = parameters.with_bins
        self.row_group_rows = row_group_rows(mechanism, with_bins=self._with_bins)
        self.documents_at_once = min(self.row_group_rows, BATCH_DOCUMENTS)
        self._stream = key.stage(
            "documents",
            1,
            **mechanism.stage_parameters,
            codebook=codebook.digest,
            tokenizer=codebook.vocabulary.tokenizer.law,
        )
        self._decompression = (
            Decompression(codebook.bins, codebook.weights, codebook.size)
            if codebook.weights is not None and codebook.compresses
            else None
        )

    def release(self, documents: Documents) -> Released:
        """Return the released rows, in input order, under fresh ids."""
        offsets, terms, tokens = terms_of(documents, self._codebook.vocabulary)
        addresses = document_addresses(self._stream, documents, offsets, terms)
        size, bins = self._codebook.size, self._codebook.bins
        noisy = add_noise(self._noise, size, self._stream, addresses, offsets, bins.take(terms))
        bags = clip(noisy)
        if self._decompression is not None:
            spread = self.words if documents.ids is None else self._words_of_each
            bags = self._decompression.expand(bags, spread(addresses, bags))
        columns = as_lists(bags)
        if self._with_bins:
            columns["bins"] = _as_rows(dense(noisy, size))
        rows = identified(self._stream, addresses, columns)
        read = int(tokens.sum())
        return Released(rows, read, len(terms), FrequentCounts.of_terms(read, terms))

    def words(
        self, addresses: Addresses, _: Bags | None = None
    ) -> Callable[[int], npt.NDArray[np.uint64]]:
        """Return a source of random words to decompress a batch, from its first document's lane."""
        used = 0

        def draw(count: int) -> npt.NDArray[np.uint64]:
            nonlocal used
            blocks = -(-count // 2)
            raw = self._stream.blocks(addresses[:1], blocks, lane=_SPREAD_LANE, start=used)
            used += blocks
            return raw.view("<u8")[0, :count]

        return draw

    def _words_of_each(
        self, addresses: Addresses, bags: Bags
    ) -> Callable[[int], npt.NDArray[np.uint64]]:
        """Return a source in which every document has its own words, whatever its batch.

        They are those that `words` gives a batch of this document alone.
        """
        units = np.concatenate([[0], np.cumsum(bags.counts, dtype=np.int64)])[bags.offsets]
        given = 0

        def draw(count: int) -> npt.NDArray[np.uint64]:
            nonlocal given
            # `expand` asks for the words of whole documents, one after the other.
            first, last = np.searchsorted(units[1:], [given, given + count], side="right")
            given += count
            totals = np.diff(units[first : last + 1])
            blocks = -(-totals // 2)
            counters = np.arange(blocks.sum()) - np.repeat(np.cumsum(blocks) - blocks, blocks)
            repeated = np.repeat(addresses[first:last], blocks, axis=0)
            raw = self._stream.gather(repeated, counters.astype(np.uint64), lane=_SPREAD_LANE)
            left_over = np.cumsum(2 * blocks)[totals % 2 == 1] - 1
            return np.delete(raw.view("<u8").ravel(), left_over)

        return draw

    def take(self, rows: pa.Table, order: npt.NDArray[np.int64]) -> pa.Table:
        """Return the rows in another order; Arrow takes three times as long to permute lists."""
        terms, counts = (rows[name].combine_chunks() for name in ("terms", "counts"))
        bags = permute(
            Bags(
                terms.offsets.to_numpy().astype(np.int64),
                terms.values.to_numpy(),
                counts.values.to_numpy(),
            ),
            order,
        )
        lists = as_lists(bags)
        if self._with_bins:
            values = rows["bins"].combine_chunks().values.to_numpy()
            lists["bins"] = _as_rows(values.reshape(len(rows), self._codebook.size)[order])
        taken = rows.drop_columns([*lists]).take(pa.array(order))
        for name, column in lists.items():
            taken = taken.append_column(name, column)
        return taken


def _as_rows(counts: npt.NDArray[np.int32]) -> pa.ListArray:
    """Return rows of equal lengths as list<int32>."""
    rows, size = counts.shape
    offsets = pa.array(np.arange(rows + 1) * size, pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(counts.ravel()))


def as_lists(bags: Bags) -> dict[str, pa.ListArray]:
    """Return bags as the columns `terms` and `counts`, both list<int32>."""
    offsets = pa.array(bags.offsets, pa.int32())
    return {
        "terms": pa.ListArray.from_arrays(offsets, bags.entries),
        "counts": pa.ListArray.from_arrays(offsets, bags.counts),
    }
