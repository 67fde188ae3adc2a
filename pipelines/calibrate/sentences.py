"""The choice of the utility, and of the number of projections, on public documents."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from quietcorpus.evaluation.sentences import closeness, expected
from quietcorpus.indexes.candidates import Candidates
from quietcorpus.mechanisms.deep_candidate import DeepCandidate, Utility
from quietcorpus.pipelines.artefacts.public_documents import chosen
from quietcorpus.pipelines.terminal.progress import Steps
from quietcorpus.transforms.artefacts.candidates import CandidatesSource
from quietcorpus.transforms.artefacts.encoder import Encoder, EncoderSource
from quietcorpus.transforms.privatizers.sentences import utilities
from quietcorpus.transforms.reading.documents import Corpus

_PROJECTIONS = 10, 25, 50, 75, 100
_AT_ONCE = 64  # documents whose utilities are held
_ENCODED_AT_ONCE = 128  # sentences
_TIMED_DOCUMENTS = 4


@dataclass(frozen=True)
class CalibratedUtility:
    """The average result of one mechanism on public documents.

    Attributes:
        utility, projections, epsilon: the mechanism; `projections` is None for similarity.
        closeness: the cosine between the released embedding and the document's own mean, both
            taken from the centre of public sentences.
        depth: the utility of the released candidate as a share of the number of sentences.
    """

    utility: Utility
    projections: int | None
    epsilon: Fraction
    closeness: float
    depth: float


def calibrate(
    candidates: CandidatesSource,
    encoder: EncoderSource,
    corpus: Corpus,
    epsilons: Sequence[Fraction],
    *,
    documents: int,
    seed: int,
    progress: bool = False,
) -> list[CalibratedUtility]:
    """Measure every utility and number of projections at every epsilon, in expectation.

    Raises InputError for an encoder that is not the candidates', and for too few documents.
    """
    steps = Steps(4, bar=progress)
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
    ways = list(_ways(manifest.projections))
    with steps.step("timing a few documents"):
        seconds = _timed(opened, model, ways, sentences, offsets, len(epsilons))
    steps.expect(seconds, "a few documents")
    parts = []
    with steps.step("encoding sentences", len(sentences), "sentences") as display:
        for start in range(0, len(sentences), _ENCODED_AT_ONCE):
            parts.append(model.encode(sentences[start : start + _ENCODED_AT_ONCE]))
            display.advance(len(parts[-1]))
    embeddings = np.concatenate(parts)
    lengths = np.diff(offsets)
    cosines = closeness(embeddings, offsets, opened.embeddings, opened.centre)
    found = []
    for utility, projections in steps.each(ways, len(ways), "comparing utilities", "utilities"):
        scored = utilities(utility, projections or 1, opened)
        laws = [DeepCandidate(epsilon, utility, projections or 1) for epsilon in epsilons]
        totals = np.zeros((len(laws), 2))
        for start in range(0, documents, _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            ends = offsets[start : start + _AT_ONCE + 1]
            values = scored(embeddings[ends[0] : ends[-1]], ends - ends[0])
            for law, total in zip(laws, totals, strict=True):
                rate = float(law.sampler.rate)
                depths = values / (law.units * lengths[some, None])
                total += [expected(values, rate, v).sum() for v in (cosines[some], depths)]
        found += [
            CalibratedUtility(utility, projections, epsilon, *(total / documents))
            for epsilon, total in zip(epsilons, totals, strict=True)
        ]
    return found


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


def _ways(most: int) -> Iterator[tuple[Utility, int | None]]:
    yield Utility.SIMILARITY, None
    for utility in (Utility.DEPTH, Utility.MEAN_DEPTH, Utility.OPTIMISTIC_DEPTH):
        for projections in sorted({min(some, most) for some in _PROJECTIONS}):
            yield utility, projections


def lines(outcomes: Sequence[CalibratedUtility]) -> Iterator[str]:
    """Yield, for each epsilon, every utility's best number of projections, the best of all marked.

    The lines are for a terminal.
    """
    yield f"{'epsilon':>8}  {'utility':<17} {'projections':>11} {'closeness':>10} {'depth / k':>10}"
    for epsilon in sorted({outcome.epsilon for outcome in outcomes}):
        here = [outcome for outcome in outcomes if outcome.epsilon == epsilon]
        best = max(here, key=lambda outcome: outcome.closeness)
        for utility in Utility:
            own = [outcome for outcome in here if outcome.utility is utility]
            top = max(own, key=lambda outcome: outcome.closeness)
            mark = "  best" if top is best else ""
            yield (
                f"{float(epsilon):>8g}  {utility.value:<17} {top.projections or '-':>11} "
                f"{top.closeness:>10.3f} {top.depth:>10.3f}{mark}"
            )
