"""The budgets of two releases of public texts, from coarse to fine, solved before the first."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from quietcorpus.mechanisms.guarantees import ceiling
from quietcorpus.mechanisms.vote_rounds import Rounds
from quietcorpus.transforms.errors import InputError


def calibrate(epsilon: Fraction, delta: Fraction, share: Fraction) -> Rounds:
    """Split a budget between two releases; raises InputError where that takes too much noise."""
    try:
        return Rounds.solved(epsilon, delta, share)
    except ValueError as error:
        raise InputError(f"share: {error}") from None


def lines(found: Rounds) -> Iterator[str]:
    """Yield what each release and both together cost, and which account has room for both."""
    delta = f"delta {ceiling(found.delta)}"
    every = zip(
        ("first", "second"), (found.first, found.second), found.noise_multipliers, strict=True
    )
    for name, epsilon, noise in every:
        yield f"{name:<9} epsilon {ceiling(epsilon)}, {delta}; noise multiplier {float(noise):g}"
    summed = ceiling(found.first + found.second)
    yield (
        f"together  epsilon {ceiling(found.epsilon)}, {delta}, by the exact composition of two "
        f"Gaussians; the plain sum is epsilon {summed}, delta {ceiling(2 * found.delta)}"
    )
    yield (
        "ledger    an account of `composition: gaussian` and `approximate_delta: 0` counts both "
        "so, and a basic one by the plain sum"
    )
