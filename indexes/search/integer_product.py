"""The product of matrices of bytes, exact in 32 bits, by ONNX Runtime where it is installed."""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

import numpy as np
import numpy.typing as npt

from ..onnx_runtime import MODULE, onnxruntime

# One node, MatMulInteger of uint8 (m, k) and int8 (k, n): `onnx` itself is not needed.
GRAPH = (
    b'\x08\x08:b\n\x18\n\x01A\n\x01B\x12\x01C"\rMatMulInteger\x12\x01gZ\x15\n\x01A\x12\x10\n\x0e'
    b"\x08\x02\x12\n\n\x03\x12\x01m\n\x03\x12\x01kZ\x15\n\x01B\x12\x10\n\x0e\x08\x03\x12\n\n\x03"
    b"\x12\x01k\n\x03\x12\x01nb\x15\n\x01C\x12\x10\n\x0e\x08\x06\x12\n\n\x03\x12\x01m\n\x03\x12"
    b"\x01nB\x04\n\x00\x10\r"
)


def is_installed() -> bool:
    """Return whether the library of the product is installed."""
    return importlib.util.find_spec(MODULE) is not None


class IntegerProduct:
    """A product whose factors and result stay where they are: change a factor, and compute again.

    Some processors add pairs of products in 16 bits. So that none overflows, no two neighbouring
    products may add up to more than 2^15 - 1: the factors' largest sizes have a product below 2^14.
    """

    def __init__(
        self,
        one: npt.NDArray[np.uint8],
        other: npt.NDArray[np.int8],
        result: npt.NDArray[np.int32],
    ) -> None:
        """Bind the factors, uint8 (m, k) and int8 (k, n), and the result, int32 (m, n).

        All are C-contiguous. Raises ImportError if the library does not load.
        """
        self._session = _session()
        self._held = one, other, result
        self._binding = self._session.io_binding()
        self._binding.bind_cpu_input("A", one)
        self._binding.bind_cpu_input("B", other)
        self._binding.bind_output("C", "cpu", 0, np.int32, list(result.shape), result.ctypes.data)

    def compute(self) -> None:
        """Write the product of the factors, as they are now, to the result."""
        self._session.run_with_iobinding(self._binding)


@functools.cache
def _session() -> Any:
    module = onnxruntime()
    options = module.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # a worker for every processor
    options.log_severity_level = 3
    return module.InferenceSession(GRAPH, options, providers=["CPUExecutionProvider"])
