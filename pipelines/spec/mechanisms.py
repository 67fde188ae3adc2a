"""The mechanism block of a spec, one class for each kind of release."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from quietcorpus.indexes.compression import Method
from quietcorpus.mechanisms.bag_of_words import Accounting
from quietcorpus.mechanisms.deep_candidate import Utility
from quietcorpus.mechanisms.geometric import MINIMUM_RATE
from quietcorpus.pipelines.spec.embeddings import WordEmbeddingsSpec
from quietcorpus.pipelines.spec.values import Count, Epsilon, Location, Strict
from quietcorpus.pipelines.spec.vocabulary import VocabularySpec
from quietcorpus.transforms.artefacts.encoder import PACKAGED
from quietcorpus.transforms.privatizers.sentences import SentenceMechanism
from quietcorpus.transforms.privatizers.words import WordMechanism


class PublicArtefact(Strict):
    """A public artefact."""

    public: Location


class CompressionSpec(Strict):
    """The compression map."""

    method: Annotated[Method, Field(strict=False)]
    size: Count | None = None
    embedding: PublicArtefact | None = None

    @model_validator(mode="after")
    def _complete(self) -> CompressionSpec:
        if (self.method is Method.NONE) != (self.size is None):
            raise PydanticCustomError(
                "size", "size: give the number of bins, unless `method` is none"
            )
        embedded = self.method in (Method.EMBEDDING_CLUSTER, Method.EMBEDDING_DISPERSE)
        if embedded != (self.embedding is not None):
            raise PydanticCustomError(
                "embedding", "embedding: give `{public: PATH}` for the embedding methods alone"
            )
        return self


class LimitedPrecisionSpec(Strict):
    """What the kinds under limited-precision local privacy have in common."""

    precision: Count
    epsilon: Epsilon
    vocabulary: VocabularySpec
    tokenizer: Literal["unicode-words-v1"] = "unicode-words-v1"

    def _rates(self) -> dict[str, Fraction]:
        private = self.vocabulary.private
        return {"epsilon": self.epsilon} | (
            {"vocabulary.private.epsilon": private.epsilon} if private else {}
        )

    @model_validator(mode="after")
    def _enough_epsilon(self) -> LimitedPrecisionSpec:
        for key, epsilon in self._rates().items():
            if epsilon / self.precision < MINIMUM_RATE:
                raise PydanticCustomError(
                    "rate",
                    f"{key}: {float(epsilon):g} over a precision of {self.precision} is less than "
                    f"{float(MINIMUM_RATE):g} a token: such noise drowns everything; raise epsilon",
                )
        return self


class HistogramSpec(LimitedPrecisionSpec):
    """`kind: histogram`."""

    kind: Literal["histogram"]


def _of_bins(value: object) -> object:
    if value != ["bins"]:
        raise PydanticCustomError("include", "is not allowed; give [bins], or leave it out")
    return value


class BagOfWordsSpec(LimitedPrecisionSpec):
    """`kind: bag-of-words`."""

    kind: Literal["bag-of-words"]
    histogram_epsilon: Epsilon | None = None
    accounting: Annotated[Accounting, Field(strict=False)] = Accounting.TIGHT
    compression: CompressionSpec
    include: Annotated[list[str], BeforeValidator(_of_bins)] | None = None

    def _rates(self) -> dict[str, Fraction]:
        histogram = self.histogram_epsilon
        return super()._rates() | ({"histogram_epsilon": histogram} if histogram else {})

    @model_validator(mode="after")
    def _fixed_guarantee(self) -> BagOfWordsSpec:
        if self.accounting is Accounting.PER_ENTRY and self.vocabulary.private:
            raise PydanticCustomError(
                "accounting",
                "accounting: per-entry spends V * epsilon / K, and a private vocabulary's size V "
                "is not known before the run; give a public vocabulary, or tight accounting",
            )
        return self

    @model_validator(mode="after")
    def _histogram(self) -> BagOfWordsSpec:
        if self.compression.method is not Method.NONE and self.histogram_epsilon is None:
            raise PydanticCustomError(
                "histogram",
                "histogram_epsilon: missing; the terms of a bin are drawn by the private "
                "histogram, so give its epsilon (or compression: {method: none})",
            )
        return self


class Matching(Strict):
    """Another mechanism, and the epsilon that it would be run at."""

    mechanism: Annotated[WordMechanism, Field(strict=False)]
    epsilon: Epsilon
    by: Literal["mean", "maximum"] = "mean"


class MatchedEpsilon(Strict):
    """An epsilon that is as private as another mechanism's, by the privacy ratio."""

    matching: Matching


