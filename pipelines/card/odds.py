"""A guarantee in odds: how far a release may change what somebody believes, in sentences.

For epsilon alone, the odds of two cases change by at most exp(epsilon), whatever is released
(Wasserman and Zhou 2010). With a delta they do not: Pr[L > epsilon + t] <= delta / (1 - exp(-t)) is
all that follows for the loss L, which is taken at t = log 2; and no test of the two cases, equally
likely before, is right with a chance above (exp(epsilon) + delta) / (1 + exp(epsilon)) (Kairouz, Oh
and Viswanath 2015). Every number is rounded against the publisher.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from quietcorpus.mechanisms.accounting.guarantees import (
    DocumentPrivacy,
    Guarantee,
    LimitedPrecision,
    MetricPrivacy,
    SentencePrivacy,
    UserPrivacy,
    ceiling,
)

from .model import Meaning
from .statements import changes

_BEFORE = (2, 1_000)  # one in two, one in a thousand
_LONG = 14.0  # from this exponent on, factors are stated as a power of ten
_FACTORS = (10, 1_000)


def in_words(
    total: Guarantee, meaning: Meaning | None = None, *, counted: bool = True
) -> list[str]:
    """Say what a guarantee means for odds.

    `meaning` describes the index, for metric privacy. A card that is `counted` states numbers of
    records, which user-level privacy does not cover.
    """
    if isinstance(total, MetricPrivacy):
        return list(_of_distances(total, meaning))
    epsilon, delta = _numbers(total)
    said = list(_of_case(_case(total), epsilon, delta))
    match total:
        case LimitedPrecision():
            grows = ", and delta grows faster than k" if total.delta else ""
            said.append(f"For versions k times as far apart, it is the k-th power of that{grows}.")
        case SentencePrivacy():
            said.append("For k sentences at once, it is the k-th power of that.")
        case UserPrivacy() if counted:
            said.append("The numbers of records on the card are apart from this.")
    return said


def in_short(total: Guarantee, meaning: Meaning | None = None) -> tuple[str, str]:
    """Return a number for a guarantee, and what it is, as text that goes on from the number."""
    if isinstance(total, MetricPrivacy):
        if meaning is None:
            factors, case = f"exp({ceiling(total.epsilon)} d)", "two words at a distance of d"
        else:
            factors = factor(meaning.loss_at_mean)
            case = f"{_words(total)} at the mean distance"
        return f"{factors} times", f"is the most by which somebody's odds change as to {case}"
    epsilon, delta = _numbers(total)
    if delta:
        chance = _chance(*_right(epsilon, delta))
        return chance, f"is the largest chance of a right guess {_case(total)}"
    change = f"is the most by which somebody's odds change as to {_case(total)}"
    return f"{factor(epsilon)} times", change


def _case(total: Guarantee) -> str:
    """Name the two cases that a guarantee makes hard to tell apart."""
    match total:
        case LimitedPrecision():
            return f"which of two versions of a document is there ({changes(total.precision)})"
        case SentencePrivacy():
            return "which of two sentences stands at one place of a document"
        case DocumentPrivacy():
            return "whether one document is there"
        case UserPrivacy(groups=groups):
            group = " (of the group with the largest epsilon)" if groups else ""
            return f"whether one user's documents are there{group}"
        case MetricPrivacy():
            return _words(total)


def _words(total: MetricPrivacy) -> str:
    if total.per == "word":
        return "two words of the index"
    return "two documents of one length, all of whose words differ,"


def _numbers(total: Guarantee) -> tuple[Fraction, Fraction]:
    """Return epsilon and delta, which a guarantee of sentences lacks."""
    return total.epsilon, getattr(total, "delta", Fraction(0))


def factor(exponent: float | Fraction) -> str:
    """Return the exponential of a number as text, rounded up."""
    if exponent >= _LONG:
        return f"10^{math.ceil(float(exponent) / math.log(10))}"
    value = math.exp(exponent)
    if value < 10:
        return f"{math.ceil(100 * value) / 100:.2f}"
    size = 1 if value < 10_000 else 1_000
    return f"{math.ceil(value / size) * size:,}"


def _of_case(case: str, epsilon: Fraction, delta: Fraction) -> Iterator[str]:
    if not delta:
        first, *others = (f"{_before(m)} to {_after(m, epsilon)}" for m in _BEFORE)
        yield (
            f"Somebody who knows everything else but not {case} may change their odds by at most a "
            f"factor of {factor(epsilon)}: from {first} at most, and from {', '.join(others)}."
        )
        return
    doubled, twice = float(epsilon) + math.log(2), float(2 * delta)
    yield (
        f"Somebody who knows everything else but not {case}, and holds both for equally likely, "
        f"guesses right with a chance of at most {_chance(*_right(epsilon, delta))}."
    )
    yield (
        f"Their odds change by at most a factor of {factor(doubled)} (twice exp(epsilon)), but for "
        f"outcomes that have a chance of at most {_chance(twice, -math.log1p(-twice))} (twice "
        "delta)."
    )


def _of_distances(total: MetricPrivacy, meaning: Meaning | None) -> Iterator[str]:
    epsilon = float(total.epsilon)
    if total.per == "word":
        far = " and ".join(f"{f:,} at {_down(math.log(f) / epsilon)}" for f in _FACTORS)
        yield (
            "Somebody who knows everything else but not which of two words stood at one place may "
            f"change their odds by a factor of at most exp({ceiling(total.epsilon)} * d), d the "
            f"words' distance by the {total.metric}: {far}."
        )
    if meaning is not None:
        yield (
            f"For {_words(total)} at the mean distance ({meaning.mean_distance:.3g}), that is a "
            f"factor of {factor(meaning.loss_at_mean)}: from {_before(2)} to "
            f"{_after(2, meaning.loss_at_mean)} at most."
        )


def _before(m: int) -> str:
    return f"1 in {m:,}"


def _after(m: int, exponent: float | Fraction) -> str:
    """Say the largest chance of what had a chance of one in `m`."""
    exponent = float(exponent)
    shrunk = (m - 1) * math.exp(-exponent)
    return _chance(1 / (1 + shrunk), exponent - math.log(m - 1) + math.log1p(shrunk))


def _right(epsilon: Fraction, delta: Fraction) -> tuple[float, float]:
    """Return the largest chance of a right guess, and what `_chance` takes beside it."""
    shrunk = math.exp(-float(epsilon))
    lacking = float(epsilon) + math.log1p(shrunk) - math.log1p(-float(delta))
    return 1 - math.exp(-lacking), lacking


def _chance(chance: float, lacking: float) -> str:
    """Write a chance, rounded up; it lacks exp(-lacking) to one, which may be below any float."""
    rest = math.exp(-lacking)
    if chance < 0.01:
        return f"1 in {math.floor(1 / chance):,}"
    if rest > 0.01:
        return f"{math.ceil(100 * chance - 1e-9)} in 100"
    if rest < 1e-6:
        return f"all but 1 in {factor(lacking)}"
    return f"all but 1 in {math.ceil(1 / rest):,}"


def _down(distance: float) -> str:
    """Write a distance, rounded down."""
    size = 10 ** (2 - math.floor(math.log10(distance)))
    return f"{math.floor(distance * size) / size:g}"
