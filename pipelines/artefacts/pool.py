"""Building a pool of public texts, for releases by votes."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.indexes import lsa
from quietcorpus.indexes.folder import MANIFEST
from quietcorpus.indexes.lsa import Lsa
from quietcorpus.indexes.pool import MOST_TEXTS, Pool, PoolManifest, save
from quietcorpus.indexes.tokenizers import UNICODE_WORDS, Tokenizer
from quietcorpus.mechanisms.deep_candidate import UNIT, on_grid
from quietcorpus.pipelines.artefacts import encoding
from quietcorpus.pipelines.artefacts.public_documents import texts
from quietcorpus.pipelines.environment.version import quietcorpus_version
from quietcorpus.pipelines.storage import places
from quietcorpus.pipelines.storage.output import Output
from quietcorpus.pipelines.storage.places import absolute
from quietcorpus.pipelines.terminal.progress import Steps
from quietcorpus.transforms.artefacts.encoder import Encoder, EncoderSource
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus

NEAR = 0.95
"""The cosine from which on two texts are joined: above it, they differ in a few words."""
_LEAST = NEAR * UNIT**2  # of the product of two vectors on the grid
_LOGGER = logging.getLogger("quietcorpus")
_CHUNK = 256  # texts that are compared with all earlier ones at a time


def build(
    source: str,
    output: str,
    *,
    text: str,
    provenance: str,
    encoder: str,
    progress: bool,
    tokenizer: Tokenizer = UNICODE_WORDS,
    language: str | None = None,
) -> PoolManifest:
    """Build a pool of the documents at `source`; raises InputError for what can be mended.

    A model encodes where `encoding.session` says.
    """
    source, output = absolute(source), absolute(output)
    if provenance != "public":
        raise InputError(
            "provenance: the texts of a pool are released as they are, chosen by what its encoder "
            "learnt; build it from public documents, with an encoder of public data"
        )
    if encoder != lsa.NAME and tokenizer != UNICODE_WORDS:
        raise InputError(f"tokenizer: {encoder} finds its own words; leave it out, or take lsa")
    if encoder != lsa.NAME:
        encoding.require_installed_ray()
    Output(output).require_writable()
    # A model that cannot be had is told before the documents are read.
    model = EncoderSource.resolve("encoder", encoder) if encoder != lsa.NAME else None
    for doubt in model.doubts_of(language) if model else ():
        _LOGGER.warning("%s", doubt)
    steps = Steps(3 if model is None else 4, bar=progress)
    with steps.step("reading texts"):
        documents = [one for own in texts(Corpus(source, text)) for one in own.to_pylist()]
        listed, empty = _distinct(documents)
    if not listed:
        raise InputError(f"source: {source} has no text; give documents to choose from")
    if len(listed) > MOST_TEXTS:
        raise InputError(
            f"source: {source} has {len(listed):,} different texts; give at most {MOST_TEXTS:,}, "
            "such as a sample"
        )
    opened = _fitted(source, listed, tokenizer) if model is None else model.open()
    vectors = on_grid(_encoded(opened, model, listed, steps))
    if model is None:  # in a small pool, its own encoder has all texts on a subject near each other
        kept = list(range(len(listed)))
    else:
        with steps.step("comparing texts", len(vectors), "texts") as display:
            kept = apart(vectors, display.show)
    manifest = PoolManifest(
        provenance="public",
        guarantee=None,
        source={"pattern": places.without_folders(source), "documents": len(documents)},
        encoder=_described(opened, model),
        texts=len(kept),
        left_out={
            "empty": empty,
            "equal": len(documents) - empty - len(listed),
            "near": len(listed) - len(kept),
        },
        near=NEAR if model else None,
        builder=f"quietcorpus {quietcorpus_version()}",
        language=language,
    )
    chosen = pa.array([listed[number] for number in kept], pa.large_string())
    with steps.step("writing"), Output(output).folder(last=MANIFEST) as folder:
        own = opened if isinstance(opened, Lsa) else None
        return save(folder, Pool(manifest, chosen, vectors[kept], own))


def _fitted(source: str, listed: Sequence[str], tokenizer: Tokenizer) -> Lsa:
    """Make the encoder that a pool of these texts carries; raises InputError for too few."""
    try:
        return lsa.fit(pa.array(listed, pa.large_string()), tokenizer=tokenizer)
    except lsa.TooFewTexts as error:
        raise InputError(
            f"source: {source} is too small for the encoder {lsa.NAME}: {error}; give more "
            "documents, or another encoder"
        ) from None


def _described(opened: Encoder | Lsa, model: EncoderSource | None) -> Mapping[str, Any]:
    """Return what the pool's manifest says of the encoder."""
    if isinstance(opened, Lsa):
        return opened.description
    assert model is not None
    return {
        "name": places.without_folders(model.name),
        "sha256": model.digest,
        "dimensions": opened.dimensions,
    }


def _distinct(documents: Sequence[str]) -> tuple[list[str], int]:
    """Return the first of equal texts, in order, and the number of empty ones."""
    first: dict[str, str] = {}
    empty = 0
    for one in documents:
        plain = " ".join(unicodedata.normalize("NFKC", one).casefold().split())
        if plain:
            first.setdefault(plain, one)
        else:
            empty += 1
    return list(first.values()), empty


def _encoded(
    opened: Encoder | Lsa, model: EncoderSource | None, listed: Sequence[str], steps: Steps
) -> npt.NDArray[np.float32]:
    """Return the embedding of every text, float32 (n, d), of its beginning if it is long."""
    with (
        encoding.session(model, len(listed)) as ray,
        steps.step("encoding texts", len(listed), "texts") as display,
    ):
        return encoding.encode(ray, model, opened, listed, display.advance)


def apart(
    vectors: npt.NDArray[np.float32], on_compared: Callable[[int], object] = lambda _: None
) -> list[int]:
    """Return the numbers of vectors on the grid, (n, d), that are near no earlier one returned.

    `on_compared` is told how many are compared.
    """
    kept: list[int] = []
    own = np.empty_like(vectors)
    for start in range(0, len(vectors), _CHUNK):
        chunk = vectors[start : start + _CHUNK]
        taken = (np.matmul(chunk, own[: len(kept)].T) >= _LEAST).any(axis=1)
        within: npt.NDArray[np.bool_] = np.matmul(chunk, chunk.T) >= _LEAST
        for number in range(len(chunk)):
            if not taken[number]:
                own[len(kept)] = chunk[number]
                kept.append(start + number)
                taken |= within[number]
        on_compared(start + len(chunk))
    return kept