def _is_matched(value: object) -> str:
    return "<matching>" if isinstance(value, dict | MatchedEpsilon) else "<number>"


WordEpsilon = Annotated[
    Annotated[Epsilon, Tag("<number>")] | Annotated[MatchedEpsilon, Tag("<matching>")],
    Discriminator(_is_matched),
]


class WordsSpec(Strict):
    """`kind: words`."""

    kind: Literal["words"]
    mechanism: Annotated[WordMechanism, Field(strict=False)]
    epsilon: WordEpsilon | None = None
    document_epsilon: WordEpsilon | None = None
    index: Location
    out_of_vocabulary: Literal["drop", "draw"] = "drop"
    tokenizer: Literal["unicode-words-v1"] = "unicode-words-v1"

    @model_validator(mode="after")
    def _one_epsilon(self) -> WordsSpec:
        if (self.epsilon is None) == (self.document_epsilon is None):
            raise PydanticCustomError(
                "one",
                "give exactly one of `epsilon`, which every word has, and `document_epsilon`, "
                "which the words of a document share",
            )
        given = self.epsilon or self.document_epsilon
        if isinstance(given, MatchedEpsilon) and given.matching.mechanism is self.mechanism:
            raise PydanticCustomError(
                "matching",
                f"{'epsilon' if self.epsilon else 'document_epsilon'}.matching.mechanism: "
                f"{self.mechanism.value} is this mechanism itself; give epsilon as a number",
            )
        return self


MOST_SENTENCES = 1_024  # of a document: what a worker encodes at a time must fit its memory


class SentencesSpec(Strict):
    """`kind: sentence-embeddings`."""

    kind: Literal["sentence-embeddings"]
    mechanism: Annotated[SentenceMechanism, Field(strict=False)]
    epsilon: Epsilon
    candidates: Location
    encoder: Annotated[str, Field(min_length=1)] = PACKAGED
    index: Location | None = None
    utility: Annotated[Utility, Field(strict=False)] | None = None
    projections: Count | None = None
    most_sentences: Annotated[Count, Field(le=MOST_SENTENCES)] = 64

    @model_validator(mode="after")
    def _of_the_mechanism(self) -> SentencesSpec:
        drawn = self.mechanism is SentenceMechanism.DEEP_CANDIDATE
        if not drawn and self.utility is not None:
            raise PydanticCustomError("utility", "utility: is for deep-candidate alone")
        if (self.mechanism is SentenceMechanism.MADLIB) != (self.index is not None):
            raise PydanticCustomError(
                "index", "index: give the words' own for madlib, and for nothing else"
            )
        projected = drawn and self.utility is not Utility.SIMILARITY
        if not projected and self.projections is not None:
            raise PydanticCustomError(
                "projections", "projections: is for the depths of deep-candidate alone"
            )
        return self


MechanismSpec = HistogramSpec | BagOfWordsSpec | WordsSpec | SentencesSpec | WordEmbeddingsSpec
KINDS: dict[str, type[BaseModel]] = {
    "bag-of-words": BagOfWordsSpec,
    "histogram": HistogramSpec,
    "words": WordsSpec,
    "sentence-embeddings": SentencesSpec,
    "word-embeddings": WordEmbeddingsSpec,
}
TAGS = {"<number>": None, "<matching>": MatchedEpsilon}
"""The ways to write an epsilon, by the names that errors give them."""
