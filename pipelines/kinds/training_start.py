"""The public vectors that a training may start from, read in the launcher alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quietcorpus.indexes.embeddings import dimension_of, read_vectors
from quietcorpus.indexes.vectors import VectorsError
from quietcorpus.transforms.artefacts.files import FileSource
from quietcorpus.transforms.errors import InputError, NoisyOutcome

from ..schema.public_vectors import PublicVectors

_KEY = "mechanism.training.start.public"


@dataclass(frozen=True)
class PublicStart:
    """A file of public vectors, as it was when the release began."""

    source: FileSource

    @classmethod
    def resolve(
        cls, given: PublicVectors, dimensions: int, words: Sequence[str] | None
    ) -> PublicStart:
        """Find and check the file, before anything private is read.

        Args:
            given: the spec's block.
            dimensions: those of the release's vectors.
            words: the vocabulary; None if it is selected from the corpus, which is yet to be read.

        Raises:
            InputError: a file that cannot be read, vectors of another dimension or of numbers that
                are not finite, or none of any word.
        """
        start = cls(FileSource.resolve(_KEY, given.public))
        source = start.source
        try:
            if words is None:
                found = dimension_of(source.lines())
            else:
                found = read_vectors(source.lines(), words).shape[1]
        except VectorsError as error:
            raise InputError(f"{_KEY}: {source.uri} {error}") from None
        if found != dimensions:
            raise InputError(
                f"{_KEY}: {source.uri} has vectors of {found} dimensions, and mechanism.dimensions "
                f"is {dimensions}; give vectors of {dimensions} dimensions, or dimensions: {found}"
            )
        return start

    def vectors(self, words: Sequence[str]) -> npt.NDArray[np.float32]:
        """Read the vectors of words, float32 (V, d), of length one; zero where there is none.

        Raises InputError if the file has changed, and NoisyOutcome if it has no vector of any word:
        words of a public list are checked beforehand.
        """
        try:
            return read_vectors(self.source.lines(), words)
        except VectorsError as error:
            raise NoisyOutcome(f"{self.source.key}: {self.source.uri} {error}") from None
