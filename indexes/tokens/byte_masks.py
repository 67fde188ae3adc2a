"""Many bytes at once, for kernels: loads and comparisons that become vector instructions.

The kernels that call these must have 64 bytes behind every position that they give: `padded` adds
them. LLVM divides a comparison of 64 bytes into instructions of the processor; the results are the
same on all processors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

BLOCK = 64
"""The bytes that a mask speaks of, and that lie behind every text of a padded buffer."""


def padded(data: npt.NDArray[np.uint8], end: int) -> npt.NDArray[np.uint8]:
    """Return the bytes, with at least `BLOCK` more behind `end`; a copy where there are fewer."""
    if len(data) >= end + BLOCK:
        return data
    longer = np.zeros(end + BLOCK, np.uint8)
    longer[:end] = data[:end]
    longer.flags.writeable = False  # as Arrow's buffers are: kernels are compiled for one kind
    return longer


def _loaded(context: Any, builder: Any, kind: Any, data: Any, position: Any, wide: Any) -> Any:
    """Load a value of LLVM's type `wide` from any position in an array of bytes."""
    start = cgutils.create_struct_proxy(kind)(context, builder, value=data).data
    place = builder.bitcast(builder.gep(start, [position]), wide.as_pointer())
    return builder.load(place, align=1)


@intrinsic
def bytes_within(typing, data, position, fold, first, count):  # type: ignore[no-untyped-def]
    """Return a mask of the next 64 bytes b: bit i is set if first <= (b | fold) < first + count."""

    def lowered(context, builder, signature, given):  # type: ignore[no-untyped-def]
        wide = ir.VectorType(ir.IntType(8), BLOCK)
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), BLOCK), [0] * BLOCK)

        def each(number):  # type: ignore[no-untyped-def]
            byte = builder.trunc(number, ir.IntType(8))
            one = builder.insert_element(ir.Constant(wide, ir.Undefined), byte, ir.IntType(32)(0))
            return builder.shuffle_vector(one, ir.Constant(wide, ir.Undefined), lanes)

        loaded = _loaded(context, builder, signature.args[0], given[0], given[1], wide)
        fold, first, count = map(each, given[2:])
        found = builder.icmp_unsigned("<", builder.sub(builder.or_(loaded, fold), first), count)
        return builder.bitcast(found, ir.IntType(64))

    return types.uint64(data, *[types.int64] * 4), lowered


@intrinsic
def eight_bytes(typing, data, position):  # type: ignore[no-untyped-def]
    """Return the next 8 bytes as a number, the first of them lowest."""

    def lowered(context, builder, signature, given):  # type: ignore[no-untyped-def]
        return _loaded(context, builder, signature.args[0], given[0], given[1], ir.IntType(64))

    return types.uint64(data, types.int64), lowered
