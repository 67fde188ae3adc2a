"""The cost of a release and of the private artefacts that it takes, to a unit of both corpora."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from quietcorpus.mechanisms.accounting.filters import FILTERS, Concentrated
from quietcorpus.mechanisms.accounting.guarantees import (
    DocumentPrivacy,
    Guarantee,
    Spending,
    UserPrivacy,
    compose,
)

from .model import UsedArtefact
from .parameters import DocumentParameters, NoiseEntry, UserParameters

_Whole = DocumentPrivacy | UserPrivacy
_ACCOUNTED: Mapping[str, type[DocumentParameters] | type[UserParameters]] = {
    DocumentPrivacy.definition: DocumentParameters,
    UserPrivacy.definition: UserParameters,
}
_LEAST, _MOST = Fraction(99, 100), Fraction(10001, 10000)
"""The share of an epsilon that the noise which was solved for it costs, by another accountant."""
NOISE = "noise"
"""The name of the Gaussian noise's cost among what an artefact states of its guarantee."""
MADE_BY = "release"
"""The name, among the same, of the release that the artefact was made of."""


def is_accounted(guarantee: Mapping[str, Any]) -> bool:
    """Tell whether the stated guarantee of an artefact is one that adds to a release's own."""
    try:
        _read(guarantee)
    except (ArithmeticError, KeyError, TypeError, ValueError):
        return False
    return True


def together(
    total: Guarantee, noise: Concentrated | None, artefacts: Sequence[UsedArtefact]
) -> _Whole | None:
    """Compose a release's guarantee with those of its artefacts that have the same definition.

    If all noise is Gaussian, it is composed exactly, at the largest delta of any: for budgets that
    were fixed beforehand, two Gaussians are one, whatever the second is about (Dong, Roth and Su
    2022, corollary 3.3; `mechanisms.accounting.filters`). Else epsilons and deltas add up. Users
    of a smaller budget are counted as those of the largest.

    Args:
        total: the release's guarantee.
        noise: what its Gaussian noise costs; None if it has other noise.
        artefacts: those that it took.

    Returns:
        The guarantee of a person who is one document, or one user, of every corpus; None if no
        artefact has a guarantee of the same definition. Two authors of one team are two users where
        authors are users.

    Raises:
        ArithmeticError, KeyError, TypeError, ValueError: an artefact states numbers that cannot be.
    """
    if not isinstance(total, DocumentPrivacy | UserPrivacy):
        return None
    found = _same(total, artefacts)
    if not found:
        return None
    own = replace(total, groups=()) if isinstance(total, UserPrivacy) else total
    every = [own, *(guarantee for guarantee, _ in found)]
    summed = noise_together(total, noise, artefacts)
    if summed is None:
        return compose(Spending("", one) for one in every)
    delta = max(one.delta for one in every)
    epsilon = FILTERS["gaussian"].epsilon(summed.rho, delta - summed.delta)
    return replace(own, epsilon=epsilon, delta=delta)


def noise_together(
    total: Guarantee, noise: Concentrated | None, artefacts: Sequence[UsedArtefact]
) -> Concentrated | None:
    """Add up the Gaussian noise of `together`; None where some noise is not, or is unknown."""
    noises = [noise, *(its_noise for _, its_noise in _same(total, artefacts))]
    known = [one for one in noises if one is not None]
    return functools.reduce(operator.add, known) if len(known) == len(noises) else None


def _same(
    total: Guarantee, artefacts: Sequence[UsedArtefact]
) -> list[tuple[_Whole, Concentrated | None]]:
    """Return the guarantees, and the noise, of artefacts under the definition of `total`."""
    stated = [one.guarantee for one in artefacts if one.guarantee is not None]
    return [_read(one) for one in stated if one.get("definition") == total.definition]


def _read(guarantee: Mapping[str, Any]) -> tuple[_Whole, Concentrated | None]:
    """Return a stated guarantee, without groups, and what its Gaussian noise costs, if stated."""
    promised: _Whole = (
        _ACCOUNTED[guarantee["definition"]].model_validate(guarantee["parameters"]).guarantee
    )
    if isinstance(promised, UserPrivacy):
        promised = replace(promised, groups=())
    if NOISE not in guarantee:
        return promised, None
    entry = NoiseEntry.model_validate(guarantee[NOISE])
    found = Concentrated(Fraction(entry.rho_exact), Fraction(entry.delta_exact))
    if NoiseEntry.of(found) != entry or found.rho < 0 or not 0 <= found.delta < promised.delta:
        raise ValueError("the decimals of noise are not its rationals, or it cannot be")
    implied = FILTERS["gaussian"].epsilon(found.rho, promised.delta - found.delta)
    if not _LEAST * promised.epsilon <= implied <= _MOST * promised.epsilon:
        raise ValueError("the noise is not that of the epsilon")
    return promised, found
