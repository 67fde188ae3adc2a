"""What every kind of document release shares: addresses in the keystream, fresh ids, rows."""

from __future__ import annotations

import binascii
import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.mechanisms.keystream import Addresses, Keystream, ReleaseKey
from quietcorpus.transforms.reading.documents import Documents

ORDER = "\0order"
"""The column by which released rows are shuffled; no column of a corpus has this name."""

_ID_LANE = 255  # of a stage's keystream; its noise uses others


class Released(NamedTuple):
    """What a privatizer makes of a batch.

    Attributes:
        rows: in input order, with `id`, the kind's columns and `ORDER`.
        tokens: how many were read.
        known: whether any of them is in the vocabulary.
    """

    rows: pa.Table
    tokens: int
    known: bool


class Privatizer(Protocol):
    """Batches of documents in, released rows out: the whole per-document path of one kind.

    Attributes:
        row_group_rows: the rows that are shuffled and written together; a public number.
        documents_at_once: the largest batch.
    """

    row_group_rows: int
    documents_at_once: int

    def release(self, documents: Documents) -> Released:
        """The released rows of a batch."""

    def take(self, rows: pa.Table, order: npt.NDArray[np.int64]) -> pa.Table:
        """Rows in another order."""
        return rows.take(pa.array(order))


class Parameters(Protocol):
    """What a kind's privatizer is made from, on every worker anew."""

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The kind's columns in a data file."""

    def privatizer(self, key: ReleaseKey, side: Any) -> Privatizer:
        """The privatizer for a key and what the pipeline has made first, if anything."""


def document_addresses(
    stream: Keystream,
    documents: Documents,
    offsets: npt.NDArray[np.int64],
    terms: npt.NDArray[np.int32],
) -> Addresses:
    """Each document's address in a stage's keystream.

    The input that it stands for is the document's terms, which is what noise is added to: whatever
    changes them (another text, another tokeniser) changes every bit of the noise.
    """
    view = terms.astype("<i4", copy=False).data.cast("B")
    inputs = (view[a:b] for a, b in itertools.pairwise((offsets * terms.itemsize).tolist()))
    return stream.addresses(documents.source, documents.rows.tolist(), inputs)


def identified(
    stream: Keystream, addresses: Addresses, columns: Mapping[str, pa.Array]
) -> pa.Table:
    """Columns as a table, under fresh ids of 128 bits, which also order the rows."""
    blocks = stream.gather(addresses, np.zeros(len(addresses), np.uint64), lane=_ID_LANE)
    order = blocks.view("<u8")[:, 0]
    return pa.table({"id": _as_hex(blocks), **columns, ORDER: order})


def _as_hex(blocks: npt.NDArray[np.uint8]) -> pa.StringArray:
    """Each row of 16 bytes as 32 hexadecimal digits."""
    offsets = np.arange(len(blocks) + 1, dtype=np.int32) * 32
    return pa.StringArray.from_buffers(
        len(blocks), pa.py_buffer(offsets), pa.py_buffer(binascii.hexlify(blocks.tobytes()))
    )
