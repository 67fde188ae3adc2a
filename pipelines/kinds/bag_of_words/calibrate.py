"""The choice of a compression map and its number of bins, on documents that are not private.

The documents are public texts, or draws from a topic model around a private histogram. Releases of
them are simulated, reconstructed as `quietcorpus reconstruct` does, and compared with the documents
by topics. Nothing private is read, and nothing is released.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse as sp

from quietcorpus.evaluation import topics
from quietcorpus.evaluation.calibration import Choice, choose, span
from quietcorpus.evaluation.classification import counted
from quietcorpus.evaluation.topics import agreement, fit_topics, top_terms
from quietcorpus.indexes.maps.compression import Method, bins_of
from quietcorpus.indexes.tokens.tokenizers import Tokenizer
from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.accounting.factors import Prior
from quietcorpus.mechanisms.bags.decompression import Decompression
from quietcorpus.mechanisms.noise.noisy_counts import decay_of
from quietcorpus.transforms.artefacts.files import FileSource
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.vocabulary import load

from ...card.verify import verify
from ...prepare.public_documents import texts
from ...storage import files as storage
from ...storage import layout
from ...storage.places import absolute
from ...terminal.progress import Steps, table
from .reconstruct.fit import SavedFactors, fit, workers
from .reconstruct.reconstruct import drawn, stretch_of

TOPICS = 20
_LEAST_DOCUMENTS = 100
Counts = npt.NDArray[np.int64]


class DocumentSource(Protocol):
    """The source of a run's documents.

    Attributes:
        meant: the documents that a comparison is valid for, in words.
        terms: the number of terms, V.
    """

    @property
    def meant(self) -> str: ...

    @property
    def terms(self) -> int: ...

    def counts(self, run: int) -> sp.csr_array:
        """Return the counts of a run's documents, (n, V)."""


def _refuse_few(key: str, documents: int) -> None:
    if documents < _LEAST_DOCUMENTS:
        raise InputError(
            f"{key}: {documents} documents have no topics to speak of; give {_LEAST_DOCUMENTS} "
            "or more"
        )


@dataclass(frozen=True)
class PublicTexts:
    """The same public documents for every run."""

    documents: sp.csr_array

    meant = "for these documents; how like them yours are, it does not say"

    @classmethod
    def read(
        cls, corpus: Corpus, vocabulary: Vocabulary, wanted: int | None, seed: int
    ) -> PublicTexts:
        """Read all documents, or a sample of `wanted`; raises InputError if there are too few."""
        tokens = vocabulary.tokenizer.tokenize(pa.concat_arrays(list(texts(corpus))))
        offsets, ids = vocabulary.look_up(tokens)
        counts = counted(offsets, ids, len(vocabulary))
        if counts.nnz == 0:
            raise InputError("source: no document has a word of the vocabulary")
        size = counts.shape[0]
        _refuse_few("source", wanted or size)
        if wanted is None or wanted == size:
            return cls(counts)
        if wanted > size:
            raise InputError(
                f"source: {corpus.pattern} has {size:,} documents, and {wanted:,} are asked for; "
                "give more documents, or ask for less"
            )
        chosen = np.random.default_rng(seed).choice(size, wanted, replace=False)
        return cls(counts[np.sort(chosen)])

    @property
    def terms(self) -> int:
        """Return the number of terms, V."""
        return int(self.documents.shape[1])

    def counts(self, run: int) -> sp.csr_array:
        """Return the counts of all documents, which are the same for every run."""
        return self.documents


@dataclass(frozen=True)
class DrawnDocuments:
    """Documents from a topic model around a histogram, drawn anew for every run.

    Attributes:
        weights: the terms' weights, int64 (V,), none negative.
        length: the mean length of the histogram's documents.
        documents: the number of documents to draw.
        seed: the seed of all runs.
    """

    weights: Counts
    length: float
    documents: int
    seed: int

    meant = "for topics around this histogram; how like them yours are, it does not say"

    @classmethod
    def of(cls, path: str, documents: int | None, seed: int) -> DrawnDocuments:
        """Read the weights of a release; raises InputError for one that has none."""
        card = verify(path)
        place = f"{absolute(path)}/{layout.VOCABULARY}"
        if not any(file.path == layout.VOCABULARY for file in card.files):
            raise InputError(f"histogram: {path} has no vocabulary.parquet, and so no histogram")
        weights = storage.read_table(place)["weight"]
        if weights.null_count:
            raise InputError(
                f"histogram: {path} has a vocabulary without weights; give a release of "
                "`kind: histogram`, or one with `mechanism.histogram_epsilon`"
            )
        counts, size = weights.to_numpy(), card.documents
        if counts.sum() <= 0:  # after clipping, noise alone would pass for words
            raise InputError(f"histogram: {path} counts no words")
        _refuse_few("histogram", documents or size)
        return cls(np.maximum(counts, 0), counts.sum() / size, documents or size, seed)

    @property
    def terms(self) -> int:
        """Return the number of terms, V."""
        return len(self.weights)

    def counts(self, run: int) -> sp.csr_array:
        """Draw documents in `TOPICS` topics, with the mean length of the histogram's."""
        generator, weights = np.random.default_rng([self.seed, run]), self.weights.astype(float)
        return topics.draw(weights, self.documents, self.length, TOPICS, generator).counts


