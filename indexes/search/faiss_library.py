"""FAISS, imported when it is first needed, with one thread."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

MODULE = "faiss"


class FaissMissing(ImportError):
    """FAISS is not installed, or does not load."""


def faiss(threads: int = 1) -> Any:
    """Return the module, whose calls from this thread will use `threads` threads.

    There is a worker for every processor, so one is right for searches. OpenMP keeps the number for
    each calling thread: call this in the thread that searches. FAISS's BLAS follows it.

    Raises FaissMissing if FAISS is not installed, or does not load.
    """
    try:
        module = importlib.import_module(MODULE)
    except ImportError:
        raise FaissMissing("faiss is not installed; install faiss-cpu") from None
    except (OSError, RuntimeError) as error:  # a build for GPUs that does not find CUDA's libraries
        raise FaissMissing(f"faiss does not load: {error}") from None
    # Else batches of up to 1,024 queries go without BLAS, at a twentieth of its speed.
    module.cvar.distance_compute_blas_threshold = 1
    module.omp_set_num_threads(threads)
    return module
