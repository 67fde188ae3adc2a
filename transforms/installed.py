"""The check for optional packages."""

from __future__ import annotations

import importlib.util

from .errors import InputError

_PACKAGES = {
    "dp_accounting": "dp-accounting",
    "flint": "python-flint",
    "sentence_transformers": "sentence-transformers",
    "sklearn": "scikit-learn",
}
"""The names of packages that are not called like their modules."""


def require_installed(*modules: str, extra: str, key: str = "", otherwise: str = "") -> None:
    """Raise InputError if a module is not installed.

    Args:
        modules: the modules' names.
        extra: the extra of quietcorpus that brings them.
        key: the key or the argument that needs them, if there is one.
        otherwise: the end of the message: a remedy besides the installation.
    """
    for module in modules:
        if importlib.util.find_spec(module) is None:
            package = _PACKAGES.get(module, module)
            said = f"{package} is not installed; install the extra [{extra}]{otherwise}"
            raise InputError(f"{key}: {said}" if key else said)