def documents_of(
    source: str | None,
    vocabulary: str | None,
    histogram: str | None,
    *,
    tokenizer: Tokenizer,
    text: str,
    documents: int | None,
    seed: int,
) -> DocumentSource:
    """Return public documents, or draws around a histogram; raises InputError for both or neither.

    Places are absolute.
    """
    if histogram is not None:
        if source is not None or vocabulary is not None:
            raise InputError("histogram: stands in place of `source` and `vocabulary`; leave them")
        return DrawnDocuments.of(histogram, documents, seed)
    if source is None or vocabulary is None:
        raise InputError("source: give public documents and a `vocabulary`, or a `histogram`")
    words = load(FileSource.resolve("vocabulary", vocabulary), tokenizer)
    return PublicTexts.read(Corpus(source, text), words, documents, seed)


TOP_TERMS = 20
FACTORS = 30
_SWEEPS, _REFERENCES = 100, 3
_TIMED_DOCUMENTS, _TIMED_SHARE = 200, 20


@dataclass(frozen=True)
class SimulationSettings:
    """The settings of a comparison.

    Attributes:
        epsilons: the epsilons of the documents, divided by N.
        bins: the numbers of bins K.
        methods: the maps; `none` has a bin for every term.
        histogram_epsilon: the epsilon of the histogram, divided by N.
        runs: the number of runs of each setting, all with fresh noise.
        seed: the seed of the noise.
    """

    epsilons: Sequence[Fraction]
    bins: Sequence[int]
    methods: Sequence[Method]
    histogram_epsilon: Fraction
    runs: int
    seed: int

    def maps(self, terms: int) -> list[tuple[Method, int]]:
        """Return the maps that are possible over `terms` terms; raises InputError for none."""
        possible = [size for size in self.bins if size <= terms]
        if not possible and any(method.sized for method in self.methods):
            raise InputError(
                f"bins: {min(self.bins):,} is more than the {terms:,} words of the vocabulary"
            )
        sized = [(method, size) for method in self.methods if method.sized for size in possible]
        whole = dict.fromkeys((method, terms) for method in self.methods if not method.sized)
        return [*sized, *whole]


class Recovery(NamedTuple):
    """The recovery of topics at one epsilon.

    Attributes:
        epsilon: the epsilon of the documents, divided by N.
        maps: the method and number of bins of each.
        scores: float64 (maps, runs): mean best-match Jaccard of topics' top terms.
        choice: the best map, and those that may be as good.
    """

    epsilon: Fraction
    maps: Sequence[tuple[Method, int]]
    scores: npt.NDArray[np.float64]
    choice: Choice


class Calibrated(NamedTuple):
    """The findings of a calibration.

    Attributes:
        meant: the documents that the choices are valid for, in words.
        ceiling: the score of the documents' own topics, against further fits of them.
        floor: the score of documents without topics, redrawn from the frequencies.
        outcomes: one for each epsilon.
    """

    meant: str
    ceiling: float
    floor: float
    outcomes: list[Recovery]


def calibrate(
    documents: DocumentSource, settings: SimulationSettings, *, progress: bool
) -> Calibrated:
    """Try every map at every epsilon; raises InputError if no map is possible."""
    maps = settings.maps(documents.terms)
    shape = len(settings.epsilons), len(maps), settings.runs
    scores, bounds = np.zeros(shape), np.zeros((2, settings.runs))

    def runs() -> Iterator[None]:
        compared = None
        for run in range(settings.runs):
            counts = documents.counts(run)
            if compared is None or counts is not compared.counts:
                compared = _Compared(counts)
            bounds[:, run] = compared.ceiling, compared.floor(run)
            yield
            for first, epsilon in enumerate(settings.epsilons):
                for second, (method, bins) in enumerate(maps):
                    generator = np.random.default_rng([settings.seed, run, first, second])
                    rates = float(settings.histogram_epsilon), float(epsilon)
                    found = _simulated(counts, method, bins, *rates, generator)
                    scores[first, second, run] = compared.score(found, run)
                    yield

    steps = Steps(2, bar=progress)
    with steps.step("timing some documents"):
        seconds = _timed(documents.counts(0), settings, maps)
    steps.expect(seconds, "some of the documents")
    total = settings.runs * (1 + len(settings.epsilons) * len(maps))
    for _ in steps.each(runs(), total, "simulating releases", "releases"):
        pass
    ceiling, floor = bounds.mean(axis=1)
    outcomes = [
        Recovery(epsilon, maps, own, choose(own))
        for epsilon, own in zip(settings.epsilons, scores, strict=True)
    ]
    return Calibrated(documents.meant, ceiling, floor, outcomes)


