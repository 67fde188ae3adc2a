"""The writing of artefacts to a folder or an object store, whole or not at all."""

from __future__ import annotations

import os
import posixpath
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from quietcorpus.indexes.folder import MANIFEST
from quietcorpus.pipelines.storage import files as storage
from quietcorpus.pipelines.storage import places
from quietcorpus.transforms.errors import InputError


def check_output(output: str) -> None:
    """Raise InputError, before any work, if the output exists or cannot be written to."""
    storage.refuse_existing(output)
    if not places.is_local(output):
        storage.probe("output", posixpath.dirname(output))


@contextmanager
def artefact_folder(output: str) -> Iterator[str]:
    """Yield a local folder whose files become `output`: all at once, or the manifest last."""
    if places.is_local(output):
        with storage.staging_area(output) as staging:
            os.mkdir(folder := f"{staging}/artefact")
            yield folder
            storage.move(folder, output)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield folder
        names = sorted(os.listdir(folder), key=lambda name: name == MANIFEST)
        try:
            for name in names:
                _upload(f"{folder}/{name}", f"{output}/{name}")
        except BaseException as error:
            storage.delete(names, output)
            if isinstance(error, Exception):  # every object store's client has its own
                raise InputError(
                    f"output: {output} cannot be written to; check the path and the permissions"
                ) from None
            raise


def _upload(path: str, uri: str) -> None:
    sink = FileSystems.create(uri, compression_type=CompressionTypes.UNCOMPRESSED)
    with open(path, "rb") as content, sink as stream:
        shutil.copyfileobj(content, stream, 1 << 22)
