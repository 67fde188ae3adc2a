"""The balance of each account of a ledger, in the numbers that machines watch."""

from __future__ import annotations

from fractions import Fraction

from pydantic import Field

from quietcorpus.mechanisms.accounting.guarantees import round_down, round_up

from ..card.parameters import Part
from .book import Ledger
from .caps import NOTHING, Charge


class Amount(Part):
    """A charge, rounded against the publisher."""

    epsilon: float = Field(ge=0)
    delta: float = Field(ge=0, description="0 if the account's guarantee has none")


class Balance(Part):
    """The balance of one account."""

    account: str = Field(description="its name in `quietcorpus ledger show`")
    cap: Amount
    used: Amount = Field(description="by all releases, those that are only reserved included")
    left: Amount
    share: float = Field(
        ge=0,
        description="used of the cap: the larger of epsilon's (rho's under a filter) and delta's",
    )
    charged: Amount | None = Field(
        None, description="to this release, if anything is; under a filter, what it costs alone"
    )


def balances(place: str, release: str) -> list[Balance]:
    """Return the balance of each account of a ledger, and the charge of one release.

    Raises InputError, or what the place raises, if the ledger cannot be read.
    """
    state = Ledger.open(place).state
    reservation = state.of_release(release)
    charges = {one.account: one.charge for one in reservation.charges} if reservation else {}
    found = []
    for number, cap in enumerate(state.caps):
        used, charged = state.stated(number), charges.get(number)
        left = left_of(cap.target, used)
        balance = Balance(
            account=cap.title,
            cap=_down(cap.target),
            used=_up(used),
            left=_down(left),
            share=round_up(share_of(cap.most, state.used(number))),
            charged=_up(cap.stated(charged)) if charged else None,
        )
        found.append(balance)
    return found


def left_of(most: Charge, used: Charge) -> Charge:
    """Return the rest of a cap, at least zero.

    Older partitions, which were not counted as adding up, may have passed the cap.
    """
    left = most - used
    return Charge(
        max(left.epsilon, NOTHING.epsilon),
        max(left.delta, NOTHING.delta),
        rho=max(left.rho, NOTHING.rho),
    )


def share_of(most: Charge, used: Charge) -> Fraction:
    """Return the largest share of what the cap is on: epsilon or rho, and delta."""
    parts = ("epsilon", "rho", "delta")
    pairs = ((getattr(used, name), getattr(most, name)) for name in parts)
    share: Fraction = max(one / other for one, other in pairs if other)
    return share


def _up(charge: Charge) -> Amount:
    return Amount(epsilon=round_up(charge.epsilon), delta=round_up(charge.delta))


def _down(charge: Charge) -> Amount:
    return Amount(epsilon=round_down(charge.epsilon), delta=round_down(charge.delta))