def _timed(
    counts: sp.csr_array, settings: SimulationSettings, maps: Sequence[tuple[Method, int]]
) -> float:
    """Return the seconds that all releases may take, by those of some documents at one epsilon."""
    some = counts[: max(_TIMED_DOCUMENTS, counts.shape[0] // _TIMED_SHARE)]
    rates = float(settings.histogram_epsilon), float(settings.epsilons[-1])

    def once(method: Method, bins: int) -> None:
        _topics(_simulated(some, method, bins, *rates, np.random.default_rng(1)), 0)

    once(*min(maps, key=lambda one: one[1]))  # compiles and loads
    begun = time.perf_counter()
    for method, bins in maps:
        once(method, bins)
    share = float(some.shape[0] / counts.shape[0])
    return (time.perf_counter() - begun) / share * settings.runs * len(settings.epsilons)


class _Compared:
    """The documents, and their own topics, with which others are compared."""

    def __init__(self, counts: sp.csr_array) -> None:
        self.counts = counts
        self._references = [_topics(counts, number) for number in range(_REFERENCES)]

    @property
    def ceiling(self) -> float:
        return agreement(self._references, self._references)

    def floor(self, run: int) -> float:
        """Score documents of the same lengths that have no topics."""
        generator = np.random.default_rng(run)
        totals = np.asarray(self.counts.sum(axis=0)).ravel()
        lengths = np.asarray(self.counts.sum(axis=1)).ravel()
        terms = generator.choice(len(totals), int(lengths.sum()), p=totals / totals.sum())
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return self.score(counted(offsets, terms.astype(np.int32), len(totals)), run)

    def score(self, counts: sp.csr_array, run: int) -> float:
        """Score how well the topics are found in other documents."""
        return agreement(self._references, [_topics(counts, _REFERENCES + run)])


def _topics(counts: sp.csr_array, seed: int) -> npt.NDArray[np.int32]:
    return top_terms(fit_topics(counts, TOPICS, iterations=_SWEEPS, seed=seed), TOP_TERMS)


@dataclass(frozen=True)
class _Noisy:
    """Noisy counts, as if they were a release's."""

    counts: npt.NDArray[np.int32]

    @property
    def files(self) -> Sequence[_Rows]:
        return [_Rows(len(self.counts))]

    @property
    def size(self) -> int:
        return int(self.counts.shape[1])

    def noisy(self, number: int) -> Iterator[npt.NDArray[np.int32]]:
        yield self.counts


class _Rows(NamedTuple):
    rows: int


def _simulated(
    counts: sp.csr_array,
    method: Method,
    bins: int,
    histogram_rate: float,
    rate: float,
    generator: np.random.Generator,
) -> sp.csr_array:
    """Simulate a release, and return its reconstruction, (n, V).

    NumPy's noise suffices: nothing is published.
    """
    totals = np.asarray(counts.sum(axis=0)).ravel().astype(np.int64)
    weights = totals + _noise(histogram_rate, totals.shape, generator)
    of = bins_of(method, len(weights), bins, generator, weights=weights)
    sums = sp.csr_array((np.ones(len(of), np.int32), (np.arange(len(of)), of)))
    noisy = (counts @ sums).toarray().astype(np.int32)
    noisy += _noise(rate, noisy.shape, generator).astype(np.int32)
    decay, in_bins = decay_of(rate), np.bincount(of, weights, bins).astype(np.float64)
    prior = Prior.of(in_bins, len(noisy), FACTORS)
    with (
        tempfile.TemporaryDirectory() as folder,
        workers("local", _Noisy(noisy), lambda: Path(folder), lambda _: None) as crew,
    ):
        seed = int(generator.integers(2**63))
        fitted = fit(crew, prior, decay, seed, SavedFactors(Path(folder, "factors.npz")))
        act = partial(
            drawn,
            rows=slice(0, len(noisy)),
            fitted=fitted,
            decay=decay,
            stretch=stretch_of(crew, fitted, decay, seed),
            decompression=Decompression(of, weights, bins),
            generator=generator,
        )
        (bags,) = crew.each(act)
    return sp.csr_array((bags.counts, bags.entries, bags.offsets), counts.shape)


def _noise(
    rate: float, shape: tuple[int, ...], generator: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Draw two-sided geometric noise."""
    share = 1 - math.exp(-rate)
    return generator.geometric(share, shape) - generator.geometric(share, shape)


def lines(found: Calibrated) -> Iterator[str]:
    """Yield a table for a terminal, and the conclusion from it."""
    yield (
        f"topics found again: {found.ceiling:.3f} without noise, {found.floor:.3f} in documents "
        "that have none"
    )
    rows = [
        (float(one.epsilon), method.value, bins, runs.mean(), span(runs), one.choice.mark(place))
        for one in found.outcomes
        for place, ((method, bins), runs) in enumerate(zip(one.maps, one.scores, strict=True))
    ]
    yield from table(("epsilon / N:g", "map", "bins:,", "topics:.3f", "runs:>", ""), rows)
    yield (
        "Of each epsilon, the map that is best over all noise is among those marked with 95 % "
        f"confidence: {found.meant}."
    )
