"""`quietcorpus calibrate rounds`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

import quietcorpus as qc

from .command import command
from .options import DeltaNumber, Number, noise_option


@command("rounds", short_help="Split a budget between two releases of public texts.")
@click.option(
    "--epsilon", required=True, type=Number(), help="The epsilon of both releases together."
)
@click.option("--delta", type=DeltaNumber(), help="Their delta, for Gaussian noise.")
@noise_option
@click.option(
    "--share",
    default="0.2",
    show_default=True,
    type=Number(),
    help="The first release's share of epsilon.",
)
def calibrate_rounds(**given: Any) -> Iterator[str]:
    """Split a budget between two releases of public texts, of which the first narrows the pool.

    Before the first release, this computes the `epsilon` and `delta` of each release, so that both
    together keep to the budget. It holds for documents and for users, and reads nothing:

    \b
      quietcorpus calibrate rounds --epsilon 0.5 --delta 1e-6
    """
    from quietcorpus.pipelines.kinds.public_texts.rounds import lines

    yield from lines(qc.calibrate_rounds(**given))
