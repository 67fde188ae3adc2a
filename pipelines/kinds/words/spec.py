"""The mechanism block of `kind: words`."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    model_serializer,
    model_validator,
)

from quietcorpus.indexes.folder import MANIFEST
from quietcorpus.mechanisms.words.document_loss import LARGEST_DELTA, LARGEST_WORDS, LEAST_DELTA
from quietcorpus.transforms.privatizers.words import WordMechanism, engines_of

from ...schema.mechanism import MechanismSpec
from ...schema.search import SearchSpec, unless_given
from ...schema.tokenizers import TokenizerSpec
from ...schema.values import (
    Count,
    Delta,
    Distance,
    Epsilon,
    Location,
    Strict,
    Tuning,
    at_most,
    of_key,
    of_value,
    one_of,
)


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


def _of_documents(delta: Fraction) -> Fraction:
    if delta >= LARGEST_DELTA:
        raise of_value(f"is not allowed; give a number below {float(LARGEST_DELTA):g}")
    if delta < LEAST_DELTA:
        raise of_value(f"is not allowed; give {float(LEAST_DELTA):g} or more")
    return delta


class DocumentEpsilon(Strict):
    """An epsilon of a word, found from what documents of a length shall be protected by."""

    epsilon: Annotated[
        Epsilon, Field(description="of a document, whichever of its words are replaced")
    ]
    delta: Annotated[
        Delta,
        AfterValidator(_of_documents),
        Field(description="the chance that epsilon may not hold"),
    ]
    words: Annotated[
        Count, at_most(LARGEST_WORDS, "the most words that are released of a document")
    ]
    longer: Annotated[
        Literal["cut", "refuse"],
        Field(description="release the first words of a longer document, or refuse to release"),
    ] = "refuse"


def _is_matched(value: object) -> str:
    return "<matching>" if isinstance(value, dict | MatchedEpsilon) else "<number>"


def _form(value: object) -> str:
    document = isinstance(value, DocumentEpsilon) or (
        isinstance(value, dict) and "matching" not in value
    )
    return "<document>" if document else _is_matched(value)


WordEpsilon = Annotated[
    Annotated[Epsilon, Tag("<number>")] | Annotated[MatchedEpsilon, Tag("<matching>")],
    Discriminator(_is_matched),
]


WordsOfDocumentEpsilon = Annotated[
    Annotated[Epsilon, Tag("<number>")]
    | Annotated[MatchedEpsilon, Tag("<matching>")]
    | Annotated[DocumentEpsilon, Tag("<document>")],
    Discriminator(_form),
]


class WordsSpec(MechanismSpec):
    """`kind: words`."""

    model_config = one_of("epsilon", "document_epsilon")

    kind: Annotated[Literal["words"], Field(description="release text, each word replaced")]
    mechanism: Annotated[
        WordMechanism,
        Field(
            strict=False,
            description="`madlib` adds noise to a word's vector, `vickrey` does so and takes one "
            "of the two words nearest to that, `brr` flips bits of a word's code, `exponential` "
            "draws a word by its distance, and so does `tem`, up to a distance",
        ),
    ]
    epsilon: Annotated[
        WordEpsilon | None,
        Field(
            description="of every word, per unit of distance; or as private as another mechanism"
        ),
    ] = None
    document_epsilon: Annotated[
        WordsOfDocumentEpsilon | None,
        Field(
            description="of every document, per unit of distance, shared equally by its words; or "
            "an epsilon of every word that keeps whole documents to an epsilon and a delta"
        ),
    ] = None
    index: Annotated[
        Location, Field(description="a word index, as `quietcorpus index build` makes it")
    ]
    out_of_vocabulary: Annotated[
        Literal["drop", "draw"],
        Field(description="leave out a word that the index lacks, or put a random word there"),
    ] = "drop"
    tokenizer: TokenizerSpec = "unicode-words-v2"
    truncation: Annotated[
        Distance | None,
        Field(
            description="for `tem` alone: the distance beyond which all words are equally likely; "
            "unless given, the one beyond which a word is drawn once in a thousand times at most"
        ),
    ] = None
    tuning: Annotated[
        Tuning | None,
        Field(
            description="for `vickrey` alone, which needs it: how much the second nearest word is "
            "preferred, above 0 and at most 1, where it is always taken"
        ),
    ] = None
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
        if self.truncation is not None and self.mechanism is not WordMechanism.TEM:
            raise of_key("truncation", "only tem takes it; leave it out")
        if (self.tuning is None) is (self.mechanism is WordMechanism.VICKREY):
            raise of_key("tuning", "only vickrey takes it, and needs it, above 0 and at most 1")
        if self.search is not None:
            self.search.check(engines_of(self.mechanism), self.mechanism.value)
        return self

    @model_serializer(mode="wrap")
    def _serialized(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return unless_given(dump(self), "truncation", "tuning")

    @property
    def budget(self) -> DocumentEpsilon | None:
        """Return what whole documents shall be protected by, if epsilon is found from it."""
        given = self.document_epsilon
        return given if isinstance(given, DocumentEpsilon) else None

    def sources(self) -> Iterator[tuple[str, str]]:
        """Yield the index's manifest."""
        yield "index", f"{self.index}/{MANIFEST}"
