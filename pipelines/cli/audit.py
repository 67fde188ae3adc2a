"""`quietcorpus audit`."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from quietcorpus import api
from quietcorpus.pipelines.terminal.failures import guarded
from quietcorpus.pipelines.terminal.logs import configure_logging


@click.command(short_help="Test a spec's mechanisms against what they state.")
@click.argument("spec", type=click.Path())
@click.option("--output", help="A folder or an object-store URI, still empty, for audit.json.")
@click.option(
    "--draws",
    default=100_000,
    show_default=True,
    type=click.IntRange(100, 100_000_000),
    help="Of each input, for the audits that draw.",
)
@click.option(
    "--confidence",
    default=0.9999,
    show_default=True,
    type=click.FloatRange(0, 1, True, True),
    help="That correct mechanisms pass, all audits together.",
)
def audit(spec: str, output: str | None, draws: int, confidence: float) -> None:
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

    def run() -> dict[str, Any]:
        configure_logging("INFO")
        return api.audit(spec, output=output, draws=draws, confidence=confidence)

    content = guarded(run, lambda: "; nothing was written")

    from quietcorpus.pipelines.audit.audit import lines, refuse

    for line in lines(content):
        click.echo(line)
    guarded(partial(refuse, content))
