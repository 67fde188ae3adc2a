"""Audits of bags of words."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import numpy.typing as npt

from quietcorpus.evaluation.audits.findings import Exact, Sampled
from quietcorpus.evaluation.audits.lower_bound import epsilon_at_least
from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.accounting.guarantees import round_up
from quietcorpus.mechanisms.bags.bag_of_words import add_noise
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.noise.geometric import DenseNoise, SparseNoise
from quietcorpus.transforms.codebook import Codebook
from quietcorpus.transforms.privatizers.bags import BagOfWordsParameters
from quietcorpus.transforms.reading.documents import Corpus

from ...audit.inputs import fresh_stream, made_up_words, released, telling
from ...canaries.game import Coins, Document, Game, Scores, rows_of, words_for
from ...card.loading import LoadedRelease
from ..histogram.checks import exact_law, of_histogram, of_vocabulary, share_of
from .job import BagOfWordsKind

_BINS = 4
_TERMS_A_BIN = 16  # at most
_PRIVATE_SIZE = 1 << 10  # of a vocabulary that is selected in the run
_TOKENS = 1 << 22  # in all documents that are drawn for one audit, about


def audits(kind: BagOfWordsKind) -> list[Exact | Sampled]:
    """Return the audits of all stages."""
    bins = kind.spec.compression.size
    size = kind.vocabulary.size or max(bins or 0, _PRIVATE_SIZE)
    histogram = kind.histogram
    return [
        *of_vocabulary(kind.vocabulary),
        *(of_histogram(histogram, kind.vocabulary) if histogram else []),
        *of_documents(kind.parameters, size, bins or size),
    ]


def of_documents(parameters: BagOfWordsParameters, size: int, bins: int) -> list[Exact | Sampled]:
    """Return audits of the noise on documents at these sizes, and of releases of two documents.

    Those releases have only a few bins, with about as many terms in each as at these sizes. Their
    audits test the statement of that smaller mechanism, under the accounting of the spec.
    """
    mechanism = parameters.mechanism(size, bins)
    guarantee, noise = mechanism.guarantee, mechanism.noise()
    codebook = codebook_of(min(_TERMS_A_BIN, max(1, round(size / bins))))
    small = parameters.mechanism(len(codebook.bins), codebook.size)
    audits: list[Exact | Sampled] = [
        exact_law("documents: the noise's law", guarantee.epsilon, guarantee.precision, noise)
    ]
    epsilon, most = small.guarantee.epsilon, guarantee.precision
    for tokens in sorted({telling(float(epsilon), most), most}):
        stated = round_up(epsilon * tokens / most)
        about = share_of(tokens, most)
        draws = max(1000, _TOKENS // tokens)
        audits.append(
            Sampled(
                f"documents: {about}",
                stated,
                f"Two documents were released over {_BINS} bins, one of which had "
                f"{_words(tokens)} more.",
                partial(
                    epsilon_at_least, partial(documents_released, parameters, codebook), 0, tokens
                ),
                most=draws,
            )
        )
        if isinstance(noise, SparseNoise):
            sparse = SparseNoise(small.rate, _BINS)
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


def codebook_of(terms: int) -> Codebook:
    """Build a codebook of a few bins with `terms` made-up terms each."""
    names = list(itertools.islice(made_up_words(), _BINS * terms))
    return Codebook(
        Vocabulary(names), np.tile(np.arange(_BINS, dtype=np.int32), terms), _BINS, weights=None
    )


def documents_released(
    parameters: BagOfWordsParameters, codebook: Codebook, more: int, count: int
) -> npt.NDArray[np.int64]:
    """Release two documents `count` times by the whole path; the second has `more` words more.

    Returns int64 (count, 8): the counts of four bins in the first, then in the second.
    """
    privatizer = parameters.privatizer(ReleaseKey.fresh(), codebook)
    added, kept = codebook.vocabulary.terms[:2].to_pylist()
    texts = kept, " ".join([kept, *[added] * more])
    parts = []
    for rows in released(privatizer, texts, count):
        terms, counts = (rows[name].combine_chunks() for name in ("terms", "counts"))
        matrix = np.zeros((len(rows), _BINS), dtype=np.int64)
        places = np.repeat(np.arange(len(rows)), np.diff(terms.offsets.to_numpy()))
        matrix[places, terms.values.to_numpy()] = counts.values.to_numpy()
        parts.append(matrix)
    return np.concatenate(parts).reshape(count, -1)


def documents_noised(
    noise: DenseNoise | SparseNoise, more: int, count: int
) -> npt.NDArray[np.int64]:
    """Return the noisy counts of two such documents, including negative ones: int64 (count, 8)."""
    lengths = np.tile([0, more], count)
    stream, addresses = fresh_stream([bytes(4 * length) for length in lengths.tolist()])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    bins = np.zeros(int(offsets[-1]), dtype=np.int32)
    bags = add_noise(noise, _BINS, stream, addresses, offsets, bins)
    matrix = np.zeros((2 * count, _BINS), dtype=np.int64)
    matrix[np.repeat(np.arange(2 * count), np.diff(bags.offsets)), bags.entries] = bags.counts
    return matrix.reshape(count, -1)


def _words(count: int) -> str:
    return "1 word" if count == 1 else f"{count} words"


_WORDS = 100
"""The number of words among canaries; of a private vocabulary, they are the likeliest."""
_CLEAR = 4
"""Precisions over epsilon: how far counts are from zero, at which noise would be clipped."""


def game(kind: BagOfWordsKind, canaries: int, corpus: Corpus) -> Game:
    """Return documents of one word, with or without `precision` more of it."""
    step, spec = kind.vocabulary, kind.spec
    words = words_for(step.public, step.tokenizer, corpus, _WORDS)[:_WORDS]
    own = [words[number % len(words)] for number in range(canaries)]
    base = math.ceil(_CLEAR * spec.precision / spec.epsilon)

    def score(loaded: LoadedRelease, _: Coins) -> Scores:
        rows, terms = rows_of(loaded, canaries), loaded.tables["vocabulary"]["term"].to_pylist()
        numbers = {term: number for number, term in enumerate(terms)}
        bins = np.arange(len(terms))
        if "compression" in loaded.tables:
            bins = loaded.tables["compression"]["bin"].to_numpy()
        counts = np.zeros(canaries)
        for place, (word, row) in enumerate(zip(own, rows.to_pylist(), strict=True)):
            if word in numbers:
                beside = bins[np.array(row["terms"], np.int64)] == bins[numbers[word]]
                counts[place] = np.array(row["counts"])[beside].sum() - base - spec.precision / 2
        return counts

    cost = kind.cost
    return Game(
        [
            (
                [Document(" ".join([word] * (base + spec.precision)), {})],
                [Document(" ".join([word] * base), {})],
            )
            for word in own
        ],
        score,
        float(cost.epsilon),
        float(cost.delta),
        f"A canary is a document that has a word {base} times, or {spec.precision} times more. Its "
        "score is the row's count of the word and of those that share its bin.",
        shows=float(spec.epsilon),
        linked=True,
    )
