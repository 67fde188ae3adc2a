"""Places as arguments of the API, and the process in which its functions run."""

from __future__ import annotations

import logging
import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from typing import TypeAlias

from quietcorpus.pipelines.environment.process import uncollected
from quietcorpus.transforms.threads import Temporary

Place: TypeAlias = str | PathLike[str]
"""A path on this machine, or a URI of an object store."""
_OPENMP = "KMP_DUPLICATE_LIB_OK"  # set by threadpoolctl and scikit-learn when they are imported


def absolute(place: Place) -> str:
    """Return the place under a name that does not depend on the working directory."""
    from quietcorpus.pipelines.storage import places

    return places.absolute(fspath(place))


def _change() -> Callable[[], None]:
    root = logging.getLogger()
    handlers = root.handlers[:]
    method = multiprocessing.get_start_method(allow_none=True)
    is_set = _OPENMP in os.environ
    with uncollected():
        from apache_beam.io.filesystems import FileSystems
        from apache_beam.options.pipeline_options import PipelineOptions

    # `FileSystems.set_options` (filesystems.py) has no public counterpart that reads the options.
    options = FileSystems._pipeline_options
    FileSystems.set_options(PipelineOptions([]))

    def undo() -> None:
        FileSystems.set_options(options)
        for handler in root.handlers[:]:
            # `PipelineOptions` calls `logging.basicConfig`, and so does `logging.error`.
            if handler not in handlers and _is_basic(handler):
                root.removeHandler(handler)
        if not is_set:
            os.environ.pop(_OPENMP, None)
        if method is None:  # tqdm's first bar sets it, and then no other code could
            multiprocessing.set_start_method(None, force=True)

    return undo


def _is_basic(handler: logging.Handler) -> bool:
    """Return whether a handler is one that `logging.basicConfig` makes without arguments."""
    made = handler.formatter._fmt if handler.formatter else None
    return type(handler) is logging.StreamHandler and made == logging.BASIC_FORMAT


_settings = Temporary(_change)


@contextmanager
def process_restored() -> Iterator[None]:
    """Set up the process for a call of the API, and restore its settings at the end.

    Clients of object stores outlast a short outage meanwhile.
    """
    with _settings():
        from quietcorpus.pipelines.environment.store_clients import clients_shared, patience

        with patience(), clients_shared():
            yield
