"""The version of quietcorpus and of what it runs on, for the card."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

_DEPENDENCIES = ("apache-beam", "cryptography", "numba", "numpy", "pyarrow", "scipy")


def quietcorpus_version() -> str:
    """The installed version, or `unknown` in a tree that is not installed."""
    try:
        return version("quietcorpus")
    except PackageNotFoundError:
        return "unknown"


def software() -> dict[str, str]:
    """What ran: name and version of each part."""
    parts = {name: version(name) for name in _DEPENDENCIES}
    return {"quietcorpus": quietcorpus_version(), "python": platform.python_version()} | parts
