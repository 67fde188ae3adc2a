"""Building a word index from vectors, and showing one."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import IO, Any, Literal, cast

import numpy as np
from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from quietcorpus.evaluation.distances import euclidean_distances, hamming_distances
from quietcorpus.indexes import binarisation
from quietcorpus.indexes.euclidean import LONGEST_VECTOR
from quietcorpus.indexes.folder import MANIFEST
from quietcorpus.indexes.tokenizer import NAME
from quietcorpus.indexes.vectors import VectorsError, WordVectors, reachable, read
from quietcorpus.indexes.vocabulary import Vocabulary
from quietcorpus.indexes.word_index import EUCLIDEAN, HAMMING, IndexManifest, WordIndex, save
from quietcorpus.pipelines.artefacts.distances import summary
from quietcorpus.pipelines.card.parameters import disagree
from quietcorpus.pipelines.environment.version import quietcorpus_version
from quietcorpus.pipelines.storage import places
from quietcorpus.pipelines.storage.output import Output
from quietcorpus.pipelines.storage.places import absolute
from quietcorpus.transforms.artefacts.files import FileSource
from quietcorpus.transforms.artefacts.word_index import IndexSource
from quietcorpus.transforms.errors import InputError, client_errors

_SHOWN, _NEIGHBOURS = 5, 5
_GUARANTEE_KEYS = ("definition", "unit", "parameters", "statement")


def build(
    source: str,
    output: str,
    *,
    provenance: Literal["public", "private"],
    guarantee: str | None,
    bits: int,
    seed: int,
) -> IndexManifest:
    """Build an index of the vectors at `source`; raises InputError for what a person can mend.

    `guarantee` is the path of a JSON file (a release's card will do) that states the guarantee
    under which private vectors were made.
    """
    FileSystems.set_options(PipelineOptions([]))
    source, output = absolute(source), absolute(output)
    promised = _promise(provenance, guarantee)
    if bits < 1 or bits % 64:
        raise InputError(f"bits: {bits} is not allowed; give a positive multiple of 64")
    if seed < 0:
        raise InputError(f"seed: {seed} is not allowed; give a whole number from 0 on")
    Output(output).require_writable()
    found = FileSource.resolve("source", source)
    vectors = _read(source)
    # `not ... <=`, because NaN would pass a test with `>`.
    if not np.linalg.norm(vectors.values.astype(np.float64), axis=1).max() <= LONGEST_VECTOR:
        raise InputError(
            f"source: {source} holds vectors longer than {LONGEST_VECTOR:g}; scale them down"
        )
    origin = {"uri": places.without_folders(source), "sha256": found.digest}
    with Output(output).folder(last=MANIFEST) as folder:
        try:
            made = make(vectors, provenance, promised, origin, bits=bits, seed=seed)
        except ValueError as error:  # its message has no words of the vectors' file
            raise InputError(f"source: {source} {error}") from None
        return save(folder, made.manifest, made.vocabulary, made.vectors, made.codes)


def make(
    vectors: WordVectors,
    provenance: Literal["public", "private"],
    guarantee: dict[str, Any] | None,
    source: Mapping[str, str],
    *,
    bits: int = 256,
    seed: int = 1,
) -> WordIndex:
    """Make an index of vectors.

    `source` names their file, as `uri` and `sha256`. Raises ValueError for vectors from which no
    codes can be made.
    """
    vocabulary = Vocabulary(vectors.words)
    try:
        encoder = binarisation.train(vectors.values, bits, seed)
    except ValueError as error:
        raise ValueError(f"cannot be made into codes: {error}") from None
    codes = encoder.encode(vectors.values)
    distances = {
        EUCLIDEAN: summary(euclidean_distances(vectors.values, seed)),
        HAMMING: summary(hamming_distances(codes)),
    }
    if distances[HAMMING]["mean"] == "0.0":
        raise ValueError("holds too few or too similar words to make codes of")
    manifest = IndexManifest(
        provenance=provenance,
        guarantee=guarantee,
        source=source,
        words=len(vocabulary),
        dimensions=vectors.values.shape[1],
        bits=bits,
        tokenizer=NAME,
        seed=seed,
        measures=asdict(binarisation.quality(vectors.values, codes, encoder, seed)),
        distances=distances,
        builder=f"quietcorpus {quietcorpus_version()}",
    )
    return WordIndex(manifest, vocabulary, vectors.values, codes)


def show(uri: str, words: list[str]) -> list[str]:
    """Return the lines that `index show` prints; raises InputError for an unusable index."""
    FileSystems.set_options(PipelineOptions([]))
    index = IndexSource.resolve("index", absolute(uri)).open()
    manifest = asdict(index.manifest)
    files = manifest.pop("files")
    lines = [f"{key:<13} {_shown(value)}" for key, value in manifest.items() if value is not None]
    lines += [
        f"{file['path']:<13} {file['bytes']:,} bytes, sha256 {file['sha256']}" for file in files
    ]
    norms = np.linalg.norm(index.vectors, axis=1)
    quantiles = np.quantile(norms, [0, 0.05, 0.5, 0.95, 1])
    lines.append(f"{'norms':<13} least, 5 %, median, 95 %, largest: {_numbers(quantiles)}")
    return [*lines, "", *_neighbours(index, words)]


def _neighbours(index: WordIndex, words: list[str]) -> Iterator[str]:
    """Yield the nearest words of each given word, by either metric."""
    terms = index.vocabulary.terms.to_pylist()
    for word in words or terms[:: max(1, len(terms) // _SHOWN)][:_SHOWN]:
        if word not in terms:
            raise InputError(f"words: {word!r} is not in the index")
        row = terms.index(word)
        distances = np.linalg.norm(index.vectors - index.vectors[row], axis=1)
        bits = np.bitwise_count(index.codes ^ index.codes[row]).sum(axis=1)
        for metric, values in (("Euclidean", distances), ("Hamming", bits)):
            nearest = np.argsort(values, kind="stable")
            nearest = nearest[nearest != row][:_NEIGHBOURS]
            found = ", ".join(f"{terms[i]} {values[i]:.3g}" for i in nearest)
            yield f"{word:<13} {metric}: {found}"


def _promise(provenance: str, guarantee: str | None) -> dict[str, Any] | None:
    """Read the guarantee under which private vectors were made."""
    if (provenance == "private") != (guarantee is not None):
        raise InputError(
            "guarantee: give one for `provenance=private`, and for that alone: the guarantee "
            "under which the vectors were made, as JSON (a release.json will do)"
        )
    if guarantee is None:
        return None
    try:
        with open(guarantee, encoding="utf-8") as stream:
            content = json.load(stream)
        content = content.get("guarantee", content)
        promised = {key: content[key] for key in _GUARANTEE_KEYS}
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        promised = {}
    texts = [promised.get(key) for key in _GUARANTEE_KEYS if key != "parameters"]
    if not promised.get("parameters") or not all(isinstance(t, str) and t.strip() for t in texts):
        raise InputError(
            f"guarantee: {guarantee} is not a JSON file that has texts for definition, unit and "
            "statement, and parameters (a release.json will do)"
        )
    if disagree(promised["parameters"]):
        raise InputError(
            f"guarantee: {guarantee} has parameters with rationals (`epsilon_exact`), as a "
            "release.json has, but its decimals are not those rationals rounded up, or some of its "
            "keys are missing or unknown"
        )
    return promised


def _read(source: str) -> WordVectors:
    folder, name = posixpath.split(source)

    def opened(sibling: str) -> IO[bytes]:
        uri = f"{folder}/{sibling}"
        try:
            stream = FileSystems.open(uri, compression_type=CompressionTypes.UNCOMPRESSED)
        except (OSError, BeamIOError):
            raise FileNotFoundError(uri) from None
        return cast(IO[bytes], stream)

    with client_errors(f"source: {source} cannot be read; check the path"):
        try:
            return reachable(read(name, opened))
        except VectorsError as error:
            raise InputError(f"source: {source} {error}") from None


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(inner)}" for key, inner in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _numbers(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)
