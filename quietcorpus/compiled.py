"""Compilation of kernels: once per machine if the result can be stored, else once per process.

Containers often have a read-only installation and no home folder; numba then has no place for its
cache and refuses to compile with one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a kernel that runs without the interpreter's lock."""
    try:
        kernel: Callable[..., Any] = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:
        kernel = numba.njit(nogil=True)(function)
    return kernel


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a helper that is inlined into the kernels that call it."""
    kernel: Callable[..., Any] = numba.njit(nogil=True, inline="always")(function)
    return kernel


def reordered(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a helper whose sums may be added in any order, and so by vector instructions.

    Its last bits depend on the processor: only a bound on its error may be relied on.
    """
    fast = {"reassoc", "contract"}
    kernel: Callable[..., Any] = numba.njit(nogil=True, fastmath=fast)(function)
    return kernel


@intrinsic
def lowest(typing, mask):  # type: ignore[no-untyped-def]
    """Return the position of the lowest bit that is set, int64; 64 if none is."""

    def lowered(context, builder, signature, given):  # type: ignore[no-untyped-def]
        return builder.cttz(given[0], ir.IntType(1)(0))

    return types.int64(types.uint64), lowered


@cache
def load_numba() -> None:
    """Load what numba needs for its first kernel, a quarter of a second's work.

    By itself it would load SciPy's linear algebra as well, to see whether it is there
    (numba/np/arraymath.py). A kernel with a product of matrices does so on its own.
    """
    from numba.core.registry import cpu_target
    from numba.np import linalg

    usual = getattr(linalg, "ensure_blas", None)
    if usual is None:  # another version of numba, which does not ask
        return
    linalg.ensure_blas = lambda: None
    try:
        from numba.np import arraymath
    finally:
        linalg.ensure_blas = usual
    arraymath.ensure_blas = usual
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


def compiling() -> bool:
    """Return whether this thread is compiling a kernel, or loading a compiled one."""
    locked: bool = global_compiler_lock.is_locked()
    return locked
