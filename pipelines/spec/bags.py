"""The mechanism block of `kind: bag-of-words`."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from quietcorpus.indexes.compression import Method
from quietcorpus.mechanisms.bag_of_words import Accounting
from quietcorpus.pipelines.spec.limited_precision import LimitedPrecisionSpec
from quietcorpus.pipelines.spec.values import Count, Epsilon, Location, Strict


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

    def sources(self) -> Iterator[tuple[str, str]]:
        """The public vocabulary and vectors, if there are any."""
        yield from super().sources()
        if self.compression.embedding:
            yield "compression.embedding.public", self.compression.embedding.public
