"""Building candidates for sentence-private releases from public documents."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quietcorpus.evaluation.embeddings import DepthQuality, depth_quality
from quietcorpus.indexes.documents.candidates import (
    LARGEST_PROJECTION,
    TEXT,
    Candidates,
    CandidatesManifest,
    save,
)
from quietcorpus.indexes.documents.recoder import WIDTHS, Recoder, means
from quietcorpus.indexes.documents.training import discriminants, train
from quietcorpus.indexes.folder import MANIFEST
from quietcorpus.indexes.tokens.segmentation import LANGUAGES, NAME
from quietcorpus.indexes.tokens.written_language import FREQUENT_WORDS, FrequentWords
from quietcorpus.mechanisms.noise.exponential import LARGEST_SET
from quietcorpus.mechanisms.sentences.deep_candidate import cosines, on_grid
from quietcorpus.transforms.artefacts.encoder import EncoderSource
from quietcorpus.transforms.errors import InputError, require_installed, shown
from quietcorpus.transforms.reading.documents import Corpus

from ..environment.version import quietcorpus_version
from ..storage import places
from ..storage.output import result_folder
from ..storage.places import absolute
from ..terminal.progress import Steps
from . import encoding
from .public_documents import PublicDocuments, chosen

_LOGGER = logging.getLogger("quietcorpus")
_HELD = 5  # candidates for each held-out document, which serves to measure alone
_LEAST_HELD = 50
_BOX = 0.125, 0.875
_COSINES = 0.5, 0.99
_PAIRS = 2_000  # public sentences whose cosines with all candidates are measured
_VARIED = 50_000  # public sentences whose covariance is estimated
_STARTS = 4  # of k-means
_PROJECTION_SPREAD = 1 << 10


def build(
    source: str,
    output: str,
    *,
    text: str,
    id: str | None,
    keep: Sequence[str],
    keep_text: bool,
    provenance: str,
    encoder: str,
    language: str,
    candidates: int,
    clusters: int,
    projections: int,
    least_sentences: int,
    most_sentences: int,
    seed: int,
    progress: bool,
) -> CandidatesManifest:
    """Build candidates from the documents at `source`; raises InputError for what can be fixed.

    Encoding runs where `encoding.session` says, and training where Ray encodes. The columns `id`
    and `keep`, and the text if it is kept, name the candidates, and change nothing else.
    """
    source, output = absolute(source), absolute(output)
    wanted = candidates + max(candidates // _HELD, _LEAST_HELD)
    _check(provenance, candidates, clusters, wanted)
    if language not in LANGUAGES:
        raise InputError(
            f"language: {shown(language)} is not one that the splitter {NAME} knows; give one of "
            f"{', '.join(LANGUAGES)}"
        )
    _check_names(keep, keep_text=keep_text)
    require_installed("sklearn", key="quietcorpus", extra="sentences")
    encoding.require_installed_ray()
    with result_folder(output, last=MANIFEST) as folder:
        found = EncoderSource.resolve("encoder", encoder)
        for doubt in found.doubts_of(language):
            _LOGGER.warning("%s", doubt)
        generator = np.random.default_rng(seed)
        corpus = Corpus(source, text, id, tuple(keep))
        steps = Steps(6, bar=progress)
        with steps.step("reading and choosing documents"):
            documents = chosen(corpus, language, least_sentences, most_sentences, wanted, generator)
        texts = documents.texts.slice(0, candidates) if keep_text else None
        names = _names(documents.columns.slice(0, candidates), id, keep, texts)
        learnt = _learn(documents, found, candidates, clusters, seed, steps)
        with steps.step("measuring depth"):
            derived = _derive(learnt, documents.offsets, candidates, projections, generator)
        manifest = CandidatesManifest(
            provenance="public",
            guarantee=None,
            source={
                "pattern": places.without_folders(source),
                "documents": wanted,
                **({} if names is None else {"id": id, "keep": list(keep)}),
                **({TEXT: True} if keep_text else {}),
            },
            encoder={
                "name": places.without_folders(found.name),
                "sha256": found.digest,
                "dimensions": learnt.embeddings.shape[1],
            },
            splitter=NAME,
            language=language,
            least_sentences=least_sentences,
            most_sentences=most_sentences,
            candidates=candidates,
            projections=projections,
            cosines=derived.cosines,
            seed=seed,
            measures=learnt.measures | {"depth": derived.depth} | _frequent(documents.texts),
            builder=f"quietcorpus {quietcorpus_version()}",
        )
        made = Candidates(manifest, recoder=learnt.recoder, documents=names, **derived.arrays)
        with steps.step("writing"):
            return save(folder, made)


class _Learnt(NamedTuple):
    """Lessons of public documents: embeddings of their sentences, their means, a recoder."""

    embeddings: npt.NDArray[np.float32]
    means: npt.NDArray[np.float64]
    recoder: Recoder
    measures: dict[str, Any]


def _learn(
    documents: PublicDocuments,
    encoder: EncoderSource,
    candidates: int,
    clusters: int,
    seed: int,
    steps: Steps,
) -> _Learnt:
    """Encode the sentences, and train a recoder to tell clusters of documents apart."""
    opened = encoder.open()  # fails here, rather than in Ray's workers, if it cannot be loaded
    sentences, offsets = documents.sentences, documents.offsets
    with encoding.session(encoder, len(sentences)) as ray:
        with steps.step("encoding sentences", len(sentences), "sentences") as display:
            embeddings = encoding.encode(ray, encoder, opened, sentences, display.advance)
        with steps.step("finding clusters"):
            whole = means(embeddings, offsets)
            groups, quality = _clusters(whole, clusters, seed)
        held = np.arange(len(whole)) >= candidates
        known = embeddings, offsets, groups, held, seed
        with steps.step("training the recoder"):
            recoder, training = (
                train(*known) if ray is None else ray.get(ray.remote(train).remote(*known))
            )
    return _Learnt(embeddings, whole, recoder, {"training": asdict(training), "clusters": quality})


class _Derived(NamedTuple):
    """The numbers and arrays of candidates, and how well depth finds them, raw and recoded."""

    cosines: tuple[float, float]
    depth: dict[str, dict[str, Any]]
    arrays: dict[str, npt.NDArray[Any]]


def _derive(
    learnt: _Learnt,
    offsets: npt.NDArray[np.int64],
    candidates: int,
    projections: int,
    generator: np.random.Generator,
) -> _Derived:
    """Compute the arrays of the candidates, the first of the documents."""
    embeddings, own = learnt.embeddings, slice(0, candidates)
    codes = learnt.recoder.recode(embeddings)
    recoded = np.rint(means(codes, offsets))[own]
    projected = _directions(projections, WIDTHS[-1], generator)
    centre = embeddings.astype(np.float64).mean(axis=0)
    low, high = np.quantile(embeddings, _BOX, axis=0).astype(np.float64)
    released = learnt.means[own].astype(np.float32)
    raw = _raw_quality(embeddings, centre, offsets, candidates, projections, generator)
    ours = depth_quality(codes, recoded, offsets, candidates, projected)
    between = _cosines(embeddings, centre, released, generator)
    sample = generator.choice(len(embeddings), min(_VARIED, len(embeddings)), replace=False)
    directions, radii, lifts = discriminants(embeddings, centre, learnt.means, sample)
    arrays = {
        "embeddings": released,
        "centre": centre,
        "box": np.stack([low, high - low]),
        "projections": projected,
        "recoded": recoded,
        "directions": directions,
        "radii": radii,
        "lifts": lifts,
    }
    return _Derived(between, {"raw": asdict(raw), "recoded": asdict(ours)}, arrays)


def _frequent(texts: pa.Array) -> dict[str, dict[str, float]]:
    """Return the entry of the documents' most frequent words, if they have words enough."""
    found = FrequentWords.of(texts)
    return {FREQUENT_WORDS: found.record} if found else {}


