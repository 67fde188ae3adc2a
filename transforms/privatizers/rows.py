"""The parts that all document releases share: addresses in the keystream, fresh ids, rows."""

from __future__ import annotations

import binascii
import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.indexes.tokens.arrow_arrays import as_numbers
from quietcorpus.indexes.tokens.written_language import FrequentCounts
from quietcorpus.mechanisms.keystream import Addresses, Keystream, ReleaseKey

from ..reading.documents import Documents

ORDER = "\0order"
"""The column by which released rows are shuffled; no column of a corpus has this name."""

_ID_LANE = 255  # a lane of a stage's keystream; its noise uses others
_IDS = "\0ids"  # in place of a file's name; no file has this one


class Released(NamedTuple):
    """A privatizer's output for one batch.

    Attributes:
        rows: in input order, with `id`, the kind's columns and `ORDER`.
        tokens: the number of tokens that were read.
        known: how many of them are in the vocabulary.
        frequent: the counts of an artefact's most frequent words, where it has told them.
    """

    rows: pa.Table
    tokens: int
    known: int
    frequent: FrequentCounts = FrequentCounts()


class Privatizer(Protocol):
    """The whole per-document path of one kind: batches of documents in, released rows out.

    Attributes:
        row_group_rows: the number of rows shuffled and written together; a public number.
        documents_at_once: the size of the largest batch.
    """

    row_group_rows: int
    documents_at_once: int

    def release(self, documents: Documents) -> Released:
        """Return the released rows of a batch."""

    def take(self, rows: pa.Table, order: npt.NDArray[np.int64]) -> pa.Table:
        """Return rows in another order."""
        return rows.take(pa.array(order))


class Parameters(Protocol):
    """The parameters from which every worker builds its own privatizer of a kind."""

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """Return the kind's columns in a data file."""

    def privatizer(self, key: ReleaseKey, side: Any) -> Privatizer:
        """Build the privatizer from a key and `side`, the pipeline's earlier output, if any."""


class PreparedPrivatizer:
    """The privatizer of a worker, whose tables are made once, not once for a batch."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters
        self._found: tuple[str | None, Privatizer] | None = None

    def of(self, key: ReleaseKey, side: Any) -> Privatizer:
        """Return it for the pipeline's earlier output, made anew only where that differs."""
        digest = side.digest if side else None
        if self._found is None or self._found[0] != digest:
            self._found = digest, self._parameters.privatizer(key, side)
        return self._found[1]


def document_addresses(
    stream: Keystream,
    documents: Documents,
    offsets: npt.NDArray[np.int64],
    terms: npt.NDArray[np.int32],
) -> Addresses:
    """Compute each document's address in a stage's keystream.

    An address is bound to the document's position, or to its id where it has one in its place, and
    to its terms, to which the noise is added: whatever changes them (another text, another
    tokeniser) changes every bit of the noise.
    """
    view = terms.astype("<i4", copy=False).data.cast("B")
    inputs = (view[a:b] for a, b in itertools.pairwise((offsets * terms.itemsize).tolist()))
    if documents.ids is not None:
        named = (
            len(own).to_bytes(8, "little") + own + bytes(raw)
            for own, raw in zip(documents.ids, inputs, strict=True)
        )
        return stream.addresses(_IDS, [0] * len(documents.ids), named)
    return stream.addresses(documents.source, documents.rows.tolist(), inputs)


def identified(
    stream: Keystream, addresses: Addresses, columns: Mapping[str, pa.Array]
) -> pa.Table:
    """Return columns as a table, under fresh ids of 128 bits, which also order the rows."""
    blocks = stream.gather(addresses, np.zeros(len(addresses), np.uint64), lane=_ID_LANE)
    order = blocks.view("<u8")[:, 0]
    return pa.table({"id": _as_hex(blocks), **columns, ORDER: as_numbers(order)})


def _as_hex(blocks: npt.NDArray[np.uint8]) -> pa.StringArray:
    """Return each row of 16 bytes as 32 hexadecimal digits."""
    offsets = np.arange(len(blocks) + 1, dtype=np.int32) * 32
    return pa.StringArray.from_buffers(
        len(blocks), pa.py_buffer(offsets), pa.py_buffer(binascii.hexlify(blocks.tobytes()))
    )
