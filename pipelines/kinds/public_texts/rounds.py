"""The budgets of two releases of public texts, from coarse to fine, solved before the first."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from quietcorpus.mechanisms.guarantees import ceiling
from quietcorpus.mechanisms.vote_rounds import PureRounds, Rounds, rounds_at
from quietcorpus.transforms.errors import InputError

_EXACT = 12
"""More digits than what is given to a release has: rounded up, both would pass their budget."""


def calibrate(epsilon: Fraction, delta: Fraction | None, share: Fraction) -> Rounds | PureRounds:
    """Split a budget between two releases; a delta of None is of geometric noise.

    Raises InputError where that takes too much noise.
    """
    try:
        return rounds_at(epsilon, delta, share)
    except ValueError as error:
        raise InputError(f"share: {error}") from None


def lines(found: Rounds | PureRounds) -> Iterator[str]:
    """Yield what each release and both together cost, and which account has room for both."""
    if isinstance(found, PureRounds):
        yield f"first     epsilon {ceiling(found.first, _EXACT)}; geometric noise"
        yield f"second    epsilon {ceiling(found.second, _EXACT)}; geometric noise"
        yield (
            f"together  epsilon {ceiling(found.epsilon, _EXACT)}, without a delta, by the plain "
            "sum, which is exact"
        )
        yield "ledger    a basic account of that epsilon has room for both, and no more"
        return
    delta = f"delta {ceiling(found.delta)}"
    every = zip(
        ("first", "second"), (found.first, found.second), found.noise_multipliers, strict=True
    )
    for name, epsilon, noise in every:
        given = f"epsilon {ceiling(epsilon, _EXACT)}, {delta}"
        yield f"{name:<9} {given}; noise multiplier {float(noise):g}"
    summed = ceiling(found.first + found.second)
    yield (
        f"together  epsilon {ceiling(found.epsilon)}, {delta}, by the exact composition of two "
        f"Gaussians; the plain sum is epsilon {summed}, delta {ceiling(2 * found.delta)}"
    )
    yield (
        "ledger    an account of `composition: gaussian` and `approximate_delta: 0` counts both "
        "so, and a basic one by the plain sum"
    )
