"""Audits of histograms."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import islice

import numpy as np
import numpy.typing as npt

from quietcorpus.evaluation.audits.exact import noise_masses, shift_loss
from quietcorpus.evaluation.audits.findings import Exact, Sampled
from quietcorpus.evaluation.audits.lower_bound import epsilon_at_least
from quietcorpus.indexes.tokens.tokenizers import Tokenizer
from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.accounting.guarantees import round_up
from quietcorpus.mechanisms.bags.histogram import Histogram
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.noise.geometric import DenseNoise, SparseNoise
from quietcorpus.transforms.histogram import release_histogram
from quietcorpus.transforms.reading.documents import Corpus

from ...audit.inputs import made_up_words, telling
from ...canaries.game import Coins, Document, Game, Scores, enough
from ...canaries.words_of_corpus import counts_of, words_for
from ...card.loading import LoadedRelease
from .job import HistogramKind, VocabularyStep
from .token_checks import TokenChanges, of_vocabulary

_REACH = 1 << 13  # the furthest outcome whose probability is computed
_BEYOND = 16


def audits(kind: HistogramKind) -> list[Exact | Sampled]:
    """Return the audits of all stages."""
    return [*of_vocabulary(kind.vocabulary), *of_histogram(kind.histogram, kind.vocabulary)]


def of_histogram(histogram: Histogram, step: VocabularyStep) -> list[Exact | Sampled]:
    """Return audits of the noise on a corpus's counts, and of their release."""
    epsilon, most = histogram.guarantee.epsilon, histogram.precision
    audits: list[Exact | Sampled] = [
        TokenChanges(most, step).of_counts(),
        exact_law("histogram: the noise's law", epsilon, most, histogram.noise(1)),
    ]
    draw = partial(counts_released, histogram, step.tokenizer)
    for tokens in sorted({telling(float(epsilon), most), most}):
        about = share_of(tokens, most)
        audits.append(
            Sampled(
                f"histogram: {about}",
                round_up(epsilon * tokens / most),
                f"Counts were released of corpora, one of which had {tokens} more of a term.",
                partial(epsilon_at_least, draw, 0, tokens),
            )
        )
    return audits


def counts_released(
    histogram: Histogram, tokenizer: Tokenizer, more: int, count: int
) -> npt.NDArray[np.int64]:
    """Release pairs of counts, of which the second is `more` and the first 0: int64 (count, 2)."""
    counts = np.tile(np.array([0, more]), count)
    vocabulary = Vocabulary(list(islice(made_up_words(), 2)), tokenizer)
    return release_histogram(histogram, counts, vocabulary, ReleaseKey.fresh()).reshape(count, 2)


def share_of(tokens: int, most: int) -> str:
    """Say how many of the protected tokens an audit adds."""
    noun = "token" if most == 1 else "tokens"
    return f"{most} {noun}" if tokens == most else f"{tokens} of {most} {noun}"


def exact_law(
    name: str, epsilon: Fraction, precision: int, noise: DenseNoise | SparseNoise
) -> Exact:
    """Return the audit that compares the probabilities of the noise itself."""
    reach = min(precision + _BEYOND, _REACH)
    return Exact(
        name,
        round_up(epsilon),
        f"Probabilities were compared of outcomes from {-reach} to {reach}, as the sampler has "
        "them.",
        lambda: shift_loss(noise_masses(noise, reach), precision),
    )


def game(kind: HistogramKind, canaries: int, corpus: Corpus) -> Game:
    """Return documents of `precision` equal words, or none; raises InputError for too many."""
    step, precision = kind.vocabulary, kind.spec.precision
    words = words_for(step.public, step.tokenizer, corpus, canaries)
    enough(canaries, len(words), "the vocabulary's words")
    words = words[:canaries]
    expected = counts_of(words, step.tokenizer, corpus) + precision / 2

    def score(loaded: LoadedRelease, _: Coins) -> Scores:
        table = loaded.tables["vocabulary"]
        weights = dict(zip(table["term"].to_pylist(), table["weight"].to_pylist(), strict=True))
        return np.array(
            [
                weights[word] - middle if word in weights else 0.0
                for word, middle in zip(words, expected, strict=True)
            ]
        )

    cost = kind.cost
    return Game(
        [([Document(" ".join([word] * precision), {})], [Document("", {})]) for word in words],
        score,
        float(cost.epsilon),
        float(cost.delta),
        f"A canary is a document that has a word {precision} times, or is empty. Its score is the "
        "word's noisy count, less that of the corpus.",
        shows=float(kind.spec.epsilon),
    )
