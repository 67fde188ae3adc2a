"""The mechanism block of `kind: bag-of-words`."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema, model_validator

from quietcorpus.indexes.maps.compression import Assignment, Method
from quietcorpus.mechanisms.bags.bag_of_words import Accounting

from ...schema.blocks import PublicVectors
from ...schema.values import Count, Epsilon, Strict, of_key, only
from ..histogram.spec import LimitedPrecisionSpec


class CompressionSpec(Strict):
    """The compression map."""

    method: Annotated[Method, Field(strict=False, description="how words are shared out to bins")]
    size: Annotated[
        Count | None, Field(description="the number of bins K; for every method but `none`")
    ] = None
    embedding: Annotated[
        PublicVectors | None,
        Field(description="word vectors; for `embedding-cluster` and `embedding-disperse` alone"),
    ] = None
    assignment: Annotated[
        Assignment | None,
        Field(
            strict=False,
            description="how `embedding-cluster` fills clusters of equal size: `greedy`, the "
            "default, or `optimal`, with the least sum of squared distances",
        ),
    ] = None

    @model_validator(mode="after")
    def _complete(self) -> CompressionSpec:
        if self.method.sized != (self.size is not None):
            raise of_key("size", "give the number of bins, unless `method` is none")
        if self.method.embedded != (self.embedding is not None):
            raise of_key("embedding", "give `{public: PATH}` for the embedding methods alone")
        if self.assignment and self.method is not Method.EMBEDDING_CLUSTER:
            raise of_key("assignment", "serves `method: embedding-cluster` alone; leave it out")
        return self


class BagOfWordsSpec(LimitedPrecisionSpec):
    """`kind: bag-of-words`."""

    kind: Annotated[
        Literal["bag-of-words"], Field(description="release the words of each document, counted")
    ]
    histogram_epsilon: Annotated[
        Epsilon | None,
        Field(
            description="the privacy budget of the corpus's histogram, by which the words of a bin "
            "are drawn; required unless the compression method is `none`"
        ),
    ] = None
    accounting: Annotated[
        Accounting,
        Field(
            strict=False,
            description="`tight` states the least epsilon that is proved; `per-entry` is the "
            "paper's and needs a public vocabulary",
        ),
    ] = Accounting.TIGHT
    compression: Annotated[CompressionSpec, Field(description="the map from words to bins")]
    include: Annotated[
        Annotated[list[str], only("bins"), WithJsonSchema({"const": ["bins"]})] | None,
        Field(description="`[bins]` adds the noisy counts to every row, at no further cost"),
    ] = None

    def _rates(self) -> dict[str, Fraction]:
        histogram = self.histogram_epsilon
        return super()._rates() | ({"histogram_epsilon": histogram} if histogram else {})

    @model_validator(mode="after")
    def _fixed_guarantee(self) -> BagOfWordsSpec:
        if self.accounting is Accounting.PER_ENTRY and self.vocabulary.private:
            raise of_key(
                "accounting",
                "per-entry spends V * epsilon / K, and a private vocabulary's size V "
                "is not known before the run; give a public vocabulary, or tight accounting",
            )
        return self

    @model_validator(mode="after")
    def _histogram(self) -> BagOfWordsSpec:
        if self.compression.method.sized and self.histogram_epsilon is None:
            raise of_key(
                "histogram_epsilon",
                "missing; the terms of a bin are drawn by the private "
                "histogram, so give its epsilon (or compression: {method: none})",
            )
        return self

    def sources(self) -> Iterator[tuple[str, str]]:
        """Yield the public vocabulary and vectors, if there are any."""
        yield from super().sources()
        if self.compression.embedding:
            yield "compression.embedding.public", self.compression.embedding.public
