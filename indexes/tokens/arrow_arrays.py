"""Arrow arrays of strings and numbers, made without pandas.

`pa.array` asks pandas whether its argument is a pandas object, and so imports pandas wherever it is
installed: a third of a second of a process that starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def as_strings(texts: Sequence[str]) -> pa.Array:
    """Return texts as large_string; raises UnicodeEncodeError for a surrogate."""
    encoded = [text.encode() for text in texts]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    buffers = pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))
    return pa.LargeStringArray.from_buffers(len(encoded), *buffers)


def as_numbers(numbers: npt.NDArray[Any]) -> pa.Array:
    """Return numbers as an array of their own type, over the same memory if dense."""
    there = np.ascontiguousarray(numbers)
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(there.dtype), len(there), [None, pa.py_buffer(there)]
    )
