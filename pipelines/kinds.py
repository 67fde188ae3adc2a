"""The kinds of release, by the spec's mechanism block."""

from __future__ import annotations

from pipelines.bag_of_words import BagOfWordsKind
from pipelines.embedded_words import EmbeddedWordsKind
from pipelines.histogram import HistogramKind
from pipelines.kind import Kind
from pipelines.sentences import SentencesKind
from pipelines.spec import Spec
from pipelines.spec_mechanisms import BagOfWordsSpec, HistogramSpec, WordsSpec
from pipelines.words import WordsKind
from transforms.sentences import SentenceMechanism


def prepare(spec: Spec) -> Kind:
    """Find and check what the spec names; raises InputError before anything starts."""
    match spec.mechanism:
        case BagOfWordsSpec() as mechanism:
            return BagOfWordsKind.found(mechanism)
        case HistogramSpec() as mechanism:
            return HistogramKind.found(mechanism)
        case WordsSpec() as mechanism:
            return WordsKind.found(mechanism)
        case mechanism if mechanism.mechanism is SentenceMechanism.MADLIB:
            return EmbeddedWordsKind.found(mechanism)
        case mechanism:
            return SentencesKind.found(mechanism)
