"""boto's descriptions of S3, which a process reads once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from quietcorpus.transforms.temporary import Temporary


def read_once() -> Callable[[], None]:
    """Have all sessions of boto's share what they read; return the undoing.

    Beam opens each file in a session of its own (`S3FileSystem._path_open`,
    apache_beam/io/aws/s3filesystem.py), and a session parses a megabyte of JSON: a quarter of a
    second of a core. Clients of one session share that in any case (`instance_cache`,
    botocore/loaders.py).
    """
    try:
        from botocore.loaders import JSONFileLoader
    except ImportError:
        return lambda: None
    usual = JSONFileLoader.load_file

    @functools.cache
    def read(path: str) -> Any:
        return usual(JSONFileLoader(), path)

    JSONFileLoader.load_file = lambda _, path: read(path)

    def undo() -> None:
        JSONFileLoader.load_file = usual

    return undo


boto_files_shared = Temporary(read_once)
"""Have boto's sessions share what they read within the context."""
