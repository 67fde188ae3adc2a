"""`quietcorpus audit`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

import quietcorpus as qc

from .command import command
from .options import quiet_option


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

    If the law of an output can be computed, the audit computes its largest privacy loss from it. In
    all cases, it runs the code of a release on inputs that are as far apart as the statement
    allows, and computes a lower bound of epsilon from the draws. It reads no corpus: inputs are
    made up, and the spec's own input need not exist. If an audit finds more than is stated, the
    exit code is 1. If all pass, this proves nothing: these audits looked and found nothing.

    \b
      quietcorpus audit spec.yaml
      quietcorpus audit spec.yaml --draws 1000000 --output audited
    """
    content = qc.audit(spec, **given)
    from quietcorpus.pipelines.audit.audit import lines, refuse

    yield from lines(content)
    refuse(content)
