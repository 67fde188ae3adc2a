"""The mechanism block of `kind: words`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from quietcorpus.indexes.folder import MANIFEST
from quietcorpus.pipelines.spec.mechanism import MechanismSpec
from quietcorpus.pipelines.spec.values import Epsilon, Location, Strict
from quietcorpus.transforms.privatizers.words import WordMechanism


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


class WordsSpec(MechanismSpec):
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

    def sources(self) -> Iterator[tuple[str, str]]:
        """The index's manifest."""
        yield "index", f"{self.index}/{MANIFEST}"


TAGS = {"<number>": None, "<matching>": MatchedEpsilon}
"""The ways to write an epsilon, by the names that errors give them."""
