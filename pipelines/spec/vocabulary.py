"""The vocabulary block of a spec: a public list, or a selection from the corpus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from quietcorpus.pipelines.spec.values import Count, Delta, Epsilon, Location, Strict


class PrivateVocabulary(Strict):
    """A vocabulary selected from the corpus."""

    epsilon: Epsilon
    delta: Delta


class VocabularySpec(Strict):
    """Exactly one of a public list and a private selection."""

    public: Location | None = None
    private: PrivateVocabulary | None = None

    @model_validator(mode="after")
    def _one(self) -> VocabularySpec:
        if (self.public is None) == (self.private is None):
            raise PydanticCustomError(
                "one", "give exactly one of `public: PATH` and `private: {epsilon, delta}`"
            )
        return self

    def sources(self) -> Iterator[tuple[str, str]]:
        """The public list, if it is one, with its key in the mechanism's block."""
        if self.public:
            yield "vocabulary.public", self.public


class PrivateUserVocabulary(PrivateVocabulary):
    """A vocabulary selected by users, each of whom has a say of at most so many words."""

    words: Annotated[Count, Field(le=100_000)] = 100


class UserVocabularySpec(VocabularySpec):
    """Exactly one of a public list and a private selection by users."""

    private: PrivateUserVocabulary | None = None
