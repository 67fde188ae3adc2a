"""The rules by which caps may change: for what is reserved from then on, and no further down.

A cap is a promise on all releases together. The sum of epsilons that add up as they are is a bound
whenever it is looked at, so such a cap may be moved. The theorem of a filter needs a cap that is
fixed before the first release, so that one may not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quietcorpus.mechanisms.accounting.guarantees import ceiling
from quietcorpus.transforms.errors import InputError

from .caps import Cap, Charge

_TARGET = {"epsilon", "delta", "composition", "approximate_delta", "rho"}


def check_change(old: Sequence[Cap], new: Sequence[Cap], used: Sequence[Charge]) -> None:
    """Raise InputError unless caps may replace others.

    Args:
        old: the caps in force.
        new: the caps that are to follow, of the same accounts in the same order.
        used: the total of each account.
    """
    if [_account(cap) for cap in new] != [_account(cap) for cap in old]:
        raise InputError(
            "ledger: its accounts are final: repeat each one, in the order of `ledger show`, with "
            "its cap"
        )
    if list(new) == list(old):
        raise InputError("ledger: the caps are in force already; nothing is to be changed")
    for before, after, charge in zip(old, new, used, strict=True):
        if before == after:
            continue
        if before.rule is not None or after.rule is not None:
            raise InputError(
                f"ledger: {after.title}: a filter's theorem needs a cap and a composition that "
                "never change; repeat them, or open another ledger"
            )
        name = charge.passes(after.most)
        if name is not None:
            raise InputError(
                f"ledger: {after.title}: {name} {ceiling(getattr(charge, name))} is used or "
                "reserved, and a cap cannot be below that; give more"
            )


def _account(cap: Cap) -> dict[str, Any]:
    """Return what makes an account: all of its cap but the target and how costs add up."""
    return cap.model_dump(exclude=_TARGET)