def _check(provenance: str, candidates: int, clusters: int, wanted: int) -> None:
    """Raise InputError for documents that are not public, or for numbers that do not fit."""
    if provenance != "public":
        raise InputError(
            "provenance: candidates are released as they are, and so is what their encoder "
            "learnt; build them from public documents, with an encoder of public data"
        )
    if candidates > LARGEST_SET:
        raise InputError(f"candidates: {shown(candidates)} is too many; give at most {LARGEST_SET}")
    if clusters >= wanted:
        raise InputError(
            f"clusters: {shown(clusters)} is not less than the number of documents, {wanted}"
        )


def _check_names(keep: Sequence[str], *, keep_text: bool) -> None:
    """Raise InputError for a column that `documents.parquet` would have twice."""
    own = ("candidate", "id", TEXT) if keep_text else ("candidate", "id")
    for name in keep:
        if name in own or keep.count(name) > 1:
            raise InputError(
                f"keep: {shown(name)} is a name that candidates use themselves, or is given twice"
            )


def _names(
    columns: pa.Table, id: str | None, keep: Sequence[str], texts: pa.Array | None
) -> pa.Table | None:
    """Return what names each candidate; None if nothing does. Raises InputError for equal ids."""
    if id is None and not keep and texts is None:
        return None
    named = {"candidate": pa.array(range(len(columns)), pa.int32())}
    if id is not None:
        ids = columns[id]
        if ids.null_count or pc.count_distinct(ids).as_py() < len(ids):
            raise InputError(
                f"id: the column {shown(id)} lacks a value, or repeats one, in the documents that "
                "were chosen; name another column"
            )
        named["id"] = ids
    own = {} if texts is None else {TEXT: texts}
    return pa.table(named | {name: columns[name] for name in keep} | own)


