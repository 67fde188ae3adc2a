"""Audits of bags of words, histograms and the choice of a vocabulary."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from evaluation.audits.exact import loss, noise_masses, shift_loss
from evaluation.audits.findings import Exact, Sampled
from evaluation.audits.lower_bound import epsilon_at_least
from indexes import compression
from indexes.vocabulary import Vocabulary
from mechanisms.bag_of_words import Accounting, BagOfWords, add_noise
from mechanisms.geometric import DenseNoise, SparseNoise, TwoSidedGeometric
from mechanisms.guarantees import round_up
from mechanisms.histogram import Histogram, ThresholdedVocabulary
from pipelines.bag_of_words import BagOfWordsKind
from pipelines.evidence.audit_inputs import fresh_key, fresh_stream, released, telling
from pipelines.histogram import HistogramKind
from transforms.bag_of_words import BagOfWordsParameters, BagPrivatizer
from transforms.codebook import Codebook

TERMS = ["alpha", "beta", "delta", "gamma"]
_PRIVATE_SIZE = 1 << 10  # of a vocabulary that is selected in the run
_REACH = 1 << 13  # of the outcomes whose probabilities are computed
_BEYOND = 16
_TOKENS = 1 << 22  # of all documents that are drawn for one audit, about
_TERMS_AT_MOST = 8
_TAIL_BITS = 4096


def of_bags(kind: BagOfWordsKind) -> list[Exact | Sampled]:
    """All stages of `kind: bag-of-words`."""
    bins = kind.spec.compression.size
    size = kind.vocabulary.size or max(bins or 0, _PRIVATE_SIZE)
    histogram = kind.histogram
    return [
        *(of_vocabulary(kind.vocabulary.selection) if kind.vocabulary.selection else []),
        *(of_histogram(histogram) if histogram else []),
        *of_documents(kind.parameters.mechanism(size, bins or size)),
    ]


def of_histograms(kind: HistogramKind) -> list[Exact | Sampled]:
    """All stages of `kind: histogram`."""
    selection = kind.vocabulary.selection
    return [*(of_vocabulary(selection) if selection else []), *of_histogram(kind.histogram)]


def of_documents(mechanism: BagOfWords) -> list[Exact | Sampled]:
    """The noise on documents, and releases of two of them, by the sampler that the run uses."""
    guarantee, noise = mechanism.guarantee, mechanism.noise()
    audits: list[Exact | Sampled] = [
        _exact("documents: the noise's law", guarantee.epsilon, guarantee.precision, noise)
    ]
    parameters = BagOfWordsParameters(guarantee.precision, guarantee.epsilon, Accounting.TIGHT)
    most = guarantee.precision
    for tokens in sorted({telling(float(guarantee.epsilon), most), most}):
        stated = round_up(guarantee.epsilon * tokens / most)
        about = _share(tokens, most)
        draws = max(1000, _TOKENS // tokens)
        audits.append(
            Sampled(
                f"documents: {about}",
                stated,
                f"Two documents were released, one of which had {_words(tokens)} more.",
                partial(epsilon_at_least, partial(documents_released, parameters), 0, tokens),
                most=draws,
            )
        )
        if isinstance(noise, SparseNoise):
            sparse = SparseNoise(mechanism.rate, len(TERMS))
            audits.append(
                Sampled(
                    f"documents: {about}, sparse noise",
                    stated,
                    f"Noise was added to two documents, one of which had {_words(tokens)} more.",
                    partial(epsilon_at_least, partial(documents_noised, sparse), 0, tokens),
                    most=draws,
                )
            )
    return audits


def of_histogram(histogram: Histogram) -> list[Exact | Sampled]:
    """The noise on a corpus's counts, and their release."""
    epsilon, most = histogram.guarantee.epsilon, histogram.precision
    audits: list[Exact | Sampled] = [
        _exact("histogram: the noise's law", epsilon, most, DenseNoise(epsilon / most, 1))
    ]
    for tokens in sorted({telling(float(epsilon), most), most}):
        about = _share(tokens, most)
        audits.append(
            Sampled(
                f"histogram: {about}",
                round_up(epsilon * tokens / most),
                f"Counts were released of corpora, one of which had {tokens} more of a term.",
                partial(epsilon_at_least, partial(counts_released, histogram), 0, tokens),
            )
        )
    return audits


def of_vocabulary(selection: ThresholdedVocabulary) -> list[Exact | Sampled]:
    """The choice of a vocabulary: what it costs for terms of many documents, and of one."""
    guarantee = selection.guarantee
    epsilon, delta = round_up(guarantee.epsilon), round_up(guarantee.delta)
    terms = min(guarantee.precision, _TERMS_AT_MOST)
    threshold = selection.threshold
    return [
        Exact(
            "vocabulary: terms of both corpora",
            epsilon,
            "Chances that a term is released were compared at frequencies that differ by one.",
            partial(selection_loss, selection),
            delta,
        ),
        Exact(
            "vocabulary: terms of one corpus (delta)",
            delta,
            "The figures are deltas: the chance that a term of one document alone is released, "
            f"{guarantee.precision} times.",
            partial(selection_delta, selection),
            delta,
        ),
        Sampled(
            f"vocabulary: {terms} of {guarantee.precision} terms",
            round_up(guarantee.epsilon * terms / guarantee.precision),
            "Terms were selected whose frequencies differ by one.",
            partial(
                epsilon_at_least,
                partial(terms_selected, selection, terms),
                threshold,
                threshold - 1,
            ),
        ),
    ]


