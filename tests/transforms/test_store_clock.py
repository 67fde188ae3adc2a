"""The clock of a store is learnt from its refusals, and what differs from it dates nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from quietcorpus.transforms import store_clock
from quietcorpus.transforms.errors import StoreUnavailable
from quietcorpus.transforms.store_clock import StoreClock

NOW = datetime(2026, 11, 27, 3, tzinfo=UTC)


class Clock(datetime):
    """A clock that stands."""

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        assert tz is UTC
        return NOW


@pytest.fixture(autouse=True)
def standing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that stands, and nothing learnt, before and after."""
    monkeypatch.setattr(store_clock, "datetime", Clock)
    monkeypatch.setattr(StoreClock, "ahead", timedelta())


def date(seconds: int) -> str:
    return format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)


def test_a_difference_is_learnt_of_a_request_that_was_dated_otherwise() -> None:
    # Kills: a refusal for another reason that is repeated for ever; a difference in one direction
    # alone, or that is kept when the clock is right again; a request that another thread's refusal
    # makes a lasting one.
    told = [(0, 300, False), (0, 301, True), (0, 301, True), (301, 301, False), (301, 0, True)]
    told += [(0, -300, False), (0, -301, True), (7200, -301, True), (-301, -301, False)]
    ahead = 0
    for dated, seconds, learnt in told:
        assert StoreClock.learn(NOW + timedelta(seconds=dated), date(seconds)) is learnt, seconds
        ahead = seconds if learnt else ahead
        assert StoreClock.ahead.total_seconds() == ahead


@pytest.mark.parametrize("said", [None, "", "yesterday", "Fri, 27 Nov 2026 09:00:00 -0000"])
def test_an_answer_without_a_date(said: str | None) -> None:
    # Kills: an error of another kind, of a store or a proxy that leaves out the date or its zone.
    assert not StoreClock.learn(NOW, said)
    assert not StoreClock.ahead


@pytest.mark.parametrize("seconds", [3540, -3540])
def test_a_difference_is_named(seconds: int) -> None:
    # Kills: a difference in one direction alone, or told with a sign.
    StoreClock.require_agreement()
    StoreClock.learn(NOW, date(seconds))
    with pytest.raises(StoreUnavailable, match=r"^this machine's clock: .* by 59 minutes; set it"):
        StoreClock.require_agreement()
    StoreClock.learn(NOW + timedelta(seconds=seconds), date(0))
    StoreClock.require_agreement()
