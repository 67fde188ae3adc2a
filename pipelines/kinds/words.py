"""The job of `kind: words`: every document's text, privatised word by word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import apache_beam as beam

from quietcorpus.indexes.faiss_library import faiss
from quietcorpus.indexes.languages import LANGUAGES
from quietcorpus.indexes.vocabulary import some_of
from quietcorpus.indexes.word_index import WordIndex
from quietcorpus.mechanisms.guarantees import MetricPrivacy, Spending, round_up
from quietcorpus.transforms.artefacts.word_index import IndexSource
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.privatizers.longest import Longest
from quietcorpus.transforms.privatizers.words import (
    WordsParameters,
    parts_read,
)
from quietcorpus.transforms.shards import Tally, Written

from ..artefacts.distances import distance, matched
from ..card import model as card
from ..card.document_losses import DELTA, DocumentBudget
from ..card.facts import problem_of
from ..card.weakness import Weakness, of_guarantee, of_words
from ..card.words import word_limits
from ..schema.search import searching
from ..schema.tokenizers import tokenizer_of_index
from ..schema.values import LARGEST_EPSILON
from ..schema.words import DocumentEpsilon, MatchedEpsilon, WordsSpec
from ..storage import places
from . import noise
from .job import Job, release_documents
from .kind import Account, Kind
from .word_meaning import explain_epsilon, gamma_of, law_of

_FEW = 3
"""An index of a corpus's own language knows more than one in so many of its words; of eleven
languages' corpora, none of another one had more, measured by words of five documents or more."""
_SMALLEST_EPSILON = Fraction(1, 10**6)


@dataclass(frozen=True)
class WordsKind(Kind):
    """The kind `words`, with what it reads of its index found, verified and memory-mapped."""

    spec: WordsSpec
    parameters: WordsParameters
    index: WordIndex
    meaning: card.Meaning

    passes = 1
    laws = MappingProxyType({"words": 1})
    has_documents = True

    @classmethod
    def resolve(cls, spec: WordsSpec, _workers: int = 1) -> WordsKind:
        """Open the index and compute epsilon; raises InputError if either cannot be used."""
        source = IndexSource.resolve("mechanism.index", spec.index)
        search = searching(spec.search)
        index = source.open(*parts_read(spec.mechanism, search))
        if index.manifest.guarantee and (problem := problem_of(index.manifest.guarantee)):
            raise InputError(
                f"mechanism.index: {spec.index}: its vectors' guarantee {problem}; build it with "
                "the guarantee of their release"
            )
        budget = spec.budget
        parameters = WordsParameters(
            spec.mechanism,
            _epsilon(spec, index),
            "word" if spec.document_epsilon is None or budget else "document",
            spec.out_of_vocabulary,
            source,
            search,
            tokenizer_of_index(spec.tokenizer, index),
            None if budget is None else Longest(budget.words, budget.longer),
            spec.truncation,
            spec.tuning,
        )
        # The meaning needs the index alone, so it need not wait for the end of a long run.
        delta = DELTA if budget is None else budget.delta
        return cls(spec, parameters, index, explain_epsilon(parameters, index, delta))

    @property
    def computing(self) -> str:
        # Exact engines find the same words, whatever their version.
        search = f"faiss {faiss().__version__}" if self.parameters.search.approximate else ""
        return "; ".join(filter(None, (search, self.parameters.tokenizer.software)))

    @property
    def artefacts(self) -> Sequence[card.UsedArtefact]:
        source, manifest = self.parameters.index, self.index.manifest
        return [
            card.UsedArtefact(
                name="index",
                uri=places.without_folders(source.uri),
                digest=source.digest,
                provenance=manifest.provenance,
                guarantee=manifest.guarantee,
            )
        ]

    def build(self, pipeline: beam.Pipeline, job: Job) -> None:
        release_documents(pipeline, job, self.parameters)

    def check(self, tally: Tally) -> None:
        if not tally.known:
            raise InputError(
                f"mechanism.index: {self.spec.index} has none of the corpus's words; give an index "
                "of the corpus's language, and check input.text"
            )

    def noticed(self, tally: Tally) -> Sequence[str]:
        if _FEW * tally.known >= tally.tokens:
            return ()
        language = self.index.manifest.spoken
        of = f", whose words are {LANGUAGES[language]}" if language else ""
        return [
            f"mechanism.index: fewer than one in {_FEW} words of the corpus are in "
            f"{self.spec.index}{of}: is it of the corpus's language? Keep this line where the "
            "corpus is kept"
        ]

    @property
    def cost(self) -> MetricPrivacy:
        return self.parameters.guarantee

    @property
    def unit_scope(self) -> str:
        return self.parameters.index.digest

    @property
    def weaknesses(self) -> Sequence[Weakness]:
        """Return the weaknesses of epsilon for this index, and of a private index's own cost."""
        return [*of_words(self.meaning), *of_guarantee(self.cost, self.artefacts)]

    @property
    def expected_noise(self) -> Sequence[str]:
        return noise.of_words(self.meaning)

    @property
    def sample_words(self) -> Sequence[str]:
        return some_of(self.index.vocabulary)

    def account(self, files: Sequence[Written]) -> Account:
        total = self.cost
        resolved: dict[str, Any] = {
            "epsilon_exact": str(total.epsilon),
            "words": self.index.manifest.words,
        }
        gamma = gamma_of(self.parameters, self.index.manifest)
        if gamma is not None:
            resolved |= {"gamma": round_up(gamma), "gamma_exact": str(gamma)}
        if self.spec.budget is None:  # which the card states as it was given
            resolved[_key(self.spec)] = round_up(total.epsilon)
        given = getattr(self.spec, _key(self.spec))
        if isinstance(given, MatchedEpsilon):
            resolved["matched"] = given.matching
        spendings = [Spending("documents", total)]
        parameters = self.parameters
        limits = word_limits(
            self.spec.mechanism,
            parameters.tokenizer.description,
            parameters.out_of_vocabulary,
            is_private=self.index.manifest.provenance == "private",
        )
        return Account(spendings, total, resolved, limits, meaning=self.meaning)


def _key(spec: WordsSpec) -> str:
    return "epsilon" if spec.document_epsilon is None else "document_epsilon"


def _epsilon(spec: WordsSpec, index: WordIndex) -> Fraction:
    key = _key(spec)
    match getattr(spec, key):
        case MatchedEpsilon(matching=other):
            found = matched(
                other.epsilon, other.mechanism, spec.mechanism, other.by, index.manifest
            )
        case DocumentEpsilon(epsilon=epsilon, delta=delta, words=words):
            law = law_of(spec.mechanism, index.manifest, spec.truncation)
            maximum = distance(index.manifest, spec.mechanism, "maximum")
            if not maximum:
                raise InputError(f"mechanism.index: {spec.index}: all its words have one place")
            found = DocumentBudget(epsilon, delta, words).word_epsilon(law, maximum)
        case number:
            found = number
    if found > LARGEST_EPSILON:
        raise InputError(
            f"mechanism.{key}: {float(found):g} protects nothing; give at most {LARGEST_EPSILON:g}"
        )
    if found < _SMALLEST_EPSILON:
        raise InputError(
            f"mechanism.{key}: {float(found):g} is so small that nothing of a word is left; give "
            f"at least {float(_SMALLEST_EPSILON):g}"
        )
    return found


resolve = WordsKind.resolve