def documents_released(
    parameters: BagOfWordsParameters, more: int, count: int
) -> npt.NDArray[np.int64]:
    """Releases of two documents, the second with so many words more, by the whole path.

    Returns int64 (count, 8): the counts of four terms in the first, and in the second.
    """
    codebook = Codebook(
        Vocabulary(TERMS), compression.identity(len(TERMS)), len(TERMS), weights=None
    )
    privatizer = BagPrivatizer(parameters, codebook, fresh_key())
    texts = TERMS[1], " ".join([TERMS[1], *[TERMS[0]] * more])
    parts = []
    for rows in released(privatizer, texts, count):
        terms, counts = (rows[name].combine_chunks() for name in ("terms", "counts"))
        matrix = np.zeros((len(rows), len(TERMS)), dtype=np.int64)
        places = np.repeat(np.arange(len(rows)), np.diff(terms.offsets.to_numpy()))
        matrix[places, terms.values.to_numpy()] = counts.values.to_numpy()
        parts.append(matrix)
    return np.concatenate(parts).reshape(count, -1)


def documents_noised(
    noise: DenseNoise | SparseNoise, more: int, count: int
) -> npt.NDArray[np.int64]:
    """The same of the noisy counts alone, negative ones included: int64 (count, 8)."""
    lengths = np.tile([0, more], count)
    stream, addresses = fresh_stream([bytes(4 * length) for length in lengths.tolist()])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    bins = np.zeros(int(offsets[-1]), dtype=np.int32)
    bags = add_noise(noise, len(TERMS), stream, addresses, offsets, bins)
    matrix = np.zeros((2 * count, len(TERMS)), dtype=np.int64)
    matrix[np.repeat(np.arange(2 * count), np.diff(bags.offsets)), bags.entries] = bags.counts
    return matrix.reshape(count, -1)


def counts_released(histogram: Histogram, more: int, count: int) -> npt.NDArray[np.int64]:
    """Noisy counts of terms in pairs, of which the second had `more`: int64 (count, 2)."""
    stream = fresh_key().stage("audit", b"")
    return histogram.release(np.tile(np.array([0, more]), count), stream).reshape(count, 2)


def terms_selected(
    selection: ThresholdedVocabulary, terms: int, frequency: int, count: int
) -> npt.NDArray[np.int64]:
    """Which of some terms of a frequency are released, over and over: int64 (count, terms)."""
    names = [number.to_bytes(8, "little") for number in range(count * terms)]
    stream = fresh_key().stage("audit", b"")
    chosen = selection.select(names, [frequency] * len(names), stream)
    return chosen.astype(np.int64).reshape(count, terms)


def selection_loss(selection: ThresholdedVocabulary) -> float:
    """N times the largest loss of one term whose frequency is one more, around the threshold."""
    threshold = selection.threshold
    around = range(max(1, threshold - 64), threshold + 64)
    laws = [np.array(_chances(selection, frequency)) for frequency in around]
    most = max(loss(one, other) for one, other in zip(laws, laws[1:], strict=False))
    return selection.precision * most


def selection_delta(selection: ThresholdedVocabulary) -> float:
    """N times the chance that a term of one document alone is released."""
    law = TwoSidedGeometric(selection.epsilon / selection.precision)
    tail = Fraction(law.tail(selection.threshold - 1, _TAIL_BITS)[1], 1 << _TAIL_BITS)
    return float(selection.precision * tail)


def _chances(selection: ThresholdedVocabulary, frequency: int) -> tuple[float, float]:
    """That a term is released, and that it is not; both exact where they are small."""
    law = TwoSidedGeometric(selection.epsilon / selection.precision)
    above = selection.threshold - frequency

    def beyond(k: int) -> float:
        return float(Fraction(law.tail(k, _TAIL_BITS)[1], 1 << _TAIL_BITS))

    if above > 0:
        return beyond(above), 1 - beyond(above)
    return 1 - beyond(1 - above), beyond(1 - above)


def _share(tokens: int, most: int) -> str:
    noun = "token" if most == 1 else "tokens"
    return f"{most} {noun}" if tokens == most else f"{tokens} of {most} {noun}"


def _words(count: int) -> str:
    return "1 word" if count == 1 else f"{count} words"


def _exact(name: str, epsilon: Fraction, precision: int, noise: DenseNoise | SparseNoise) -> Exact:
    reach = min(precision + _BEYOND, _REACH)
    return Exact(
        name,
        round_up(epsilon),
        f"Probabilities were compared of outcomes from {-reach} to {reach}, as the sampler has "
        "them.",
        lambda: shift_loss(noise_masses(noise, reach), precision),
    )
