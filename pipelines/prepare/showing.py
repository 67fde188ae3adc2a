"""Showing an artefact, whatever its kind: what `index show` prints."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict

from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from quietcorpus.indexes.documents.candidates import FORMAT, CandidatesManifest, read_names
from quietcorpus.indexes.folder import MANIFEST, ArtefactError
from quietcorpus.transforms.artefacts.folders import CandidatesSource, local
from quietcorpus.transforms.errors import InputError

from ..storage.files import read_bytes
from ..storage.places import absolute
from . import word_index


def show(place: str, words: list[str]) -> Iterable[str]:
    """Return the lines that `index show` prints; raises InputError for an unusable artefact."""
    FileSystems.set_options(PipelineOptions([]))
    uri = absolute(place)
    if _format(uri) != FORMAT:
        return word_index.show(uri, words)
    if words:
        raise InputError("words: a set of candidates has no words; leave it out")
    return _candidates(uri)


def _format(uri: str) -> object:
    """Return the format that a manifest names; None for what will be refused as no index."""
    with suppress(OSError, BeamIOError, ValueError, AttributeError, RecursionError):
        return json.loads(read_bytes(f"{uri}/{MANIFEST}")).get("format")
    return None


def _candidates(uri: str) -> Iterator[str]:
    """Yield a description, the files, and a line for each candidate if they are named."""
    source = CandidatesSource.resolve("index", uri)
    manifest = source.open().manifest
    content = asdict(manifest)
    content["measures"].pop("training", None)  # a figure for each epoch
    yield from word_index.described(content)
    try:
        names = read_names(local(uri, source.digest, CandidatesManifest.read), manifest)
    except ArtefactError as error:
        raise InputError(f"index: {uri} {error}") from None
    if names is not None:
        yield ""
        yield "\t".join(names.column_names)
        for row in names.to_pylist():
            yield "\t".join(" ".join(str(value).split()) for value in row.values())
