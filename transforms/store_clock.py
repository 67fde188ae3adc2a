"""The clock of a store that refused a request for its date, against this machine's.

S3 refuses a request that is dated a quarter of an hour off its own clock, and every answer of HTTP
is dated by the store. So requests can be dated by the store's clock while this machine's is wrong,
as AWS's own clients for other languages date them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from .errors import StoreUnavailable

_TOLERATED = timedelta(minutes=5)
"""By so much clocks may differ; ledgers assume as much of their writers'."""


class StoreClock:
    """The difference of a store's clock from this machine's, as this process last learnt it.

    It is zero until a store refuses a request for its date, and learnt anew whenever one does.
    """

    ahead = timedelta()

    @classmethod
    def learn(cls, dated: datetime, answered: str | None) -> bool:
        """Learn the difference from a refusal; return whether the request may be refused for it.

        `dated` is the request's date, and `answered` the refusal's, the header `Date`. Requests of
        several threads may be refused at once: each of them is looked at by its own date.
        """
        try:
            answer = parsedate_to_datetime(answered or "")
            if abs(answer - dated) <= _TOLERATED:
                return False
        except (TypeError, ValueError):  # no date, or one without a zone
            return False
        cls.ahead = answer - datetime.now(UTC)
        return True

    @classmethod
    def require_agreement(cls) -> None:
        """Raise StoreUnavailable if the clocks differ: what is written would be dated wrongly."""
        if abs(cls.ahead) > _TOLERATED:
            minutes = abs(cls.ahead) / timedelta(minutes=1)
            raise StoreUnavailable(
                f"this machine's clock: differs from a store's by {minutes:.0f} minutes; set it, "
                "and run again"
            )
