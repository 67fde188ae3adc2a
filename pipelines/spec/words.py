"""The mechanism block of `kind: words`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import (
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    model_serializer,
    model_validator,
)

from quietcorpus.indexes.folder import MANIFEST
from quietcorpus.pipelines.spec.mechanism import MechanismSpec
from quietcorpus.pipelines.spec.search import SearchSpec, unless_given
from quietcorpus.pipelines.spec.tokenizers import TokenizerSpec
from quietcorpus.pipelines.spec.values import (
    Epsilon,
    Location,
    Strict,
    of_key,
    one_of,
)
from quietcorpus.transforms.privatizers.words import WordMechanism


class Matching(Strict):
    """Another mechanism, and the epsilon at which it would be run."""

    mechanism: Annotated[WordMechanism, Field(strict=False, description="the other mechanism")]
    epsilon: Annotated[Epsilon, Field(description="its epsilon per unit of its distance")]
    by: Annotated[
        Literal["mean", "maximum"],
        Field(description="which distance between two words the two are compared at"),
    ] = "mean"


class MatchedEpsilon(Strict):
    """An epsilon that is as private as another mechanism's, by the privacy ratio."""

    matching: Annotated[Matching, Field(description="the other mechanism and its epsilon")]


def _is_matched(value: object) -> str:
    return "<matching>" if isinstance(value, dict | MatchedEpsilon) else "<number>"


WordEpsilon = Annotated[
    Annotated[Epsilon, Tag("<number>")] | Annotated[MatchedEpsilon, Tag("<matching>")],
    Discriminator(_is_matched),
]


class WordsSpec(MechanismSpec):
    """`kind: words`."""

    model_config = one_of("epsilon", "document_epsilon")

    kind: Annotated[Literal["words"], Field(description="release text, each word replaced")]
    mechanism: Annotated[
        WordMechanism,
        Field(
            strict=False,
            description="`madlib` adds noise to a word's vector, `brr` flips bits of its code",
        ),
    ]
    epsilon: Annotated[
        WordEpsilon | None,
        Field(
            description="of every word, per unit of distance; or as private as another mechanism"
        ),
    ] = None
    document_epsilon: Annotated[
        WordEpsilon | None,
        Field(description="of every document, per unit of distance, shared equally by its words"),
    ] = None
    index: Annotated[
        Location, Field(description="a word index, as `quietcorpus index build` makes it")
    ]
    out_of_vocabulary: Annotated[
        Literal["drop", "draw"],
        Field(description="leave out a word that the index lacks, or put a random word there"),
    ] = "drop"
    tokenizer: TokenizerSpec = "unicode-words-v1"
    search: Annotated[
        SearchSpec | None, Field(description="the engine of the search; exact unless given")
    ] = None

    @model_validator(mode="after")
    def _one_epsilon(self) -> WordsSpec:
        if (self.epsilon is None) == (self.document_epsilon is None):
            raise of_key(
                "",
                "give exactly one of `epsilon`, which every word has, and `document_epsilon`, "
                "which the words of a document share",
            )
        given = self.epsilon or self.document_epsilon
        if isinstance(given, MatchedEpsilon) and given.matching.mechanism is self.mechanism:
            key = "epsilon" if self.epsilon else "document_epsilon"
            raise of_key(
                f"{key}.matching.mechanism",
                f"{self.mechanism.value} is this mechanism itself; give epsilon as a number",
            )
        if self.search is not None:
            vectors = self.mechanism is WordMechanism.MADLIB
            self.search.check(vectors=vectors, mechanism=self.mechanism.value)
        return self

    @model_serializer(mode="wrap")
    def _serialized(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return unless_given(dump(self))

    def sources(self) -> Iterator[tuple[str, str]]:
        """Yield the index's manifest."""
        yield "index", f"{self.index}/{MANIFEST}"
