"""Linear algebra at the processor's own speed.

NumPy's OpenBLAS knows processors by their model, and on a model newer than itself it uses the
instructions of 2013. Measured on such a processor, the search of `kind: words` is 1.6 times as fast
with AVX-512. Results do not depend on it.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

_NEEDED = {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}
_VARIABLE = "OPENBLAS_CORETYPE"


def prefer_avx512() -> None:
    """Make OpenBLAS use AVX-512 where available; must be called before NumPy is imported."""
    try:
        description = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return
    if has_avx512(description):
        os.environ.setdefault(_VARIABLE, "SkylakeX")


def model() -> str:
    """Return the processor's model, on which floats' last digits may depend."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def has_avx512(description: str) -> bool:
    """Return whether /proc/cpuinfo describes an Intel processor with the AVX-512 of OpenBLAS."""
    return "GenuineIntel" in description and set(description.split()) >= _NEEDED
