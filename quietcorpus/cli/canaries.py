"""`quietcorpus canaries`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

import quietcorpus as qc

from .command import command
from .options import processes_option, quiet_option


@command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    short_help="Test whole releases of a copy of the corpus by canaries.",
    note="; nothing was published",
)
@click.argument("spec", type=click.Path())
@click.argument("beam_options", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--canaries",
    default=1_000,
    show_default=True,
    type=click.IntRange(16, 1_000_000),
    help="The number of canaries in each run.",
)
@click.option(
    "--runs",
    default=3,
    show_default=True,
    type=click.IntRange(1, 100),
    help="The number of runs, each a whole release.",
)
@click.option(
    "--confidence",
    default=0.9999,
    show_default=True,
    type=click.FloatRange(0, 1, True, True),
    help="The probability that a release which keeps its promise passes.",
)
@click.option(
    "--output", help="The place for canaries.json: a folder or an object-store URI, still empty."
)
@click.option(
    "--work",
    help="A private place for the copy, which workers reach; by default a temporary folder.",
)
@processes_option
@quiet_option
def canaries(spec: str, beam_options: tuple[str, ...], **given: Any) -> Iterator[str]:
    """Test releases of SPEC as a whole, by canaries that coins put into a copy of its corpus.

    The command releases the copy as the spec says, from reading to published files, on the engine
    that BEAM_OPTIONS name. It then guesses the coins from the published files, and the guesses
    bound epsilon from below. If the bound is more than is stated, the exit code is 1. It publishes
    nothing, asks no ledger, and deletes the copy and its releases. Its output holds no text of the
    corpus, but depends on the corpus without protection.

    \b
      quietcorpus canaries spec.yaml
      quietcorpus canaries spec.yaml --canaries 3000 --work gs://private/canaries \\
        --runner=DataflowRunner --project=...
    """
    content = qc.canaries(spec, beam_options=beam_options, **given)
    from quietcorpus.pipelines.canaries.canaries import lines, refuse

    yield from lines(content)
    refuse(content)