def _clusters(
    documents: npt.NDArray[np.float64], clusters: int, seed: int
) -> tuple[npt.NDArray[np.int64], dict[str, Any]]:
    """Assign each document to a cluster, and measure how good the clusters are."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    different = len(np.unique(documents, axis=0))
    if different <= clusters:
        raise InputError(
            f"source: only {different} of the documents differ, too few for {clusters} clusters; "
            "give others, or fewer `clusters`"
        )
    # FAISS's k-means computes in float32, and gave other clusters for other processors.
    found = KMeans(clusters, n_init=_STARTS, random_state=seed).fit_predict(documents)
    sizes = np.bincount(found, minlength=clusters)
    quality = {
        "clusters": clusters,
        "smallest": int(sizes.min()),
        "largest": int(sizes.max()),
        "silhouette": float(
            silhouette_score(documents, found, sample_size=2_000, random_state=seed)
            if len(documents) > 2_000
            else silhouette_score(documents, found)
        ),
    }
    return found.astype(np.int64), quality


def _directions(
    number: int, dimensions: int, generator: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Draw directions in whole numbers: uniform on the sphere, up to rounding and length."""
    drawn = np.rint(generator.standard_normal((number, dimensions)) * _PROJECTION_SPREAD)
    return np.clip(drawn, -LARGEST_PROJECTION, LARGEST_PROJECTION)


def _raw_quality(
    embeddings: npt.NDArray[np.float32],
    centre: npt.NDArray[np.float64],
    offsets: npt.NDArray[np.int64],
    candidates: int,
    projections: int,
    generator: np.random.Generator,
) -> DepthQuality:
    """Measure what depth finds without a recoder."""
    sentences = on_grid(embeddings - centre).astype(np.float64)
    directions = _directions(projections, embeddings.shape[1], generator)
    own = np.rint(means(sentences, offsets))[:candidates]
    return depth_quality(sentences, own, offsets, candidates, directions)


def _cosines(
    embeddings: npt.NDArray[np.float32],
    centre: npt.NDArray[np.float64],
    released: npt.NDArray[np.float32],
    generator: np.random.Generator,
) -> tuple[float, float]:
    """Return the two cosines between which `similarity` tells sentences and candidates apart."""
    some = generator.choice(len(embeddings), min(_PAIRS, len(embeddings)), replace=False)
    between = cosines(on_grid(embeddings[some] - centre), on_grid(released - centre))
    low, high = np.quantile(between, _COSINES)
    return float(low), float(high)
