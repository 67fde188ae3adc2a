"""Budgets of two releases of votes, against the library's accountant and against each other."""

from __future__ import annotations

from fractions import Fraction

import dp_accounting
import mpmath
import pytest
from dp_accounting.pld import PLDAccountant

from quietcorpus.evaluation.audits.exact import noise_masses
from quietcorpus.mechanisms.accounting.concentrated import rho_of
from quietcorpus.mechanisms.accounting.privacy_loss import noise_multiplier_for
from quietcorpus.mechanisms.votes.pure_votes import PureVotes
from quietcorpus.mechanisms.votes.rounds import PureRounds, Rounds, rounds_at
from quietcorpus.mechanisms.votes.votes import Votes

DELTA = Fraction(1, 10**6)
BUDGETS = pytest.mark.parametrize(
    ("epsilon", "delta", "share"),
    [
        (Fraction(1, 2), DELTA, Fraction(1, 5)),
        (Fraction(1), DELTA, Fraction(9, 10)),
        (Fraction(4), Fraction(1, 10**9), Fraction(1, 3)),
        (Fraction(12), Fraction(1, 1000), Fraction(3, 5)),
    ],
)


def delta_of(noises: tuple[Fraction, Fraction], epsilon: Fraction) -> mpmath.mpf:
    """The delta of two Gaussians together (Balle and Wang 2018, theorem 8), in 50 digits."""
    with mpmath.workdps(50):
        mean = mpmath.sqrt(sum(mpmath.mpf(s.denominator**2) / s.numerator**2 for s in noises))
        e = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        near, far = mean / 2 - e / mean, -mean / 2 - e / mean
        return mpmath.ncdf(near) - mpmath.exp(e) * mpmath.ncdf(far)


@BUDGETS
def test_both_together_keep_to_the_budget(
    epsilon: Fraction, delta: Fraction, share: Fraction
) -> None:
    # Kills: a second release that gets what is left of epsilon's square, or a step more; noise that
    # is not that of `Votes` at these epsilons; a sum that is stated too small.
    found = Rounds.solved(epsilon, delta, share)
    assert found.first <= epsilon * share < found.first + Fraction(1, 10**6)
    assert found.noise_multipliers == tuple(
        Votes(20, one, delta).noise.noise_multiplier for one in (found.first, found.second)
    )
    assert found.epsilon <= epsilon
    assert delta_of(found.noise_multipliers, found.epsilon) <= float(delta)
    assert delta_of(found.noise_multipliers, found.epsilon * (1 - Fraction(1, 10**6))) > float(
        delta
    )
    # 4 digits of noise are all that is left over; a hundredth more is too much.
    assert found.epsilon > epsilon * Fraction(998, 1000)
    more = noise_multiplier_for(found.second * Fraction(101, 100), delta, Fraction(1), 1)
    assert delta_of((found.noise_multipliers[0], more), epsilon) > float(delta)


@BUDGETS
def test_the_library_agrees(epsilon: Fraction, delta: Fraction, share: Fraction) -> None:
    found = Rounds.solved(epsilon, delta, share)
    accountant = PLDAccountant(value_discretization_interval=1e-4)
    for noise in found.noise_multipliers:
        accountant.compose(dp_accounting.GaussianDpEvent(float(noise)))
    # It rounds losses up to its grid.
    assert accountant.get_epsilon(float(delta)) == pytest.approx(float(found.epsilon), abs=5e-4)


@BUDGETS
def test_the_second_has_more_than_the_rest(
    epsilon: Fraction, delta: Fraction, share: Fraction
) -> None:
    # Kills: the split of a plain sum, each at half of delta, which wastes what noise hides.
    found = Rounds.solved(epsilon, delta, share)
    rest = Votes(1, epsilon - found.first, delta / 2).noise.noise_multiplier
    assert found.noise_multipliers[1] < rest
    plain = Votes(1, epsilon * share, delta / 2).noise.noise_multiplier, rest
    assert delta_of(plain, epsilon) < float(delta)
    assert sum(map(rho_of, plain)) < sum(map(rho_of, found.noise_multipliers))


@pytest.mark.parametrize("share", [Fraction(1, 100), Fraction(999, 1000), Fraction(1)])
def test_a_release_that_gets_next_to_nothing_is_refused(share: Fraction) -> None:
    # Kills: noise that cannot be drawn, found out by the second release alone.
    with pytest.raises(ValueError, match=r"no noise multiplier|leaves nothing"):
        Rounds.solved(Fraction(1, 2), DELTA, share)


@pytest.mark.parametrize(
    ("epsilon", "share"),
    [
        (Fraction(1, 2), Fraction(1, 5)),
        (Fraction(1, 3), Fraction(2, 7)),
        (Fraction(12), Fraction("0.123456789")),
    ],
)
def test_geometric_rounds_add_up(epsilon: Fraction, share: Fraction) -> None:
    # Kills: a second release that gets more than what is left, as of Gaussian noise, or a share of
    # what is left; numbers of more digits than a spec is given, whose decimals pass the budget.
    found = rounds_at(epsilon, None, share)
    assert isinstance(found, PureRounds)
    assert epsilon - Fraction(2, 10**6) < found.epsilon <= epsilon
    assert found.epsilon == found.first + found.second
    assert found.first <= epsilon * share < found.first + Fraction(1, 10**6)
    assert all((10**6 * one).denominator == 1 for one in (found.first, found.second))


def test_geometric_rounds_are_exactly_their_sum() -> None:
    # The largest loss of a document that votes in both, by the masses of either sampler. Kills: a
    # sum that some other composition could undercut.
    found = PureRounds.solved(Fraction(2), Fraction(1, 4))
    loss = 0.0
    for epsilon in (found.first, found.second):
        votes = PureVotes(1, epsilon)
        masses = noise_masses(votes.noise(1), 2 * votes.norm)
        without, with_it = masses[2 * votes.norm], masses[votes.norm]
        loss += sum(with_it) / 2 - sum(without) / 2
    assert loss == pytest.approx(float(found.epsilon), abs=1e-9)


@pytest.mark.parametrize("share", [Fraction(1, 100), Fraction(99, 100), Fraction(1)])
def test_geometric_rounds_of_next_to_nothing_are_refused(share: Fraction) -> None:
    # Kills: noise that cannot be drawn, in either release, found out by that release alone.
    with pytest.raises(ValueError, match=r"noise rate of .* is below"):
        PureRounds.solved(Fraction(1, 2), share)
