"""Kernels compile where no cache can be written, as in a read-only container."""

from __future__ import annotations

from typing import Any

import numba
import pytest

from quietcorpus.compiled import compiled


def test_a_kernel_without_a_place_for_its_cache() -> None:
    # A function without a source file has no cache location either.
    names: dict[str, Any] = {}
    exec("def double(x):\n    return 2 * x\n", names)
    with pytest.raises(RuntimeError, match="no locator available"):
        numba.njit(cache=True)(names["double"])
    assert compiled(names["double"])(21) == 42
