"""The vocabulary block of a spec: a public list, or a selection from the corpus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, model_validator

from .values import (
    Count,
    Delta,
    Epsilon,
    Location,
    Strict,
    at_most,
    of_key,
    one_of,
)


class PrivateVocabulary(Strict):
    """A vocabulary selected from the corpus."""

    epsilon: Annotated[Epsilon, Field(description="what the selection costs")]
    delta: Annotated[Delta, Field(description="what the selection costs in delta")]


class VocabularySpec(Strict):
    """Exactly one of a public list and a private selection."""

    model_config = one_of("public", "private")

    public: Annotated[
        Location | None,
        Field(
            description="a public list of words: a text file with one word a line, or Parquet with "
            "a column `term`"
        ),
    ] = None
    private: Annotated[
        PrivateVocabulary | None, Field(description="select the words from the corpus, privately")
    ] = None

    @model_validator(mode="after")
    def _one(self) -> VocabularySpec:
        if (self.public is None) == (self.private is None):
            raise of_key("", "give exactly one of `public: PATH` and `private: {epsilon, delta}`")
        return self

    def sources(self) -> Iterator[tuple[str, str]]:
        """Yield the public list, if it is one, with its key in the mechanism's block."""
        if self.public:
            yield "vocabulary.public", self.public


class PrivateUserVocabulary(PrivateVocabulary):
    """A vocabulary selected by users, each of whom contributes a bounded number of words."""

    words: Annotated[
        Count, at_most(100_000, "how many distinct words of each user count, at most")
    ] = 100


class UserVocabularySpec(VocabularySpec):
    """Exactly one of a public list and a private selection by users."""

    private: Annotated[
        PrivateUserVocabulary | None,
        Field(description="select the words from the users' texts, privately"),
    ] = None
