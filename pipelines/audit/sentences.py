"""Audits of document embeddings that protect a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from quietcorpus.evaluation.audits.exact import (
    Unresolved,
    affordable,
    draws_loss,
    noise_masses,
    shift_loss,
)
from quietcorpus.evaluation.audits.findings import Exact, Sampled
from quietcorpus.evaluation.audits.lower_bound import epsilon_at_least
from quietcorpus.indexes.candidates import Candidates
from quietcorpus.mechanisms.deep_candidate import DeepCandidate
from quietcorpus.mechanisms.exact import Bounds
from quietcorpus.mechanisms.exponential import ExponentialMechanism
from quietcorpus.mechanisms.guarantees import round_up
from quietcorpus.mechanisms.projected_mean import ProjectedMean
from quietcorpus.mechanisms.truncation import STEPS, Box, NoisyMeans, Truncation
from quietcorpus.pipelines.audit import projected_mean, words
from quietcorpus.pipelines.audit.inputs import LOSS, fresh_stream, means_released, telling
from quietcorpus.pipelines.kinds.kind import Kind
from quietcorpus.pipelines.kinds.sentences import SentencesKind
from quietcorpus.pipelines.kinds.sentences_by_words import EmbeddedWordsKind
from quietcorpus.transforms.privatizers.sentences import utilities

_SENTENCES = 4  # of a made-up document
_PAIRS = 32
_CELLS = 1 << 22  # utilities that are held at a time
_CHOICES = 1 << 29  # utilities that are read for one audit
_LEAST = 1000
_BITS = 256
_BEYOND = 16
_CLOSE = 1e-9
_DIMENSIONS = 2  # of an audit by draws: in many dimensions, no event tells much


def audits(kind: Kind) -> list[Exact | Sampled]:
    """Return the audits of the draw of a candidate, of the noise on a mean, or of words."""
    if isinstance(kind, EmbeddedWordsKind):  # what follows the words is post-processing
        return words.audits(kind.words)
    assert isinstance(kind, SentencesKind)
    law, candidates = kind.parameters.law, kind.parameters.candidates.open()
    if isinstance(law, Truncation):
        return of_truncation(law, Box(*candidates.box))
    if isinstance(law, ProjectedMean):
        return projected_mean.audits(law, candidates)
    sentences = min(_SENTENCES, kind.parameters.most_sentences)
    return of_draws(law, Neighbours.of_public(law, candidates, sentences), sentences)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The utilities under pairs of documents that differ in a sentence: int32 (n, m) each."""

    one: npt.NDArray[np.int32]
    other: npt.NDArray[np.int32]

    @classmethod
    def of_public(cls, law: DeepCandidate, candidates: Candidates, sentences: int) -> Neighbours:
        """Build pairs of documents of `sentences` sentences from the candidates' own embeddings.

        The last sentence is replaced by another, or by its own reflection in the centre.
        """
        generator = np.random.default_rng(0)
        find = utilities(law.utility, law.projections, candidates)
        own = candidates.embeddings
        drawn = own[generator.integers(len(own), size=(_PAIRS, sentences))]
        replaced = drawn.copy()
        replaced[:, -1] = own[generator.integers(len(own), size=_PAIRS)]
        replaced[::2, -1] = 2 * candidates.centre - drawn[::2, -1]
        offsets = np.arange(_PAIRS + 1, dtype=np.int64) * sentences
        one, other = (find(rows.reshape(-1, own.shape[1]), offsets) for rows in (drawn, replaced))
        return cls(one, other)


