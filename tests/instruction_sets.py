"""Runs code in processes that compute as other processors do: by other kernels of libraries."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import quietcorpus

# As the processor is; without AVX-512, and linear algebra as on processors of 2013; without AVX.
_AVX2 = {"OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR"}
_NONE = {
    "OPENBLAS_CORETYPE": "Nehalem",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    "ARROW_USER_SIMD_LEVEL": "NONE",
}
_LEVELS = (
    {},
    _AVX2 | {"NUMBA_CPU_NAME": "haswell"},
    _NONE | {"FAISS_OPT_LEVEL": "generic", "FAISS_SIMD_LEVEL": "NONE"},
    _NONE | {"NUMBA_CPU_NAME": "generic", "OPENBLAS_NUM_THREADS": "2"},
)


def printed_by_levels(code: str, folder: Path) -> set[str]:
    """Return all that code prints, in processes of other instruction sets, in a folder."""
    path = str(Path(quietcorpus.__file__).parents[1])
    return {
        subprocess.run(
            [sys.executable, "-P", "-c", code],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": path} | level,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for level in _LEVELS
    }
