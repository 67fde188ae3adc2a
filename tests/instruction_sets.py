"""Runs code in processes that compute as other processors do: by other kernels of libraries."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import quietcorpus

_LEVELS = (
    {},
    {"OPENBLAS_CORETYPE": "Haswell"},
    {"OPENBLAS_CORETYPE": "Nehalem", "FAISS_OPT_LEVEL": "generic", "FAISS_SIMD_LEVEL": "NONE"},
    {"OPENBLAS_CORETYPE": "Nehalem", "NUMBA_CPU_NAME": "generic", "OPENBLAS_NUM_THREADS": "2"},
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