def of_draws(law: DeepCandidate, public: Neighbours, sentences: int) -> list[Exact | Sampled]:
    """Return audits of a candidate's chances, of a sentence's effect on utilities, and of draws."""
    sampler, size = law.sampler, public.one.shape[1]
    stated = round_up(law.guarantee.epsilon)
    far = (sentences + 1) * law.units
    pairs = list(zip(public.one, public.other, strict=True))
    losses = [_stated_loss(sampler, *pair, stated) for pair in pairs]
    worst = int(np.argmax(losses))
    near = int(np.argmin(np.abs(np.array(losses) - LOSS)))
    lowest = np.where(np.arange(size) == 0, -far, 0)
    moved = lowest + np.where(np.arange(size) == 0, law.units, -law.units)
    return [
        Exact(
            "documents: utilities that one sentence may give",
            stated,
            "A candidate's chances were compared, as the sampler weighs them, when its utility "
            "rises by the sensitivity and all others' fall by it.",
            partial(utilities_loss, sampler, lowest, moved),
        ),
        Exact(
            "documents: what a sentence moves utilities by",
            float(law.units),
            f"The figures are utilities: the largest change over {_PAIRS} pairs of documents made "
            "of public sentences.",
            lambda: float(np.abs(public.one - public.other).max()),
        ),
        Exact(
            "documents: public sentences",
            stated,
            "Candidates' chances were compared over those pairs.",
            lambda: max(utilities_loss(sampler, *pair) for pair in pairs),
        ),
        *(
            Sampled(
                f"documents: candidates drawn, {which}",
                bound,
                f"Candidates were drawn for {said}.",
                partial(
                    epsilon_at_least,
                    partial(candidates_drawn, sampler, public.one[pair], public.other[pair]),
                    public.one[pair],
                    public.other[pair],
                ),
                most=max(_LEAST, _CHOICES // (2 * size)),
            )
            for which, pair, bound, said in (
                ("far apart", worst, stated, "the pair of these that is told apart best"),
                ("near", near, losses[near] + _CLOSE, "a pair, to be told apart as computed"),
            )
        ),
    ]


def of_truncation(law: Truncation, box: Box) -> list[Exact | Sampled]:
    """Return audits of the noise on sums in all dimensions, and of means in two."""
    epsilon, most = law.guarantee.epsilon, _DIMENSIONS * STEPS
    noise = NoisyMeans(law, box).noise
    widest = np.argsort(-box.width, kind="stable")[:_DIMENSIONS]
    narrow = NoisyMeans(
        Truncation(law.epsilon, len(widest)), Box(box.low[widest], box.width[widest])
    )
    audits: list[Exact | Sampled] = [
        Exact(
            "documents: the noise's law",
            round_up(epsilon),
            f"Probabilities of outcomes were compared, as the sampler has them, at a distance of "
            f"{STEPS} in each of {law.dimensions} dimensions.",
            lambda: shift_loss(noise_masses(noise, STEPS + _BEYOND), law.dimensions * STEPS),
        )
    ]
    for steps in sorted({telling(float(epsilon), most), most}):
        moved = np.minimum(STEPS, np.maximum(0, steps - STEPS * np.arange(len(widest))))
        audits.append(
            Sampled(
                f"documents: {steps} of {most} steps in {len(widest)} dimensions",
                round_up(epsilon * steps / most),
                "Means were released of a sentence at the box's lower end, and of one moved up "
                "from there.",
                partial(
                    epsilon_at_least,
                    partial(means_released, narrow, np.zeros_like(moved)),
                    np.zeros_like(moved),
                    moved,
                ),
            )
        )
    return audits


def utilities_loss(
    sampler: ExponentialMechanism, one: npt.NDArray[np.int32], other: npt.NDArray[np.int32]
) -> float:
    """Compute a candidate's largest log-ratio of chances under two utility rows, int32 (m,)."""
    gaps = {int(gap) for row in (one, other) for gap in row.max() - row}
    return draws_loss(_weights(sampler, gaps), one.tolist(), other.tolist())


def _stated_loss(
    sampler: ExponentialMechanism,
    one: npt.NDArray[np.int32],
    other: npt.NDArray[np.int32],
    most: float,
) -> float:
    """Compute the loss of a pair; `most`, which no pair exceeds, where it cannot be computed."""
    try:
        return utilities_loss(sampler, one, other)
    except Unresolved:
        return most


def candidates_drawn(
    sampler: ExponentialMechanism,
    one: npt.NDArray[np.int32],
    other: npt.NDArray[np.int32],
    given: npt.NDArray[np.int32],
    count: int,
) -> npt.NDArray[np.int64]:
    """Draw candidates for two documents of utilities `one` and `given`, `count` times.

    Utilities are int32 (m,); `given` is `one` or `other`. Returns int64 (count, 4): for each of the
    two candidates, its number and its gain in utility from `one` to `other`. The gain is public
    here, and shows more than the number.
    """
    rows = [np.ascontiguousarray(row, dtype=np.int32) for row in (one, given)]
    gains = other.astype(np.int64) - one
    stream, addresses = fresh_stream([row.tobytes() for row in rows] * count)
    step = max(1, _CELLS // (2 * len(one)))
    parts = []
    for start in range(0, count, step):
        some = addresses[2 * start : 2 * (start + step)]
        parts.append(sampler.draw(np.tile(np.stack(rows), (len(some) // 2, 1)), stream, some))
    drawn = np.concatenate(parts)
    return np.column_stack([drawn, gains[drawn]]).reshape(count, 4)


def _weights(sampler: ExponentialMechanism, gaps: set[int]) -> list[Bounds]:
    """Return the weights by the gap to the best utility; (0, 0) for gaps that do not occur."""
    law, largest = sampler.law, max(gaps)
    bits = affordable(_BITS + 2 * int(law.rate * largest))  # the least weight keeps _BITS
    return [law.survival(gap, bits) if gap in gaps else (0, 0) for gap in range(largest + 1)]
