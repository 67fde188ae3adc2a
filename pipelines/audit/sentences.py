"""Audits of document embeddings that protect a sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.evaluation.audits.exact import Unresolved, affordable, draws_loss
from quietcorpus.evaluation.audits.findings import Exact, Sampled
from quietcorpus.evaluation.audits.lower_bound import LowerBound, epsilon_at_least
from quietcorpus.evaluation.audits.uniforms import (
    Uniforms,
    dependence_at_least,
    distance_at_least,
)
from quietcorpus.indexes.candidates import RECODED, TEXT
from quietcorpus.mechanisms.deep_candidate import DeepCandidate
from quietcorpus.mechanisms.exact import Bounds
from quietcorpus.mechanisms.exponential import ExponentialMechanism
from quietcorpus.mechanisms.guarantees import round_up
from quietcorpus.mechanisms.projected_mean import ProjectedMean
from quietcorpus.mechanisms.truncation import Truncation
from quietcorpus.transforms.privatizers.sentences import CandidateDraw, SentencePrivatizer

from ..kinds.kind import Kind
from ..kinds.sentences import SentencesKind
from ..kinds.sentences_by_words import EmbeddedWordsKind
from . import projected_mean, truncation, words
from .embedded_words import besides_words
from .inputs import LOSS
from .sentence_documents import (
    PAIRS,
    Releases,
    drawn_for,
    of_streams,
    release_texts,
    vectors,
)

_CHOICES = 1 << 29  # utilities that are read for one audit
_LEAST = 1000
_MOST = 1 << 15  # draws of one audit of the law
_BITS = 256
_FAR = 5  # of a utility below all others, in sentences
_CLOSE = 1e-9
_ROWS = 8  # of each text, whose columns are compared with the public candidates

Utilities = npt.NDArray[np.int32]


def audits(kind: Kind) -> list[Exact | Sampled]:
    """Return the audits of the draw of a candidate, of the noise on a mean, or of words."""
    if isinstance(kind, EmbeddedWordsKind):
        besides = besides_words(kind.parameters, kind.words.index.vocabulary.terms)
        return [*words.audits(kind.words), besides]
    assert isinstance(kind, SentencesKind)
    return of_releases(Releases.of_public(kind.parameters, kind.parameters.candidates.open()))


def of_releases(releases: Releases) -> list[Exact | Sampled]:
    """Return the audits of made-up documents' releases by any mechanism but Madlib."""
    law = releases.parameters.law
    if isinstance(law, Truncation):
        return truncation.audits(releases, law)
    if isinstance(law, ProjectedMean):
        return projected_mean.audits(releases, law)
    mechanism = candidate_draw(releases.privatizer())
    one, other = (releases.inputs(mechanism, range(odd, 2 * PAIRS, 2)) for odd in (0, 1))
    return [
        Exact(
            "documents: what a sentence moves utilities by",
            float(law.units),
            f"The figures are utilities: the largest change over {PAIRS} pairs of documents of "
            "public sentences and of their reflections, some of them far off. A change of another "
            "document's utilities counts as infinite.",
            partial(releases.change, np.inf),
        ),
        *of_draws(releases.privatizer, law, Neighbours(one, other)),
        Exact(
            "documents: rows besides the candidate",
            0.0,
            "The figure is how many rows had a column that was not the public candidate's.",
            lambda: float(rows_besides_candidates(releases)),
        ),
        *of_streams(releases),
    ]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The utilities under pairs of documents that differ in a sentence: int32 (n, m) each."""

    one: Utilities
    other: Utilities


def of_draws(
    privatizer: Callable[[], SentencePrivatizer], law: DeepCandidate, public: Neighbours
) -> list[Exact | Sampled]:
    """Return audits of a candidate's chances, and of draws by a release's privatizer."""
    sampler, size = candidate_draw(privatizer()).sampler, public.one.shape[1]
    stated = round_up(law.guarantee.epsilon)
    far = _FAR * law.units
    pairs = list(zip(public.one, public.other, strict=True))
    losses = [_stated_loss(sampler, *pair, stated) for pair in pairs]
    worst = int(np.argmax(losses))
    near = int(np.argmin(np.abs(np.array(losses) - LOSS)))
    lowest = np.where(np.arange(size) == 0, -far, 0)
    moved = lowest + np.where(np.arange(size) == 0, law.units, -law.units)
    chances = StatedChances(law, np.concatenate([public.one, public.other]))
    few = max(_LEAST, _CHOICES // (2 * size))
    return [
        Exact(
            "documents: utilities that one sentence may give",
            stated,
            "A candidate's chances were compared, as the sampler weighs them, when its utility "
            "rises by the sensitivity and all others' fall by it.",
            partial(utilities_loss, sampler, lowest, moved),
        ),
        Exact(
            "documents: public sentences",
            stated,
            "Candidates' chances were compared over pairs of documents of public sentences.",
            lambda: max(utilities_loss(sampler, *pair) for pair in pairs),
        ),
        Sampled(
            "documents: candidates drawn, their chances",
            0.0,
            "The figure is the largest difference between the distribution function of draws and "
            "that of the stated chances, by candidates' numbers and by their utilities.",
            partial(chances.distance, privatizer),
            most=min(few, _MOST),
        ),
        Sampled(
            "documents: candidates drawn, their independence",
            0.0,
            "The figure is the largest correlation of draws for two documents that are any number "
            "of places apart.",
            partial(chances.dependence, privatizer),
            most=min(few, _MOST),
        ),
        *(
            Sampled(
                f"documents: candidates drawn, {which}",
                bound,
                f"Candidates were drawn for {said}.",
                partial(
                    epsilon_at_least,
                    partial(candidates_drawn, privatizer, public.one[pair], public.other[pair]),
                    public.one[pair],
                    public.other[pair],
                ),
                most=few,
            )
            for which, pair, bound, said in (
                ("far apart", worst, stated, "the pair of these that is told apart best"),
                ("near", near, losses[near] + _CLOSE, "a pair, to be told apart as computed"),
            )
        ),
    ]


def candidate_draw(privatizer: SentencePrivatizer) -> CandidateDraw:
    """Return the mechanism of a privatizer that draws candidates."""
    assert isinstance(privatizer.mechanism, CandidateDraw)
    return privatizer.mechanism


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


def rows_besides_candidates(releases: Releases) -> int:
    """Count released rows with a column that is not the public candidate's of their number."""
    public = releases.candidates
    rows = release_texts(releases.privatizer(), releases.texts * _ROWS)
    numbers = rows["candidate"].to_numpy()
    same = (vectors(rows) == public.embeddings[numbers]).all(axis=1)
    if RECODED in rows.column_names:
        recoded = vectors(rows, RECODED)
        same &= (recoded == public.recoded[numbers].astype(np.float32)).all(axis=1)
    if TEXT in rows.column_names:
        assert public.documents is not None
        texts = public.documents[TEXT].take(pa.array(numbers))
        same &= np.array(rows[TEXT].to_pylist()) == np.array(texts.to_pylist())
    return int((~same).sum())


