"""What audits give to mechanisms: made-up documents, at places of their own, under fresh keys."""

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
"""A loss that draws show well: what is exp(10) times as likely under one input is never seen under
the other."""


def stage() -> Keystream:
    """The keystream of a fresh key."""
    return ReleaseKey.fresh().stage(SOURCE, 1)


def fresh_stream(inputs: list[bytes]) -> tuple[Keystream, Addresses]:
    """A keystream of a fresh key, and the addresses of inputs, each at a place of its own."""
    stream = stage()
    return stream, stream.addresses(SOURCE, range(len(inputs)), inputs)


def released(privatizer: Privatizer, texts: tuple[str, ...], count: int) -> Iterator[pa.Table]:
    """The released rows of these texts, over and over: `count` times all of them, in order."""
    rows = np.arange(count * len(texts), dtype=np.int64)
    column = pa.array(list(texts) * count, pa.large_string())
    documents = Documents(SOURCE, rows, column, pa.table({}))
    for part in documents.parts(privatizer.documents_at_once):
        yield privatizer.release(part).rows


def made_up_words() -> Iterator[str]:
    """Words of small letters, without end, no two alike."""
    letters = (
        itertools.product(string.ascii_lowercase, repeat=length) for length in itertools.count(6)
    )
    return ("".join(word) for length in letters for word in length)


def telling(epsilon: float, most: int) -> int:
    """Of 1 to `most` units that cost `epsilon` in all, how many cost about `LOSS`."""
    return min(most, max(1, round(LOSS * most / epsilon)))
