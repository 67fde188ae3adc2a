"""Distances between words, and epsilons of two mechanisms that match by the privacy ratio."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from quietcorpus.evaluation.distances import Distances, privacy_ratio
from quietcorpus.indexes.words.manifest import METRIC_OF, IndexManifest
from quietcorpus.mechanisms.words.mechanism import WordMechanism

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
