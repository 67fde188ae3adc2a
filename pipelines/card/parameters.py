"""The numbers of a guarantee on a card.

Privacy parameters are given twice: as a float that never understates them, and as the exact
rational.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from quietcorpus.mechanisms.accounting.filters import Concentrated
from quietcorpus.mechanisms.accounting.guarantees import (
    DocumentPrivacy,
    Guarantee,
    LimitedPrecision,
    MetricPrivacy,
    SentencePrivacy,
    UserPrivacy,
    ceiling,
    round_up,
)


class Part(BaseModel):
    """A part of a card; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


RATIONAL = r"^(0|[1-9][0-9]{0,1999})(/[1-9][0-9]{0,1999})?$"
"""The pattern of a rational as it is written: no exponent, which might take all memory."""
Rational = Annotated[str, Field(pattern=RATIONAL)]
Exact = Annotated[Rational, Field(description="epsilon as a rational, p/q")]
Delta = Annotated[float, Field(ge=0, lt=1, description="delta, rounded up")]
ExactDelta = Annotated[Rational, Field(description="delta as a rational, p/q")]


class LimitedPrecisionParameters(Part):
    """The numbers of limited-precision local privacy."""

    precision: int = Field(gt=0, description="N: how far two bags may be apart, in L1")
    epsilon: float = Field(ge=0, description="epsilon, rounded up")
    epsilon_exact: Exact
    delta: float = Field(ge=0, lt=1, description="delta, rounded up")
    delta_exact: ExactDelta

    @classmethod
    def of(cls, guarantee: LimitedPrecision) -> LimitedPrecisionParameters:
        """Return the numbers of `guarantee`."""
        return cls(precision=guarantee.precision, **_with_delta(guarantee))

    @property
    def guarantee(self) -> LimitedPrecision:
        """Return the guarantee with these numbers."""
        return LimitedPrecision(self.precision, *_rationals(self))


class MetricParameters(Part):
    """The numbers of metric differential privacy."""

    metric: str = Field(description="how far apart two words are")
    epsilon: float = Field(gt=0, description="epsilon per unit of distance, rounded up")
    epsilon_exact: Exact
    per: Literal["word", "document"] = Field(
        description="whether epsilon is every word's own, or shared equally by a document's words"
    )

    @classmethod
    def of(cls, guarantee: MetricPrivacy) -> MetricParameters:
        """Return the numbers of `guarantee`."""
        return cls(
            metric=guarantee.metric,
            epsilon=round_up(guarantee.epsilon),
            epsilon_exact=str(guarantee.epsilon),
            per=guarantee.per,
        )

    @property
    def guarantee(self) -> MetricPrivacy:
        """Return the guarantee with these numbers."""
        return MetricPrivacy(self.metric, Fraction(self.epsilon_exact), self.per)


class SentenceParameters(Part):
    """The numbers of sentence-level privacy."""

    epsilon: float = Field(gt=0, description="epsilon of one sentence, rounded up")
    epsilon_exact: Exact

    @classmethod
    def of(cls, guarantee: SentencePrivacy) -> SentenceParameters:
        """Return the numbers of `guarantee`."""
        return cls(epsilon=round_up(guarantee.epsilon), epsilon_exact=str(guarantee.epsilon))

    @property
    def guarantee(self) -> SentencePrivacy:
        """Return the guarantee with these numbers."""
        return SentencePrivacy(Fraction(self.epsilon_exact))


class DocumentParameters(Part):
    """The numbers of document-level privacy."""

    epsilon: float = Field(gt=0, description="epsilon of one document, rounded up")
    epsilon_exact: Exact
    delta: Delta
    delta_exact: ExactDelta

    @classmethod
    def of(cls, guarantee: DocumentPrivacy) -> DocumentParameters:
        """Return the numbers of `guarantee`."""
        return cls(**_with_delta(guarantee))

    @property
    def guarantee(self) -> DocumentPrivacy:
        """Return the guarantee with these numbers."""
        return DocumentPrivacy(*_rationals(self))


class GroupParameters(Part):
    """The numbers of the users of one group."""

    name: str
    epsilon: float = Field(ge=0, description="epsilon of the group's users, rounded up")
    epsilon_exact: Exact


class UserParameters(Part):
    """The numbers of user-level privacy."""

    epsilon: float = Field(ge=0, description="epsilon of any user, rounded up")
    epsilon_exact: Exact
    delta: Delta
    delta_exact: ExactDelta
    groups: list[GroupParameters] = Field(
        description="of the users of each group, where they have budgets of their own"
    )

    @classmethod
    def of(cls, guarantee: UserPrivacy) -> UserParameters:
        """Return the numbers of `guarantee`."""
        return cls(
            **_with_delta(guarantee),
            groups=[
                GroupParameters(name=name, epsilon=round_up(own), epsilon_exact=str(own))
                for name, own in guarantee.groups
            ],
        )

    @property
    def guarantee(self) -> UserPrivacy:
        """Return the guarantee with these numbers."""
        groups = tuple((group.name, Fraction(group.epsilon_exact)) for group in self.groups)
        return UserPrivacy(*_rationals(self), groups)


