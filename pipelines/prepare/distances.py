"""Distances and weights of words, and the rescaling of an index by them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quietcorpus.evaluation.distances import Distances, privacy_ratio
from quietcorpus.indexes.maps.rescaling import by_covariance, by_information
from quietcorpus.indexes.vectors import WordVectors
from quietcorpus.indexes.words.manifest import METRIC_OF, IndexManifest
from quietcorpus.mechanisms.words.mechanism import WordMechanism
from quietcorpus.transforms.artefacts.files import FileSource
from quietcorpus.transforms.errors import InputError, shown

from ..storage import files as storage
from ..storage.places import absolute

AnyMechanism = WordMechanism | type[WordMechanism]


def summary(distances: Distances) -> dict[str, Any]:
    """Summarise the distances under one metric for a manifest.

    `mean` and `maximum` are decimals or rationals, as text. A mean from a sample has its 95 %
    confidence interval in `mean_interval`. No distance exceeds `maximum`; `largest_met` is one.
    """
    mean, maximum = distances.mean, distances.maximum
    content: dict[str, Any] = {
        "unit": distances.unit,
        "mean": _text(mean.value),
        "maximum": _text(maximum.high),
        "largest_met": _text(maximum.low),
    }
    if not mean.exact:
        content["mean_interval"] = [_text(mean.low), _text(mean.high)]
    return content


def _text(value: Fraction) -> str:
    """Return a rational as a float's text if it is exactly one, else as a fraction."""
    return repr(float(value)) if Fraction(float(value)) == value else str(value)


def distance(manifest: IndexManifest, mechanism: AnyMechanism, name: str) -> Fraction:
    """Return a distance of two words from the manifest, exactly, by its name there."""
    return Fraction(str(manifest.distances[METRIC_OF[mechanism.part]][name]))


def mean_interval(manifest: IndexManifest, mechanism: AnyMechanism) -> list[float] | None:
    """Return the 95 % interval of the mean distance, or None if the mean is exact."""
    given = manifest.distances[METRIC_OF[mechanism.part]].get("mean_interval")
    return None if given is None else [float(Fraction(end)) for end in given]


def matched(
    epsilon: Fraction, theirs: AnyMechanism, ours: AnyMechanism, by: str, manifest: IndexManifest
) -> Fraction:
    """Return the epsilon of our mechanism that matches `epsilon` of theirs.

    The privacy ratio R = P_theirs / P_ours compares the mean (or maximum) distances of two words
    under either metric; at R * epsilon, epsilon times that distance is the same for both (Carvalho
    et al., BRR, definition 5.1). Where a distance is not known exactly, R errs downwards.
    """
    low, _ = _ends(manifest, theirs, by)
    _, high = _ends(manifest, ours, by)
    return epsilon * privacy_ratio(low, high)


def _ends(manifest: IndexManifest, mechanism: AnyMechanism, by: str) -> tuple[Fraction, Fraction]:
    """Return the bounds of the mean (with 95 % confidence) or of the maximum distance."""
    if by == "maximum":
        return distance(manifest, mechanism, "largest_met"), distance(manifest, mechanism, by)
    mean = distance(manifest, mechanism, by)
    low, high = manifest.distances[METRIC_OF[mechanism.part]].get("mean_interval", (mean, mean))
    return Fraction(low), Fraction(high)


def read_weights(key: str, path: str, terms: pa.Array) -> npt.NDArray[np.float64]:
    """Read the weights of terms from Parquet with the columns `term` and `weight`.

    A release's `vocabulary.parquet` is one possible file. Negative noisy counts, and words that the
    file lacks, count as zero. Raises InputError for any other file.
    """
    try:
        table = storage.read_table(path)
        listed, weights = (table[name].combine_chunks() for name in ("term", "weight"))
        places = pc.index_in(terms, value_set=listed.cast(pa.large_string()))
        values = weights.cast(pa.float64()).take(places).fill_null(0).to_numpy()
    except (OSError, KeyError, pa.ArrowException):
        raise InputError(
            f"{key}: {path} is not a Parquet file with the columns term and weight (numbers)"
        ) from None
    if not np.isfinite(values).all() or not (values > 0).any():
        raise InputError(f"{key}: {path} gives no word of the index a positive, finite weight")
    positive: npt.NDArray[np.float64] = np.maximum(values, 0)
    return positive


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
