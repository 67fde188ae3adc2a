"""The options, and the types of options, that several commands share."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import click

_SMALLEST, _LARGEST = Decimal("0.000001"), Decimal(1_000_000)

engine_option = click.option(
    "--engine",
    default="local",
    show_default=True,
    type=click.Choice(["local", "ray"]),
    help="Threads, or Ray: the cluster of RAY_ADDRESS, else one on this machine.",
)
"""The option of commands whose work runs on threads or on a Ray cluster."""


class Number(click.ParamType):
    """A number above zero, within reason, exactly as it is written."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Fraction:
        try:
            number = Decimal(value)
        except InvalidOperation:
            self.fail(f"{value!r} is not a number", param, ctx)
        if not (number.is_finite() and _SMALLEST <= number <= _LARGEST):
            self.fail(f"{value} is not between {_SMALLEST} and {_LARGEST}", param, ctx)
        return Fraction(number)


class Numbers(Number):
    """A list of such numbers, separated by commas; sorted, without duplicates."""

    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return tuple(
            sorted({super(Numbers, self).convert(part, param, ctx) for part in value.split(",")})
        )