class NoiseEntry(Part):
    """The cost of a release's Gaussian noise under a ledger's filter."""

    rho: float = Field(ge=0, description="of zero-concentrated privacy, rounded up")
    rho_exact: Rational = Field(description="rho as a rational, p/q")
    delta: float = Field(ge=0, lt=1, description="of what the noise does not cover, rounded up")
    delta_exact: ExactDelta

    @classmethod
    def of(cls, noise: Concentrated) -> NoiseEntry:
        """Return the numbers of `noise`."""
        return cls(
            rho=round_up(noise.rho),
            rho_exact=str(noise.rho),
            delta=round_up(noise.delta),
            delta_exact=str(noise.delta),
        )


def _with_delta(guarantee: LimitedPrecision | DocumentPrivacy | UserPrivacy) -> dict[str, Any]:
    """Return epsilon and delta, each rounded up and as the rational."""
    return {
        "epsilon": round_up(guarantee.epsilon),
        "epsilon_exact": str(guarantee.epsilon),
        "delta": round_up(guarantee.delta),
        "delta_exact": str(guarantee.delta),
    }


def _rationals(
    numbers: LimitedPrecisionParameters | DocumentParameters | UserParameters,
) -> tuple[Fraction, Fraction]:
    """Return epsilon and delta."""
    return Fraction(numbers.epsilon_exact), Fraction(numbers.delta_exact)


Parameters = (
    LimitedPrecisionParameters
    | MetricParameters
    | SentenceParameters
    | DocumentParameters
    | UserParameters
)
_PARAMETERS: TypeAdapter[Parameters] = TypeAdapter(Parameters)
EXACT = "_exact"
"""The end of a rational's name; before it stands the name of its decimal."""


def parameters(guarantee: Guarantee) -> Parameters:
    """Return the numbers of a guarantee."""
    match guarantee:
        case LimitedPrecision():
            return LimitedPrecisionParameters.of(guarantee)
        case MetricPrivacy():
            return MetricParameters.of(guarantee)
        case SentencePrivacy():
            return SentenceParameters.of(guarantee)
        case DocumentPrivacy():
            return DocumentParameters.of(guarantee)
        case UserPrivacy():
            return UserParameters.of(guarantee)


def exacts(decimal: float) -> list[Fraction]:
    """Return the numbers of a spec that a card states as this decimal, the shortest first.

    A spec's number is the decimal that Python writes of a float, and a card's is that one or the
    next float above. There are two of them at most, and none of a number that no card states.
    """
    near = {Fraction(repr(one)) for one in (decimal, math.nextafter(decimal, -math.inf))}
    return sorted((x for x in near if round_up(x) == decimal), key=lambda x: x.denominator)


def is_rounded(numbers: Parameters) -> bool:
    """Tell whether every decimal is its rational, rounded up."""
    try:
        return parameters(numbers.guarantee) == numbers
    except (ArithmeticError, TypeError, ValueError):  # not rationals, or impossible
        return False


def disagree(stated: object) -> bool:
    """Tell whether the numbers of a stated guarantee are written as ours, but are not rounded.

    They are written as ours if one of them is a rational. Another party may state its guarantee in
    other words, of which nothing is known.
    """
    if not isinstance(stated, dict) or not any(str(name).endswith(EXACT) for name in stated):
        return False
    try:
        return not is_rounded(_PARAMETERS.validate_python(stated))
    except ValidationError:
        return True


def stated_guarantee(stated: object) -> Guarantee | None:
    """Return the guarantee whose numbers are written as ours; None if they are not, or cannot be.

    Raises what making one does.
    """
    try:
        return _PARAMETERS.validate_python(stated).guarantee
    except ValidationError:
        return None


def costs(parameters: Parameters) -> str:
    """Return epsilon, and delta if there is one, in words; rounded up."""
    epsilon = f"epsilon {ceiling(Fraction(parameters.epsilon_exact))}"
    match parameters:
        case MetricParameters():
            shared = " shared by a document's words" if parameters.per == "document" else ""
            return f"{epsilon} * d a word{shared}"
        case SentenceParameters():
            return f"{epsilon} a sentence"
        case LimitedPrecisionParameters() | DocumentParameters() | UserParameters():
            delta = Fraction(parameters.delta_exact)
            return epsilon + (f", delta {ceiling(delta)}" if delta else "")


def total_cost(total: Parameters) -> str:
    """Return a release's total cost in words, with its precision if it has one."""
    at = f" at N = {total.precision}" if isinstance(total, LimitedPrecisionParameters) else ""
    return costs(total) + at
