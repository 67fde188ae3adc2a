"""The per-document path of a bag-of-words release: batches in, released rows out."""

from __future__ import annotations

import binascii
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indexes.tokenizer import tokenize
from mechanisms.bag_of_words import Accounting, BagOfWords, add_noise
from mechanisms.bags import Bags, clip
from mechanisms.decompression import Decompression
from mechanisms.keystream import Addresses, ReleaseKey
from transforms.codebook import Codebook
from transforms.documents import BATCH_DOCUMENTS, Documents
from transforms.shards import ROW_GROUP_ROWS

ORDER = "\0order"
"""The column by which released rows are shuffled; no column of a corpus has this name."""

_ENTRIES_AT_ONCE = 1 << 22
# Lanes of the stage's keystream that the noise does not use.
_SPREAD_LANE, _ID_LANE = 254, 255


@dataclass(frozen=True)
class BagOfWordsParameters:
    """What the spec says of the documents' mechanism, before the vocabulary's size is known."""

    precision: int
    epsilon: Fraction
    accounting: Accounting

    def mechanism(self, vocabulary_size: int, bins: int) -> BagOfWords:
        """The mechanism for a vocabulary and a map of these sizes."""
        return BagOfWords(self.precision, self.epsilon, vocabulary_size, bins, self.accounting)


class Privatizer:
    """Batches of documents in, tables of released rows out: the whole per-document path."""

    def __init__(
        self, parameters: BagOfWordsParameters, codebook: Codebook, key: ReleaseKey
    ) -> None:
        self._codebook = codebook
        mechanism = parameters.mechanism(len(codebook.vocabulary), codebook.size)
        self._noise = mechanism.noise()
        # Sizes follow from the noise alone: what is published in one piece must not tell how
        # long the texts in it are.
        expected = mechanism.expected_noise_terms
        self.row_group_rows = int(np.clip(_ENTRIES_AT_ONCE // expected, 64, ROW_GROUP_ROWS))
        self.documents_at_once = min(self.row_group_rows, BATCH_DOCUMENTS)
        self._stream = key.stage("documents", repr((mechanism, codebook.digest)).encode())
        self._decompression = (
            Decompression(codebook.bins, codebook.weights, codebook.size)
            if codebook.weights is not None and codebook.compresses
            else None
        )

    def release(self, documents: Documents) -> tuple[pa.Table, int]:
        """The released rows, in input order, under fresh ids; and the number of tokens read."""
        tokens = tokenize(documents.texts)
        offsets, terms = self._codebook.vocabulary.look_up(tokens)
        addresses = self.addresses(documents, offsets, terms)
        size, bins = self._codebook.size, self._codebook.bins
        bags = clip(add_noise(self._noise, size, self._stream, addresses, offsets, bins[terms]))
        if self._decompression is not None:
            bags = self._decompression.expand(bags, self.words(addresses))
        return self.rows(addresses, bags), len(tokens.starts)

    def addresses(
        self, documents: Documents, offsets: npt.NDArray[np.int64], terms: npt.NDArray[np.int32]
    ) -> Addresses:
        """Each document's address in the stage's keystream.

        The input that it stands for is the document's terms, which is what noise is added to:
        whatever changes them (another text, another tokeniser) changes every bit of the noise.
        """
        view = terms.astype("<i4", copy=False).data.cast("B")
        inputs = (view[a:b] for a, b in itertools.pairwise((offsets * terms.itemsize).tolist()))
        return self._stream.addresses(documents.source, documents.rows.tolist(), inputs)

    def words(self, addresses: Addresses) -> Callable[[int], npt.NDArray[np.uint64]]:
        """Random words for the decompression of a batch, from a lane of its first document."""
        used = 0

        def draw(count: int) -> npt.NDArray[np.uint64]:
            nonlocal used
            blocks = -(-count // 2)
            raw = self._stream.blocks(addresses[:1], blocks, lane=_SPREAD_LANE, start=used)
            used += blocks
            return raw.view("<u8")[0, :count]

        return draw

    def rows(self, addresses: Addresses, bags: Bags) -> pa.Table:
        """Released bags as a table, under fresh ids of 128 bits, which also order the rows."""
        blocks = self._stream.gather(addresses, np.zeros(len(addresses), np.uint64), lane=_ID_LANE)
        order = blocks.view("<u8")[:, 0]
        return pa.table({"id": _as_hex(blocks), **as_lists(bags), ORDER: order})


def _as_hex(blocks: npt.NDArray[np.uint8]) -> pa.StringArray:
    """Each row of 16 bytes as 32 hexadecimal digits."""
    offsets = np.arange(len(blocks) + 1, dtype=np.int32) * 32
    return pa.StringArray.from_buffers(
        len(blocks), pa.py_buffer(offsets), pa.py_buffer(binascii.hexlify(blocks.tobytes()))
    )


def as_lists(bags: Bags) -> dict[str, pa.ListArray]:
    """Bags as the columns `terms` and `counts`, list<int32> both."""
    offsets = pa.array(bags.offsets, pa.int32())
    return {
        "terms": pa.ListArray.from_arrays(offsets, bags.entries),
        "counts": pa.ListArray.from_arrays(offsets, bags.counts),
    }
