"""The meaning of epsilon for the words of an index: estimates from public data, for the card."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from quietcorpus.evaluation.calibration import choose_words, measure
from quietcorpus.evaluation.recall import noisy_queries, recall
from quietcorpus.evaluation.simulation import (
    BrrSimulator,
    DistanceSimulator,
    MadlibSimulator,
    Simulator,
    VickreySimulator,
)
from quietcorpus.indexes.engines import vector_search
from quietcorpus.indexes.search import EXACT, Search, VectorSearch
from quietcorpus.indexes.word_index import WordIndex
from quietcorpus.indexes.word_index_manifest import IndexManifest
from quietcorpus.mechanisms.guarantees import round_up
from quietcorpus.mechanisms.tem import radius_of
from quietcorpus.transforms.privatizers.words import WordMechanism, WordsParameters

from ..artefacts.distances import distance, mean_interval
from ..card.document_losses import (
    DELTA,
    LENGTHS,
    Flips,
    Noise,
    Weights,
    WordLaw,
    document_losses,
)
from ..card.model import Meaning, MeasuredRecall, Spread, Typical
from ..card.words import (
    DOCUMENT_WORDS,
    DRAWS,
    HELD_DRAWS,
    QUERIES,
    SAMPLED_WORDS,
    SHARING_WORDS,
    sample_of,
)

_SEED = 1  # for estimates on public data, which are thus the same for every release


def simulator(
    mechanism: WordMechanism,
    index: WordIndex,
    search: VectorSearch | None = None,
    truncation: Fraction | None = None,
    tuning: Fraction | None = None,
) -> Simulator:
    """Return a simulator of the mechanism on the index's words, for estimates.

    Args:
        mechanism: the mechanism.
        index: the index, with what the mechanism reads.
        search: the release's, if it is approximate; all others find what exact search finds.
        truncation: for `tem`, gamma; None for the one that follows from epsilon and the index.
        tuning: for `vickrey`, t.
    """
    match mechanism:
        case WordMechanism.MADLIB:
            return MadlibSimulator(index.vectors, search)
        case WordMechanism.VICKREY:
            assert tuning is not None
            return VickreySimulator(
                index.vectors, search or vector_search(EXACT, index.vectors), tuning
            )
        case WordMechanism.BRR:
            return BrrSimulator(index.codes)
        case WordMechanism.TEM:
            return DistanceSimulator(index.vectors, partial(_gamma, truncation, len(index.vectors)))
        case WordMechanism.EXPONENTIAL:
            return DistanceSimulator(index.vectors, _unbounded)


def _gamma(truncation: Fraction | None, words: int, epsilon: float) -> float:
    return float(truncation or radius_of(Fraction(epsilon), words))


def _unbounded(_: float) -> float:
    return math.inf


def gamma_of(parameters: WordsParameters, manifest: IndexManifest) -> Fraction | None:
    """Return the gamma of every word of a release by TEM; None where they have none in common."""
    if parameters.mechanism is not WordMechanism.TEM or parameters.truncation is not None:
        return parameters.truncation
    return radius_of(parameters.epsilon, manifest.words) if parameters.per == "word" else None


def approximate_search(parameters: WordsParameters, index: WordIndex) -> VectorSearch | None:
    """Return the search that a release's words depend on; None if it finds what exact search finds.

    Raises InputError if the engine cannot search this index here, whichever it is.
    """
    if parameters.search == EXACT:
        return None
    if parameters.search.approximate:
        return parameters.vector_search_of(index)
    parameters.search_of(index)
    return None


def law_of(
    mechanism: WordMechanism, manifest: IndexManifest, truncation: Fraction | None = None
) -> WordLaw:
    """Return what the law of one word's loss depends on besides epsilon and a distance.

    `truncation` is gamma, if it is the same for every epsilon.
    """
    match mechanism:
        case WordMechanism.MADLIB | WordMechanism.VICKREY:
            return Noise(manifest.dimensions)
        case WordMechanism.BRR:
            return Flips()
        case WordMechanism.TEM | WordMechanism.EXPONENTIAL:
            maximum = distance(manifest, mechanism, "maximum")
            return Weights(maximum if truncation is None else truncation)


def explain_epsilon(
    parameters: WordsParameters, index: WordIndex, delta: Fraction = DELTA
) -> Meaning:
    """Estimate what the release's epsilon means for the words of its index.

    `delta` is that of what whole documents are protected by.

    Raises InputError if the engine of the search cannot search them here.
    """
    search = approximate_search(parameters, index)
    mean, maximum = (
        distance(index.manifest, parameters.mechanism, by) for by in ("mean", "maximum")
    )
    longest = [] if parameters.longest is None else [parameters.longest.words]
    lengths = [None] if parameters.per == "word" else list(SHARING_WORDS)
    epsilons = [float(parameters.epsilon / (length or 1)) for length in lengths]
    seed = np.random.SeedSequence(_SEED)
    words = choose_words(index.manifest.words, min(SAMPLED_WORDS, index.manifest.words), seed)
    measured = measure(
        simulator(parameters.mechanism, index, search, parameters.truncation, parameters.tuning),
        words,
        epsilons,
        DRAWS,
        HELD_DRAWS,
        seed,
    )
    unchanged, sizes = measured.unchanged_share, measured.set_size
    return Meaning(
        mean_distance=float(mean),
        mean_interval=mean_interval(index.manifest, parameters.mechanism),
        maximum_distance=round_up(maximum),
        loss_at_mean=round_up(mean * parameters.epsilon),
        loss_at_maximum=round_up(maximum * parameters.epsilon),
        loss_of_documents={
            length: round_up(mean * parameters.epsilon * length) for length in DOCUMENT_WORDS
        }
        if parameters.per == "word"
        else None,
        document_losses=document_losses(
            law_of(parameters.mechanism, index.manifest, gamma_of(parameters, index.manifest)),
            {
                length: parameters.epsilon / (1 if parameters.per == "word" else length)
                for length in sorted({*LENGTHS, *longest})
            },
            mean,
            maximum,
            delta,
        ),
        rescaled=None if index.manifest.rescaled is None else dict(index.manifest.rescaled),
        typical=[
            Typical(
                document_words=length,
                epsilon=epsilons[i],
                unchanged=_spread(unchanged[i]),
                set_size=_spread(sizes[i]),
                set_size_limit=measured.held,
                recall=None if search is None else _recall(search, index, epsilons[i]),
            )
            for i, length in enumerate(lengths)
        ],
        sample=sample_of(index.manifest.words),
    )


def _recall(search: Search, index: WordIndex, epsilon: float) -> MeasuredRecall:
    seed = np.random.SeedSequence([_SEED, 1])
    queries = noisy_queries(index.vectors, epsilon, QUERIES, seed)
    found = recall(search, vector_search(EXACT, index.vectors), queries)
    return MeasuredRecall(share=found.share, interval=list(found.interval), queries=found.queries)


def _spread(values: npt.NDArray[np.number]) -> Spread:
    least, low, median, high, largest = map(float, np.quantile(values, [0, 0.05, 0.5, 0.95, 1]))
    return Spread(least=least, low=low, median=median, high=high, largest=largest)
