"""A word index as a folder of files, which workers verify and map into memory.

    manifest.json   as in every artefact's folder (`indexes/folder.py`)
    words.arrow     the words, in order, with their hashes
    slots.npy       the hash table over them, int32
    vectors.npy     float32 (V, d)
    codes.npy       uint64 (V, bits / 64), little-endian

Mapped files are shared by all the processes of a host.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.indexes.folder import (
    MANIFEST,
    ArtefactError,
    check_listed,
    parse,
    read_manifest,
    verify,
)
from quietcorpus.indexes.tokenizer import NAME
from quietcorpus.indexes.vocabulary import Vocabulary

VERSION = 1
FORMAT = "quietcorpus-index"
METRICS = EUCLIDEAN, HAMMING = "euclidean", "hamming"
"""The keys of `distances`; `mean`, `maximum` and `largest_met` are rationals, as text."""
_WORDS, _SLOTS, _VECTORS, _CODES = "words.arrow", "slots.npy", "vectors.npy", "codes.npy"
FILES = (_WORDS, _SLOTS, _VECTORS, _CODES)


@dataclass(frozen=True)
class IndexManifest:
    """The description of an index.

    Attributes:
        provenance: `public`, or `private` where the vectors were made from private data.
        guarantee: of a private one, the guarantee under which it was made; else None.
        source: the vectors' file, as `uri` and `sha256`.
        words, dimensions, bits: the sizes.
        tokenizer: the tokeniser under which every word is one token.
        seed: the seed of the autoencoder's training.
        measures: the quality of the codes: reconstruction error, neighbour overlap and so on.
        distances: by metric, the distances between words: mean and maximum, exact or estimated.
        builder: the software that made the index.
        files: path, bytes and sha256 of each.
        version: the version of this format.
    """

    provenance: Literal["public", "private"]
    guarantee: dict[str, Any] | None
    source: Mapping[str, str]
    words: int
    dimensions: int
    bits: int
    tokenizer: str
    seed: int
    measures: Mapping[str, Any]
    distances: Mapping[str, Any]
    builder: str
    files: tuple[Mapping[str, Any], ...] = ()
    version: int = VERSION

    def to_json(self) -> str:
        """Return the text of `manifest.json`."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> IndexManifest:
        """Parse a manifest; raise ArtefactError unless it describes an index that can be used."""
        keys = [field.name for field in fields(cls)]
        content = parse(text, FORMAT, VERSION, keys, noun="an index", source="vectors")
        if content["tokenizer"] != NAME:
            raise ArtefactError(
                f"was made for the tokenizer {content['tokenizer']!r}, and this is {NAME}: build "
                "it again"
            )
        check_listed(content["files"], FILES)
        if not _is_possible(content):
            raise ArtefactError(f"has a {MANIFEST} with values that no index has; build it again")
        return cls(**content | {"files": tuple(content["files"])})

    @classmethod
    def read(cls, folder: str, digest: str | None = None) -> IndexManifest:
        """Read a manifest; raise ArtefactError if it is missing, unusable or not of `digest`."""
        return cls.from_json(read_manifest(folder, "an index", digest))


_NUMBERS = ("words", "dimensions", "bits")
_MAPPINGS = ("source", "measures", "distances")


def _is_possible(content: dict[str, Any]) -> bool:
    """Return whether every value of a manifest is of its kind."""
    try:
        distances = [
            Fraction(str(value))
            for metric in METRICS
            for given in [content["distances"][metric]]
            for value in (
                given["mean"],
                given["maximum"],
                given["largest_met"],
                *_pair(given.get("mean_interval", ["1", "1"])),
            )
        ]
        return (
            all(type(content[name]) is int and content[name] > 0 for name in _NUMBERS)
            and content["bits"] % 64 == 0
            and type(content["seed"]) is int
            and isinstance(content["builder"], str)
            and all(isinstance(content[name], dict) for name in _MAPPINGS)
            and isinstance(content["guarantee"], dict | None)
            and all(isinstance(file["sha256"], str) for file in content["files"])
            and all(distance > 0 for distance in distances)
        )
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return False


