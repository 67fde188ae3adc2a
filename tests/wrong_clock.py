"""A clock of this process that is wrong by hours, for boto and for us."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest


class WrongClock:
    """A clock that is `hours` ahead, by which boto signs and ledgers are dated.

    Make it before the process is patient, whose changes stand on what they find.
    """

    hours = 0.0

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        from botocore import auth

        from quietcorpus.pipelines.ledger import chain
        from quietcorpus.transforms import store_clock

        outer, usual = self, auth.get_current_datetime

        class Shown(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> Any:
                return datetime.now(tz) + outer.off

        patch.setattr(auth, "get_current_datetime", lambda *given: usual(*given) + self.off)
        patch.setattr(store_clock, "datetime", Shown)
        patch.setattr(chain, "datetime", Shown)

    @property
    def off(self) -> timedelta:
        """The time by which it is ahead."""
        return timedelta(hours=self.hours)
