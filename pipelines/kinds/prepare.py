"""The kinds of release, by the spec's mechanism block."""

from __future__ import annotations

import importlib.util

from quietcorpus.pipelines.kinds.bags import BagOfWordsKind
from quietcorpus.pipelines.kinds.histogram import HistogramKind
from quietcorpus.pipelines.kinds.kind import Kind
from quietcorpus.pipelines.kinds.sentences import SentencesKind
from quietcorpus.pipelines.kinds.sentences_by_words import EmbeddedWordsKind
from quietcorpus.pipelines.kinds.words import WordsKind
from quietcorpus.pipelines.spec.bags import BagOfWordsSpec
from quietcorpus.pipelines.spec.embeddings import EmbeddingMethod, WordEmbeddingsSpec
from quietcorpus.pipelines.spec.histogram import HistogramSpec
from quietcorpus.pipelines.spec.spec import Spec
from quietcorpus.pipelines.spec.words import WordsSpec
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.privatizers.sentences import SentenceMechanism


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
    from quietcorpus.pipelines.kinds.embeddings_counted import CountedEmbeddingsKind
    from quietcorpus.pipelines.kinds.embeddings_trained import TrainedEmbeddingsKind

    if spec.method is EmbeddingMethod.SGD:
        return TrainedEmbeddingsKind.found(spec, workers)
    return CountedEmbeddingsKind.found(spec)