@dataclass(frozen=True)
class WordIndex:
    """An index in memory, or mapped into it."""

    manifest: IndexManifest
    vocabulary: Vocabulary
    vectors: npt.NDArray[np.float32]
    codes: npt.NDArray[np.uint64]


def save(
    folder: str,
    manifest: IndexManifest,
    vocabulary: Vocabulary,
    vectors: npt.NDArray[np.float32],
    codes: npt.NDArray[np.uint64],
) -> IndexManifest:
    """Write an index into an empty folder; return the manifest with its files."""
    for name, content in contents(WordIndex(manifest, vocabulary, vectors, codes)):
        Path(folder, name).write_bytes(content)
    return IndexManifest.read(folder)


def contents(index: WordIndex) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an index, by name, and last its manifest, which describes them."""
    files = []
    for name, content in _parts(index):
        digest = hashlib.sha256(content).hexdigest()
        files.append({"path": name, "bytes": len(content), "sha256": digest})
        yield name, content
    yield MANIFEST, replace(index.manifest, files=tuple(files)).to_json().encode()


def _parts(index: WordIndex) -> Iterator[tuple[str, bytes]]:
    vocabulary = index.vocabulary
    table = pa.table({"word": vocabulary.terms, "hash": pa.array(vocabulary.hashes)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    yield _WORDS, sink.getvalue().to_pybytes()
    for name, array in (
        (_SLOTS, vocabulary.slots),
        (_VECTORS, np.ascontiguousarray(index.vectors, dtype="<f4")),
        (_CODES, np.ascontiguousarray(index.codes, dtype="<u8")),
    ):
        stream = io.BytesIO()
        np.save(stream, array)
        yield name, stream.getvalue()


def open_index(folder: str, digest: str | None = None) -> WordIndex:
    """Verify an index and map it into memory; raise ArtefactError if that is impossible."""
    manifest = IndexManifest.read(folder, digest)
    verify(folder, manifest.files)
    try:
        with pa.memory_map(f"{folder}/{_WORDS}") as source:
            words = pa.ipc.open_file(source).read_all()
        slots, vectors, codes = (
            np.load(f"{folder}/{name}", mmap_mode="r", allow_pickle=False)
            for name in (_SLOTS, _VECTORS, _CODES)
        )
        # One chunk each; putting chunks together would copy them out of the map.
        terms, hashes = (words[name].chunk(0) for name in ("word", "hash"))
        if not _is_table(terms, hashes, slots):
            raise ValueError
        vocabulary = Vocabulary.mapped(terms, hashes.to_numpy(), slots)
    except (OSError, ValueError, KeyError, IndexError, pa.ArrowException):
        raise ArtefactError("holds files that cannot be read; build it again") from None
    count = manifest.words
    kinds = [
        (vectors, "<f4", (count, manifest.dimensions)),
        (codes, "<u8", (count, manifest.bits // 64)),
        (slots, "<i4", slots.shape[:1]),
    ]
    if len(vocabulary) != count or any(
        (array.dtype, array.shape) != (np.dtype(kind), shape) for array, kind, shape in kinds
    ):
        raise ArtefactError(f"holds files of other sizes than its {MANIFEST} says; build it again")
    return WordIndex(manifest, vocabulary, vectors.view(np.ndarray), codes.view(np.ndarray))


def _pair(ends: list[str]) -> tuple[str, str]:
    low, high = ends
    if not isinstance(ends, list):
        raise TypeError
    return low, high


def _is_table(terms: pa.Array, hashes: pa.Array, slots: npt.NDArray[np.int32]) -> bool:
    """Return whether a look-up in these arrays stays within them, and ends."""
    kinds = (pa.large_string(), pa.uint64())
    if (terms.type, hashes.type) != kinds or terms.null_count or hashes.null_count:
        return False
    terms.validate(full=True)
    whole = slots.dtype == np.dtype("<i4") and slots.ndim == 1
    size = len(slots)
    return (
        whole
        and 0 < len(terms) < size
        and size & (size - 1) == 0
        and int(slots.min()) == -1
        and np.array_equal(np.sort(slots[slots >= 0]), np.arange(len(terms)))
    )
