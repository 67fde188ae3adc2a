"""ONNX Runtime, imported when it is first needed, without its telemetry."""

from __future__ import annotations

import importlib
import os
from typing import Any

MODULE = "onnxruntime"
_DISABLING = "ORT_DISABLE_TELEMETRY"


def onnxruntime() -> Any:
    """Return the module.

    Its official builds report their use to their maker over the network, and keep an identifier of
    the machine in the home folder, unless this variable is set when the module is first imported.
    Reports must stay off: users release private texts, and expect no such traffic.

    Raises ImportError if it is not installed.
    """
    before = os.environ.get(_DISABLING)
    os.environ[_DISABLING] = "1"
    try:
        return importlib.import_module(MODULE)
    finally:
        if before is None:
            del os.environ[_DISABLING]
        else:
            os.environ[_DISABLING] = before
