"""The mechanism block of `kind: sentence-embeddings`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from quietcorpus.indexes.folder import MANIFEST
from quietcorpus.mechanisms.deep_candidate import Utility
from quietcorpus.pipelines.spec.mechanism import MechanismSpec
from quietcorpus.pipelines.spec.values import Count, Epsilon, Location
from quietcorpus.transforms.artefacts.encoder import PACKAGED
from quietcorpus.transforms.privatizers.sentences import SentenceMechanism

MOST_SENTENCES = 1_024  # of a document: what a worker encodes at a time must fit its memory


class SentencesSpec(MechanismSpec):
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

    def sources(self) -> Iterator[tuple[str, str]]:
        """The manifests of the candidates, and of the index for madlib."""
        if self.index is not None:
            yield "index", f"{self.index}/{MANIFEST}"
        yield "candidates", f"{self.candidates}/{MANIFEST}"
