"""The balances of a ledger: what machines watch is what the ledger grants and refuses by."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from quietcorpus.mechanisms.accounting.guarantees import LimitedPrecision
from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.caps import Cost, as_terms
from quietcorpus.pipelines.ledger.refusals import Request
from quietcorpus.pipelines.ledger.views import Amount, balances

FIFTH = Fraction(1, 5)


def test_the_balances_of_a_ledger(tmp_path: Path) -> None:
    # Kills: a reservation that is left out, a share of epsilon alone, the charge of another
    # release, an account of another kind that is charged, a float that says that more is left.
    place = str(tmp_path / "ledger")
    own = {"definition": "limited-precision", "precision": 2, "epsilon": 10, "delta": "1/1000"}
    caps = [own, {"definition": "sentence", "epsilon": 3}]
    ledger = Ledger.init(place, as_terms({"corpus": str(tmp_path / "in"), "caps": caps}))
    for name, delta in (("a", Fraction(0)), ("b", Fraction(9, 10_000))):
        cost = Cost(LimitedPrecision(2, FIFTH, delta), "words")
        where = (f"{tmp_path}/in/*", f"{tmp_path}/out/{name}")
        ledger.reserve(Request(name, "0" * 32, *where, None, cost))
    charged, other = balances(place, "b")
    assert Fraction(charged.used.epsilon) >= 2 * FIFTH
    assert Fraction(charged.left.epsilon) <= 10 - 2 * FIFTH
    found = (charged.used.epsilon, charged.left.epsilon, charged.share)
    assert found == pytest.approx((0.4, 9.6, 0.9))
    assert charged.charged is not None
    assert charged.charged.delta == pytest.approx(0.0009)
    assert (other.share, other.charged) == (0, None)
    assert other.used == Amount(epsilon=0, delta=0)
    assert balances(place, "c")[0].charged is None
