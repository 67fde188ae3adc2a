"""The inputs of audits: made-up documents, each at its own place, under fresh keys."""

from __future__ import annotations

import itertools
import string
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from quietcorpus.mechanisms.keystream import Addresses, Keystream, ReleaseKey
from quietcorpus.transforms.privatizers.rows import Privatizer
from quietcorpus.transforms.reading.documents import Documents

SOURCE = "audit"
LOSS = 2.0
"""A loss that draws show well: an event that is exp(10) times as likely under one input is never
seen under the other."""

# A release takes fewer documents at once, since they are long.
_SHORT_TEXTS_AT_ONCE = 1 << 11


def stage() -> Keystream:
    """Return the keystream of a fresh key."""
    return ReleaseKey.fresh().stage(SOURCE, 1)


def fresh_stream(inputs: list[bytes]) -> tuple[Keystream, Addresses]:
    """Return a keystream of a fresh key, and the addresses of inputs, each at its own place."""
    stream = stage()
    return stream, stream.addresses(SOURCE, range(len(inputs)), inputs)


def released(privatizer: Privatizer, texts: tuple[str, ...], count: int) -> Iterator[pa.Table]:
    """Yield the released rows of these texts, `count` times all of them, in order."""
    rows = np.arange(count * len(texts), dtype=np.int64)
    column = pa.array(list(texts) * count, pa.large_string())
    documents = Documents(SOURCE, rows, column, pa.table({}))
    for part in documents.parts(max(_SHORT_TEXTS_AT_ONCE, privatizer.documents_at_once)):
        yield privatizer.release(part).rows


def made_up_words() -> Iterator[str]:
    """Yield distinct words of lower-case letters, without end."""
    letters = (
        itertools.product(string.ascii_lowercase, repeat=length) for length in itertools.count(6)
    )
    return ("".join(word) for length in letters for word in length)


def telling(epsilon: float, most: int) -> int:
    """Return how many units, 1 to `most`, cost about `LOSS` if `most` of them cost `epsilon`."""
    return min(most, max(1, round(LOSS * most / epsilon)))
