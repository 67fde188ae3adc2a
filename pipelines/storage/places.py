"""Places, judged by their paths and URIs alone: no file is opened."""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path

from quietcorpus.transforms.errors import InputError, is_text, shown


def is_local(path: str) -> bool:
    """Return whether a location is on this machine's file system."""
    return "://" not in path


def absolute(value: str) -> str:
    """Make local paths absolute, so that positions do not depend on the working directory.

    Raises InputError for an empty one, and for a text.
    """
    if not value.strip() or is_text(value):
        raise InputError(f"{shown(value)} is not a path; give a path or a URI")
    return value.rstrip("/") if "://" in value else str(Path(value).expanduser().absolute())


def root(pattern: str) -> str:
    """Return the file itself, or the folder in which a glob looks for files."""
    literal = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
    return pattern if literal == pattern else posixpath.dirname(literal)


def inside(path: str, folder: str) -> bool:
    """Return whether a place is a folder or lies in it."""
    path, folder = (p if "://" in p else os.path.realpath(p) for p in (path, folder))
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def without_folders(uri: str) -> str:
    """Return a local path's last part: the rest would show the folders of somebody's machine."""
    return posixpath.basename(uri) if is_local(uri) else uri
