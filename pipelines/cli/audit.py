"""`quietcorpus audit`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

import quietcorpus as qc
from quietcorpus.pipelines.cli.command import command
from quietcorpus.pipelines.cli.options import quiet_option


@command(
    short_help="Test a spec's mechanisms against their guarantees.", note="; nothing was written"
)
@click.argument("spec", type=click.Path())
@click.option(
    "--output", help="The place for audit.json: a folder or an object-store URI, still empty."
)
@click.option(
    "--draws",
    default=100_000,
    show_default=True,
    type=click.IntRange(100, 100_000_000),
    help="The number of draws for each input, in the audits that draw.",
)
@click.option(
    "--confidence",
    default=0.9999,
    show_default=True,
    type=click.FloatRange(0, 1, True, True),
    help="The probability that correct mechanisms pass all audits together.",
)
@quiet_option
def audit(spec: str, **given: Any) -> Iterator[str]:
    """Test the mechanisms of SPEC against their stated guarantees.

    Where the law of an output can be computed, so is its largest privacy loss. In all cases, the
    code that would run is run on inputs that are as far apart as the statement allows, and a lower
    bound of epsilon is computed from its draws. No corpus is read: inputs are made up, and the
    spec's own input need not exist. If an audit finds more than is stated, the exit code is 1. If
    all pass, this proves nothing: it only means that these audits looked and found nothing.

    \b
      quietcorpus audit spec.yaml
      quietcorpus audit spec.yaml --draws 1000000 --output audited
    """
    content = qc.audit(spec, **given)
    from quietcorpus.pipelines.audit.audit import lines, refuse

    yield from lines(content)
    refuse(content)
