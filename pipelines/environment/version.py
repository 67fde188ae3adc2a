"""The versions of quietcorpus and of its dependencies, for the card and for workers."""

from __future__ import annotations

import functools
import hashlib
import platform
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from .commit import commit_of

_version = functools.cache(metadata.version)  # it reads and parses a file

_PACKAGES = ("evaluation", "indexes", "mechanisms", "pipelines", "transforms")
_LIBRARIES = ("cryptography", "numba", "numpy", "pyarrow", "scipy")
_DEPENDENCIES = ("apache-beam", "jinja2", *_LIBRARIES)


def quietcorpus_version() -> str:
    """Return the installed version, or `unknown` in a tree that is not installed."""
    try:
        return _version("quietcorpus")
    except metadata.PackageNotFoundError:
        return "unknown"


def full_version() -> str:
    """Return the installed version with the commit, where it is known, in the form of PEP 440.

    Cards and artefacts have the version alone. Their bytes may not depend on whether the software
    came as a checkout or as a wheel.
    """
    # Through the links of a checkout's checks.
    module = (_folder("quietcorpus.compiled") / "compiled.py").resolve()
    commit = commit_of(module.parent)
    return quietcorpus_version() + (f"+g{commit}" if commit else "")


def software() -> dict[str, str]:
    """Return the name and the version of each part that runs."""
    parts = {name: _version(name) for name in _DEPENDENCIES}
    return {"quietcorpus": quietcorpus_version(), "python": platform.python_version()} | parts


def libraries() -> dict[str, str]:
    """Return the versions of what every kind of release reads and computes with."""
    return {"python": platform.python_version()} | {name: _version(name) for name in _LIBRARIES}


def environment_digest() -> str:
    """Compute the SHA-256 of our modules' names and contents, and of their software's versions."""
    versions = repr(sorted(software().items())).encode()
    return hashlib.sha256(versions + code_digest().encode()).hexdigest()


def same_code(digest: str | None) -> str | None:
    """Return the digest of a card's code if it is this code's; else None."""
    return digest if digest == code_digest() else None


@functools.cache
def code_digest() -> str:
    """Compute the SHA-256 of our modules' and templates' names and contents."""
    # Not found by `quietcorpus` itself: in a checkout's parent, Python takes the checkout for it.
    folders = {"quietcorpus": _folder("quietcorpus.compiled")}
    folders |= {f"quietcorpus/{name}": _folder(f"quietcorpus.{name}") for name in _PACKAGES}
    # They lie side by side in a checkout, and within one another in an installation.
    modules = {
        f"{package}/{module.relative_to(folder).as_posix()}": module.read_bytes()
        for package, folder in folders.items()
        for pattern in ("*.py", "*.j2", "*.css")  # a release's page is made of templates
        for module in folder.rglob(pattern)
    }
    digest = hashlib.sha256()
    for path, content in sorted(modules.items()):
        digest.update(f"{path}:{len(content)}:".encode() + content)
    return digest.hexdigest()


def _folder(module: str) -> Path:
    found = find_spec(module)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def versions_of(*packages: str) -> str:
    """Return the installed versions of these packages."""
    return ", ".join(f"{name} {_version(name)}" for name in packages)
