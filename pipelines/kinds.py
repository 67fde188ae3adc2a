"""The kinds of release, by the spec's mechanism block."""

from __future__ import annotations

import importlib.util

from pipelines.bag_of_words import BagOfWordsKind
from pipelines.embedded_words import EmbeddedWordsKind
from pipelines.histogram import HistogramKind
from pipelines.kind import Kind
from pipelines.sentences import SentencesKind
from pipelines.spec import Spec
from pipelines.spec_embeddings import EmbeddingMethod, WordEmbeddingsSpec
from pipelines.spec_mechanisms import BagOfWordsSpec, HistogramSpec, WordsSpec
from pipelines.words import WordsKind
from transforms.errors import InputError
from transforms.sentences import SentenceMechanism


def prepare(spec: Spec, workers: int = 1) -> Kind:
    """Find and check what the spec names; raises InputError before anything starts.

    `workers` is the number of processes of this machine that the launcher's own work may use.
    """
    match spec.mechanism:
        case BagOfWordsSpec() as mechanism:
            return BagOfWordsKind.found(mechanism)
        case HistogramSpec() as mechanism:
            return HistogramKind.found(mechanism)
        case WordsSpec() as mechanism:
            return WordsKind.found(mechanism)
        case WordEmbeddingsSpec() as mechanism:
            return _word_embeddings(mechanism, workers)
        case mechanism if mechanism.mechanism is SentenceMechanism.MADLIB:
            return EmbeddedWordsKind.found(mechanism)
        case mechanism:
            return SentencesKind.found(mechanism)


def _word_embeddings(spec: WordEmbeddingsSpec, workers: int) -> Kind:
    for module, package in (("dp_accounting", "dp-accounting"), ("flint", "python-flint")):
        if importlib.util.find_spec(module) is None:
            raise InputError(
                f"mechanism.kind: {package} is not installed; install the extra [embeddings]"
            )
    # These import what is not installed with every quietcorpus.
    from pipelines.counted_embeddings import CountedEmbeddingsKind
    from pipelines.trained_embeddings import TrainedEmbeddingsKind

    if spec.method is EmbeddingMethod.SGD:
        return TrainedEmbeddingsKind.found(spec, workers)
    return CountedEmbeddingsKind.found(spec)
