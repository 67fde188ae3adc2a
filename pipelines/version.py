"""The version of quietcorpus and of what it runs on, for the card and for workers."""

from __future__ import annotations

import functools
import hashlib
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("mechanisms", "indexes", "evaluation", "transforms", "pipelines")
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


@functools.cache
def environment_digest() -> str:
    """The SHA-256 of our modules, by name and content, and of the versions of all they run on."""
    root = Path(__file__).resolve().parents[1]
    modules = [root / "compiled.py"]
    for package in _PACKAGES:
        modules += sorted((root / package).rglob("*.py"))
    digest = hashlib.sha256(repr(sorted(software().items())).encode())
    for module in modules:
        content = module.read_bytes()
        digest.update(f"{module.relative_to(root).as_posix()}:{len(content)}:".encode() + content)
    return digest.hexdigest()
