"""Audits of word embeddings, which protect a user."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from quietcorpus.evaluation.audits.accounting import epsilon_recomputed
from quietcorpus.evaluation.audits.findings import Exact, Sampled
from quietcorpus.evaluation.audits.lower_bound import chance_at_least, epsilon_at_least
from quietcorpus.mechanisms.accounting import epsilon_of, noise_multiplier_for
from quietcorpus.mechanisms.clipped_sum import STEPS, ClippedSum, clipped
from quietcorpus.mechanisms.guarantees import round_up
from quietcorpus.mechanisms.user_training import Training
from quietcorpus.mechanisms.user_vocabulary import UserVocabulary
from quietcorpus.pipelines.audit.inputs import fresh_stream, stage
from quietcorpus.pipelines.audit.users import of_accounting, once
from quietcorpus.pipelines.audit.vocabulary import any_selected, terms_selected
from quietcorpus.pipelines.kinds.embeddings_counted import CountedEmbeddingsKind
from quietcorpus.pipelines.kinds.embeddings_trained import TrainedEmbeddingsKind
from quietcorpus.pipelines.kinds.embeddings_users import UserCorpus
from quietcorpus.pipelines.kinds.kind import Kind

_DELTA = Fraction(1, 100)
"""The delta of audits by draws: at the release's own, events that tell users apart are not seen."""
_NUMBERS = 4
_WORDS_AT_MOST = 8
_TAIL_BITS = 256


def audits(kind: Kind) -> list[Exact | Sampled]:
    """Return the audits of all stages, by either method."""
    if isinstance(kind, CountedEmbeddingsKind):
        return of_counted(kind)
    assert isinstance(kind, TrainedEmbeddingsKind)
    return of_trained(kind)


def of_trained(kind: TrainedEmbeddingsKind) -> list[Exact | Sampled]:
    """Return audits of the vocabulary, of every group's accounting, and of a step's noisy sums."""
    training, schedule = kind.training, kind.schedule
    noise = training.mechanism.deviation / STEPS
    courses = {g.name: (g.rate, noise, min(g.steps, kind.until)) for g in schedule.groups}
    return [
        *of_choice(kind.corpus),
        *of_accounting(kind.spendings[-1].guarantee, courses),
        of_sums("a step's sums", training.mechanism, partial(step_released, training)),
    ]


def of_counted(kind: CountedEmbeddingsKind) -> list[Exact | Sampled]:
    """Return audits of the vocabulary, of every group's accounting, and of the noisy counts."""
    mechanism = kind.norms.mechanism
    courses = once(kind.norms)
    return [
        *of_choice(kind.corpus),
        *of_accounting(kind.spendings[-1].guarantee, courses),
        of_sums("the counts", mechanism, partial(sums_released, mechanism)),
    ]


def of_sums(
    name: str, mechanism: ClippedSum, draw: Callable[[npt.NDArray[np.int64], int], npt.NDArray]
) -> Sampled:
    """Return the audit of noisy sums with and without a user."""
    absent = np.zeros(_NUMBERS, dtype=np.int64)
    present = absent + user_clipped()
    epsilon = epsilon_of(Fraction(1), mechanism.noise_multiplier, 1, _DELTA)
    return Sampled(
        f"{name}, with and without a user",
        round_up(epsilon),
        "Sums were released with and without a user who asks for far more than the clipping norm; "
        f"this is what one such release costs at a delta of {float(_DELTA):g}.",
        partial(epsilon_at_least, draw, absent, present, delta=float(_DELTA)),
        delta=round_up(_DELTA),
    )


def of_choice(corpus: UserCorpus) -> list[Exact | Sampled]:
    """Return audits of a vocabulary that users chose: its noise, and words of one user alone."""
    selection = corpus.selection
    if selection is None:
        return []
    noise = selection.noise.deviation / STEPS
    needed = noise_multiplier_for(selection.epsilon, selection.delta / 2, Fraction(1), 1)
    words = min(selection.words, _WORDS_AT_MOST)
    # Half a deviation below the threshold: of rarer events, delta would hide more of the ratio.
    weight = selection.threshold - int(needed * STEPS / 2)
    return [
        Exact(
            "vocabulary: words of both corpora",
            round_up(selection.epsilon),
            "A lower bound of what the noise on users' weights costs was computed by the privacy "
            "loss distribution.",
            partial(epsilon_recomputed, 1.0, float(noise), 1, float(selection.delta / 2)),
            round_up(selection.delta / 2),
        ),
        Exact(
            "vocabulary: words of one user (delta)",
            round_up(selection.delta / 2),
            "The figures are deltas: the chance that any of a user's own words reaches the "
            "threshold, by the law that the sampler draws by.",
            partial(choice_delta, selection),
            round_up(selection.delta / 2),
        ),
        Sampled(
            "vocabulary: words of one user, selected (delta)",
            round_up(selection.delta / 2),
            f"The figures are deltas: how often any of the {words} words that one user alone has "
            "was released.",
            partial(
                chance_at_least,
                partial(any_selected, selection, words, selection.weight(words)),
            ),
            round_up(selection.delta / 2),
        ),
        Sampled(
            "vocabulary: a word with and without a user",
            round_up(epsilon_of(Fraction(1), needed, 1, _DELTA)),
            "A word was selected or not, of a weight below the threshold and of a user's less; "
            f"this is what one such choice costs at a delta of {float(_DELTA):g}.",
            partial(
                epsilon_at_least,
                partial(terms_selected, selection, 1),
                weight,
                weight - selection.weight(1),
                delta=float(_DELTA),
            ),
            round_up(_DELTA),
        ),
    ]


def choice_delta(selection: UserVocabulary) -> float:
    """Compute the largest chance, over word counts, that a user's own words reach the threshold."""
    law = selection.noise.law

    def chance(words: int) -> Fraction:
        beyond = law.tail(selection.threshold - selection.weight(words), _TAIL_BITS)[1]
        return words * Fraction(beyond, 1 << _TAIL_BITS)

    return float(max(chance(words) for words in range(1, selection.words + 1)))


def user_clipped() -> npt.NDArray[np.int64]:
    """Return the clipped sums of a user who asks for a thousand clipping norms in one number."""
    values = np.zeros(_NUMBERS)
    values[0] = 1000.0
    middle = np.full(_NUMBERS, 1 << 15, dtype=np.uint16)
    return clipped(values, middle).astype(np.int64)


def sums_released(
    mechanism: ClippedSum, sums: npt.NDArray[np.int64], count: int
) -> npt.NDArray[np.int64]:
    """Release sums of nobody and these sums, `count` times: int64 (count, 8)."""
    both = np.stack([np.zeros_like(sums), sums])
    stream, addresses = fresh_stream([row.tobytes() for row in both] * count)
    return mechanism.release(np.tile(both, (count, 1)), stream, addresses).reshape(count, -1)


def step_released(
    training: Training, sums: npt.NDArray[np.int64], count: int
) -> npt.NDArray[np.int64]:
    """Add noise of its own to each row of the same sums, in one training step: int64 (count, 8)."""
    both = np.stack([np.zeros_like(sums), sums])
    stream = stage()
    return training.noisy(0, np.tile(both, (count, 1)), stream).reshape(count, -1)
