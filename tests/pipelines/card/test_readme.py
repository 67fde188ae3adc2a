"""The card for people."""

from __future__ import annotations

from fractions import Fraction

from machine import ROOT

from quietcorpus.mechanisms.accounting.guarantees import round_up
from quietcorpus.pipelines.card.readme import mechanism
from quietcorpus.pipelines.card.verify import read_card


def test_numbers_are_shown_in_few_digits() -> None:
    # Kills: a delta of 1.0000000000000002e-06 for a millionth; an epsilon that is rounded down.
    card = read_card(str(ROOT / "tests" / "fixtures" / "formats" / "card-v1"))
    given = {"epsilon": round_up(Fraction(2, 3)), "histogram_epsilon": round_up(Fraction(1, 10**6))}
    made = card.model_copy(update={"mechanism": card.mechanism.model_copy(update=given)})
    shown = dict(mechanism(made))
    assert (shown["epsilon"], shown["histogram_epsilon"]) == ("0.666667", "1e-6")
