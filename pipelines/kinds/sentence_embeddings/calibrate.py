"""The choice of the mechanism, its utility and its number of directions, on public documents."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from quietcorpus.evaluation.embeddings import agreement, closeness, expected
from quietcorpus.indexes.documents.candidates import Candidates
from quietcorpus.indexes.documents.recoder import means
from quietcorpus.mechanisms.keystream import KEY_BYTES, Addresses, Keystream, ReleaseKey
from quietcorpus.mechanisms.sentences.deep_candidate import DeepCandidate, Utility
from quietcorpus.mechanisms.sentences.projected_mean import NoisyProjections, ProjectedMean
from quietcorpus.transforms.artefacts.encoder import Encoder, EncoderSource
from quietcorpus.transforms.artefacts.folders import CandidatesSource
from quietcorpus.transforms.privatizers.sentences import SentenceMechanism, ball, utilities
from quietcorpus.transforms.reading.documents import Corpus

from ...prepare.public_documents import chosen
from ...terminal.progress import Steps, table

_PROJECTIONS = 10, 25, 50, 75, 100
_DIRECTIONS = 3, 4, 6, 9, 12, 16, 24
_DRAWS = 8  # for each document
_AT_ONCE = 64  # documents whose utilities are held
_ENCODED_AT_ONCE = 128  # sentences
_TIMED_DOCUMENTS = 4


@dataclass(frozen=True)
class CalibratedEmbedding:
    """The average result of one mechanism on public documents; `spec` keys where they have values.

    Attributes:
        mechanism, epsilon: the mechanism.
        utility, projections: of `deep-candidate`; `projections` is None for similarity.
        directions: of `projected-mean`.
        agreement: the correlation of released embeddings' cosines between documents with those of
            the documents' own means, along the candidates' directions, by draws: how far documents
            that were alike are alike still.
        closeness: the cosine between the released embedding and the document's own mean, both
            taken from the centre of public sentences.
        depth: of `deep-candidate`, the utility of the released candidate as a share of the number
            of sentences.
    """

    mechanism: SentenceMechanism
    epsilon: Fraction
    agreement: float
    closeness: float
    utility: Utility | None = None
    projections: int | None = None
    directions: int | None = None
    depth: float | None = None


def calibrate(
    candidates: CandidatesSource,
    encoder: EncoderSource,
    corpus: Corpus,
    epsilons: Sequence[Fraction],
    *,
    documents: int,
    seed: int,
    progress: bool = False,
) -> list[CalibratedEmbedding]:
    """Measure every utility and number of directions at every epsilon.

    Closeness and depth of utilities are measured in expectation, and all else by draws whose key
    is the seed.

    Raises InputError for an encoder that is not the candidates', and for too few documents.
    """
    steps = Steps(5, bar=progress)
    with steps.step("reading candidates and documents"):
        opened = candidates.open()
        manifest = opened.manifest
        encoder.check(manifest.encoder)
        public = chosen(
            corpus,
            manifest.language,
            manifest.least_sentences,
            manifest.most_sentences,
            documents,
            np.random.default_rng(seed),
        )
        model = encoder.open()
    offsets, sentences = public.offsets, public.sentences
    with steps.step("timing a few documents"):
        ways = list(_drawn(manifest.projections))
        seconds = _timed(opened, model, ways, sentences, offsets, len(epsilons))
    steps.expect(seconds, "a few documents")
    parts = []
    with steps.step("encoding sentences", len(sentences), "sentences") as display:
        for start in range(0, len(sentences), _ENCODED_AT_ONCE):
            parts.append(model.encode(sentences[start : start + _ENCODED_AT_ONCE]))
            display.advance(len(parts[-1]))
    embeddings = np.concatenate(parts)
    drawn, noisy = list(_drawn(manifest.projections)), list(_noisy(opened))
    encoded = _Public(opened, embeddings, offsets, seed)
    found = []
    for utility, projections in steps.each(drawn, len(drawn), "comparing utilities", "utilities"):
        found += encoded.drawn(utility, projections, epsilons)
    for directions in steps.each(noisy, len(noisy), "comparing noisy means", "numbers"):
        found += [encoded.noisy(directions, epsilon) for epsilon in epsilons]
    return found


@dataclass(frozen=True, eq=False)
class _Public:
    """Encoded public documents, and the candidates that stand for them."""

    candidates: Candidates
    embeddings: npt.NDArray[np.float32]
    offsets: npt.NDArray[np.int64]
    seed: int

    @cached_property
    def own(self) -> npt.NDArray[np.float64]:
        """Return the documents' own means, (n, d)."""
        return means(self.embeddings, self.offsets)

    @cached_property
    def cosines(self) -> npt.NDArray[np.float64]:
        """Return the closeness of every candidate to every document."""
        return closeness(self.own, self.candidates.embeddings, self.candidates.centre)

    def drawn(
        self, utility: Utility, projections: int | None, epsilons: Sequence[Fraction]
    ) -> list[CalibratedEmbedding]:
        """Measure deep-candidate, in expectation and by draws."""
        lengths = np.diff(self.offsets)
        scored = utilities(utility, projections or 1, self.candidates)
        laws = [DeepCandidate(epsilon, utility, projections or 1) for epsilon in epsilons]
        totals = np.zeros((len(laws), 2))
        places = np.empty((len(laws), _DRAWS, len(lengths)), dtype=np.int64)
        draws = [self._draws(law) for law in laws]
        for start in range(0, len(lengths), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            ends = self.offsets[start : start + _AT_ONCE + 1]
            values = scored(self.embeddings[ends[0] : ends[-1]], ends - ends[0])
            for law, total, own, (stream, addresses) in zip(
                laws, totals, places, draws, strict=True
            ):
                rate = float(law.sampler.rate)
                depths = values / (law.units * lengths[some, None])
                total += [expected(values, rate, v).sum() for v in (self.cosines[some], depths)]
                for draw in range(_DRAWS):
                    own[draw, some] = law.sampler.draw(values, stream, addresses[draw, some])
        return [
            CalibratedEmbedding(
                SentenceMechanism.DEEP_CANDIDATE,
                epsilon,
                self._agreement(self.candidates.embeddings[own]),
                close,
                utility=utility,
                projections=projections,
                depth=depth,
            )
            for epsilon, (close, depth), own in zip(
                epsilons, totals / len(lengths), places, strict=True
            )
        ]

    def noisy(self, directions: int, epsilon: Fraction) -> CalibratedEmbedding:
        """Measure projected-mean, by draws."""
        found, law = ball(self.candidates, directions), ProjectedMean(epsilon, directions)
        lengths = np.tile(np.diff(self.offsets), _DRAWS)
        sums = np.tile(found.sums(self.embeddings, self.offsets), (_DRAWS, 1))
        stream, addresses = self._draws(law)
        released = (
            NoisyProjections(law, found)
            .release(sums, lengths, stream, addresses.reshape(-1, 2))
            .reshape(_DRAWS, *self.own.shape)
        )
        centre = self.candidates.centre
        cosines = [closeness(self.own, rows[:, None], centre) for rows in released]
        return CalibratedEmbedding(
            SentenceMechanism.PROJECTED_MEAN,
            epsilon,
            self._agreement(released),
            float(np.mean(cosines)),
            directions=directions,
        )

    def _draws(self, law: DeepCandidate | ProjectedMean) -> tuple[Keystream, Addresses]:
        """Return the stream of a law's draws, and their addresses, (draws, n, 2)."""
        key = ReleaseKey(self.seed.to_bytes(KEY_BYTES, "big"))
        stream = key.stage("calibrate", 1, **law.stage_parameters)
        count = _DRAWS * len(self.own)
        addresses = stream.addresses("public", range(count), [b""] * count)
        return stream, addresses.reshape(_DRAWS, -1, 2)

    def _agreement(self, released: npt.NDArray[np.floating]) -> float:
        """Return the mean agreement of some draws' rows, (draws, n, d), with the documents."""
        own = self._along(self.own)
        return float(np.mean([agreement(own, self._along(rows)) for rows in released]))

    def _along(self, rows: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
        """Return where rows lie along the directions; of earlier candidates, the rows as such."""
        away, directions = rows - self.candidates.centre, self.candidates.directions
        return np.asarray(away if directions is None else away @ directions.T)


def _timed(
    candidates: Candidates,
    encoder: Encoder,
    ways: Sequence[tuple[Utility, int | None]],
    sentences: Sequence[str],
    offsets: npt.NDArray[np.int64],
    epsilons: int,
) -> float:
    """Return the seconds that all documents may take, by those of a few."""
    few = offsets[: _TIMED_DOCUMENTS + 1]
    some = sentences[: few[-1]]
    for _ in range(2):  # the first time also compiles and loads
        begun = time.perf_counter()
        embeddings = encoder.encode(some)
        encoded = time.perf_counter()
        for utility, projections in ways:
            values = utilities(utility, projections or 1, candidates)(embeddings, few)
            for _ in range(epsilons):
                expected(values, 1.0, values.astype(np.float64))
        compared = time.perf_counter()
    return (encoded - begun) / len(some) * len(sentences) + (compared - encoded) / (
        len(few) - 1
    ) * (len(offsets) - 1)


def _drawn(most: int) -> Iterator[tuple[Utility, int | None]]:
    yield Utility.SIMILARITY, None
    for utility in (Utility.DEPTH, Utility.MEAN_DEPTH, Utility.OPTIMISTIC_DEPTH):
        for projections in sorted({min(some, most) for some in _PROJECTIONS}):
            yield utility, projections


def _noisy(candidates: Candidates) -> list[int]:
    """Return the numbers of directions; none for candidates that an earlier version built."""
    most = 0 if candidates.radii is None else len(candidates.radii)
    return sorted({min(some, most) for some in _DIRECTIONS} - {0})


def lines(outcomes: Sequence[CalibratedEmbedding]) -> Iterator[str]:
    """Yield, for each epsilon, every mechanism's best number of directions, the best of all marked.

    The lines are for a terminal.
    """
    columns = ("epsilon:g", "mechanism", "utility", "projections:d", "directions:d")
    yield from table(
        (*columns, "agreement:.3f", "closeness:.3f", "depth / k:.3f", ""), _best_rows(outcomes)
    )


def _best_rows(outcomes: Sequence[CalibratedEmbedding]) -> Iterator[tuple[object, ...]]:
    for epsilon in sorted({outcome.epsilon for outcome in outcomes}):
        here = [outcome for outcome in outcomes if outcome.epsilon == epsilon]
        best = max(here, key=lambda outcome: outcome.agreement)
        for way in dict.fromkeys((outcome.mechanism, outcome.utility) for outcome in here):
            own = [outcome for outcome in here if (outcome.mechanism, outcome.utility) == way]
            top = max(own, key=lambda outcome: outcome.agreement)
            named = float(epsilon), top.mechanism.value, top.utility and top.utility.value
            numbers = top.projections, top.directions, top.agreement, top.closeness, top.depth
            yield *named, *numbers, "best" if top is best else ""
