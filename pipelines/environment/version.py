"""The version of quietcorpus and of what it runs on, for the card and for workers."""

from __future__ import annotations

import functools
import hashlib
import platform
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

_PACKAGES = ("evaluation", "indexes", "mechanisms", "pipelines", "transforms")
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
    # Not by `quietcorpus` itself, for which Python also takes a checkout's folder, from its parent.
    folders = {"quietcorpus": _folder("quietcorpus.compiled")}
    folders |= {f"quietcorpus/{name}": _folder(f"quietcorpus.{name}") for name in _PACKAGES}
    # A checkout has them side by side, an installation in one another.
    modules = {
        f"{package}/{module.relative_to(folder).as_posix()}": module.read_bytes()
        for package, folder in folders.items()
        for module in folder.rglob("*.py")
    }
    digest = hashlib.sha256(repr(sorted(software().items())).encode())
    for path, content in sorted(modules.items()):
        digest.update(f"{path}:{len(content)}:".encode() + content)
    return digest.hexdigest()


def _folder(module: str) -> Path:
    found = find_spec(module)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent
