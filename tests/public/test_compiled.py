"""Kernels compile where no cache can be written, as in a read-only container, and load little."""

from __future__ import annotations

import subprocess
import sys
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


# Runs a kernel of its own, then one that multiplies, and prints whether SciPy's part is loaded.
KERNELS = """
import sys
import numba, numpy as np
from quietcorpus.compiled import load_numba
load_numba()
print("scipy.linalg" in sys.modules, numba.njit(lambda a: a.sum())(np.ones(3)))
print("scipy.linalg" in sys.modules, numba.njit(lambda a: np.dot(a, a))(np.ones(3)))
print("scipy.linalg" in sys.modules)
from numba.np import arraymath, linalg
print(arraymath.ensure_blas is linalg.ensure_blas, linalg.ensure_blas.__module__)
"""


def test_a_first_kernel_loads_no_linear_algebra() -> None:
    """Kills: a third of a second for what no kernel of a release uses; a product that cannot be
    compiled any more; a numba that asks no more whether SciPy's part is there.
    """
    said = subprocess.check_output([sys.executable, "-P", "-c", KERNELS], text=True)
    assert said == "False 3.0\nFalse 3.0\nTrue\nTrue numba.np.linalg\n"
