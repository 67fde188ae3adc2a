"""Places as arguments of the API, and the object stores that hold them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from typing import TypeAlias

Place: TypeAlias = str | PathLike[str]
"""A path on this machine, or a URI of an object store."""


def absolute(place: Place) -> str:
    """Return the place under a name that does not depend on the working directory."""
    from quietcorpus.pipelines.storage import places

    return places.absolute(fspath(place))


@contextmanager
def stores() -> Iterator[None]:
    """Set up the clients of object stores, so that they outlast a short outage."""
    from apache_beam.io.filesystems import FileSystems
    from apache_beam.options.pipeline_options import PipelineOptions

    from quietcorpus.pipelines.environment.patience import patience

    with patience():
        FileSystems.set_options(PipelineOptions([]))
        yield