@dataclass(frozen=True, eq=False)
class StatedChances:
    """The chances of candidates by the stated law, in floats, whatever the sampler's weights are.

    `utilities` are those of documents, int32 (n, m).
    """

    law: DeepCandidate
    utilities: Utilities

    def distance(
        self, privatizer: Callable[[], SentencePrivatizer], draws: int, level: float
    ) -> LowerBound:
        """Bound the distance of draws from these chances."""
        samples = {
            f"the candidate by its {order}": uniforms
            for order, uniforms in self._uniforms(privatizer(), draws).items()
        }
        return distance_at_least(samples, level)

    def dependence(
        self, privatizer: Callable[[], SentencePrivatizer], draws: int, level: float
    ) -> LowerBound:
        """Bound the correlation of draws for two documents."""
        uniforms = self._uniforms(privatizer(), draws)["number"]
        return dependence_at_least(uniforms[:, None], level)

    def _uniforms(self, privatizer: SentencePrivatizer, draws: int) -> dict[str, Uniforms]:
        """Draw candidates for documents by turns; return where they lie in their distributions.

        Within a candidate's chance, a uniform number is drawn.
        """
        rows = np.arange(draws) % len(self.utilities)
        drawn = drawn_for(privatizer, self.utilities, draws)["candidate"].to_numpy()
        generator = np.random.default_rng()
        within = generator.random(draws)
        weights = np.exp(
            float(self.law.guarantee.epsilon)
            / (2 * self.law.units)
            * (self.utilities - self.utilities.max(axis=1, keepdims=True))
        )
        chances = weights / weights.sum(axis=1, keepdims=True)
        found = {}
        for name, order in (
            ("number", np.broadcast_to(np.arange(chances.shape[1]), chances.shape)),
            ("utility", np.argsort(self.utilities, axis=1, kind="stable")),
        ):
            before = np.empty_like(chances)
            ordered = np.take_along_axis(chances, order, axis=1)
            np.put_along_axis(before, order, np.cumsum(ordered, axis=1) - ordered, axis=1)
            found[name] = before[rows, drawn] + within * chances[rows, drawn]
        return found


def candidates_drawn(
    privatizer: Callable[[], SentencePrivatizer],
    one: Utilities,
    other: Utilities,
    given: Utilities,
    count: int,
) -> npt.NDArray[np.int64]:
    """Draw candidates for two documents of utilities `one` and `given`, `count` times.

    Utilities are int32 (m,); `given` is `one` or `other`. Returns int64 (count, 4): for each of the
    two candidates, its number and its gain in utility from `one` to `other`. The gain is public
    here, and shows more than the number.
    """
    gains = other.astype(np.int64) - one
    drawn = drawn_for(privatizer(), np.stack([one, given]), 2 * count)["candidate"].to_numpy()
    return np.column_stack([drawn, gains[drawn]]).reshape(count, 4)


def _weights(sampler: ExponentialMechanism, gaps: set[int]) -> list[Bounds]:
    """Return the weights by the gap to the best utility; (0, 0) for gaps that do not occur."""
    law, largest = sampler.law, max(gaps)
    bits = affordable(_BITS + 2 * int(law.rate * largest))  # the least weight keeps _BITS
    return [law.survival(gap, bits) if gap in gaps else (0, 0) for gap in range(largest + 1)]
