"""The public sources: the texts of a spec's artefacts, and files that are named beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.indexes.documents.candidates import TEXT
from quietcorpus.indexes.folder import MANIFEST
from quietcorpus.transforms.artefacts.candidates import CandidatesSource
from quietcorpus.transforms.artefacts.pool import PoolSource
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus

from ..prepare.public_documents import batches
from ..schema.spec import Spec


@dataclass(frozen=True)
class PublicSource:
    """Something that is said to be public.

    Attributes:
        key: the key of the spec that names it, or `public`.
        place: the artefact's folder or file, or the pattern of the files.
    """

    key: str
    place: str


@dataclass(frozen=True)
class PublicBatch:
    """Some public texts, large_string without nulls, and where they are.

    Attributes:
        source: what they are of.
        file: the artefact, or the file that they are in.
        rows: int64 (n,); their numbers there.
        texts: the texts.
    """

    source: PublicSource
    file: str
    rows: npt.NDArray[np.int64]
    texts: pa.LargeStringArray


def named_in(spec: Spec) -> list[PublicSource]:
    """Return the artefacts and the public vocabulary of a spec."""
    return [
        PublicSource(key, place.removesuffix(f"/{MANIFEST}"))
        for key, place in spec.mechanism.sources()
    ]


def of_artefact(source: PublicSource) -> PublicBatch | None:
    """Return the texts that an artefact holds; None if it holds none, as a word index does.

    Raises InputError for one that is unusable.
    """
    texts: pa.LargeStringArray | None = None
    if source.key == "pool":
        texts = PoolSource.resolve(source.key, source.place).open().texts
    elif source.key == "candidates":
        documents = CandidatesSource.resolve(source.key, source.place).open().documents
        texts = None if documents is None else documents[TEXT].combine_chunks()
    if texts is None:
        return None
    return PublicBatch(source, source.place, np.arange(len(texts), dtype=np.int64), texts)


def of_files(patterns: Sequence[str], text: str) -> Iterator[PublicBatch]:
    """Read the texts of public files; raises InputError for what cannot be read."""
    for pattern in patterns:
        source = PublicSource("public", pattern)
        try:
            for documents in batches(Corpus(pattern, text)):
                if len(documents.rows):
                    yield PublicBatch(source, documents.source, documents.rows, documents.texts)
        except InputError as error:
            raise InputError(str(error).replace("source:", "public:", 1)) from None
