"""Times and rates in words."""

from __future__ import annotations

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def duration(seconds: float) -> str:
    """Return a time in whole units, in the largest of which it has two or more."""
    size, unit = next((one for one in _UNITS if seconds >= 2 * one[0]), _UNITS[-1])
    count = max(1, round(seconds / size))
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


def rate(a_second: float) -> str:
    """Return a rate by the second, or by the minute or the hour where that is less than one."""
    for size, unit in ((1, "s"), (60, "min"), (3_600, "h")):
        if (found := a_second * size) >= 1 or unit == "h":
            return f"{found:,.0f}/{unit}" if found >= 100 else f"{found:.2g}/{unit}"
    raise AssertionError
