"""The map of an index's vectors that `index build --rescale` asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import pyarrow as pa

from quietcorpus.indexes.maps.rescaling import by_covariance, by_information
from quietcorpus.indexes.vectors import WordVectors
from quietcorpus.transforms.artefacts.files import FileSource
from quietcorpus.transforms.errors import InputError, shown

from ..storage.places import absolute
from .weights import read_weights

_MOST_POWER = 4
_FORM = re.compile(r"(?:covariance:lambda|information:power)=([0-9]{1,3}(?:\.[0-9]{1,6})?)")


@dataclass(frozen=True)
class Rescaling:
    """A map of vectors.

    Attributes:
        amount: lambda of the covariance, or the power of the information content.
        weights: the file of words' weights, for a map by information; None by covariance.
    """

    amount: Fraction
    weights: FileSource | None

    @classmethod
    def read(cls, given: str, weights: str | None) -> Rescaling:
        """Read a map as a command line names it: `covariance:lambda=0.2`; raises InputError."""
        form = _FORM.fullmatch(given)
        if form is None:
            raise InputError(
                f"rescale: {shown(given)} is not allowed; give covariance:lambda=NUMBER or "
                "information:power=NUMBER, such as information:power=1"
            )
        amount = Fraction(form[1])
        if given.startswith("covariance"):
            if amount >= 1:
                raise InputError("rescale: lambda must be below 1, else a direction has no noise")
            if weights is not None:
                raise InputError("public_weights: they are for information; leave them out")
            return cls(amount, None)
        if not 0 < amount <= _MOST_POWER:
            raise InputError(f"rescale: power must be above 0, and at most {_MOST_POWER}")
        if weights is None:
            raise InputError("rescale: information needs public weights; give public_weights")
        return cls(amount, FileSource.resolve("public_weights", absolute(weights)))

    @property
    def record(self) -> Mapping[str, str]:
        """Return the manifest's account of it."""
        if self.weights is None:
            return {"by": "covariance", "lambda": str(self.amount)}
        return {"by": "information", "power": str(self.amount), "weights": self.weights.digest}

    def of(self, vectors: WordVectors) -> WordVectors:
        """Return the rescaled vectors of the same words.

        Raises InputError for weights, and ValueError for vectors, that cannot be used.
        """
        if vectors.lists is not None:
            raise ValueError("has inverted lists, which are not those of rescaled vectors")
        if self.weights is None:
            values = by_covariance(vectors.values, float(self.amount))
        else:
            terms = pa.array(vectors.words, pa.large_string())
            weights = read_weights("public_weights", self.weights.uri, terms)
            values = by_information(vectors.values, weights, float(self.amount))
        return replace(vectors, values=values)
