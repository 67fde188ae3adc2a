"""`quietcorpus calibrate public-texts`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

import quietcorpus as qc

from .command import command
from .options import (
    DeltaNumber,
    Number,
    Numbers,
    Wholes,
    noise_option,
    quiet_option,
    seed_option,
    text_option,
)


@command("public-texts", short_help="Find the best pool and number of votes, on public text.")
@click.argument("source")
@click.option(
    "--pool",
    "pools",
    required=True,
    multiple=True,
    help="A pool to try; may be given again.",
)
@click.option(
    "--epsilons", required=True, type=Numbers(), help="The epsilons of a document, such as 0.5,1."
)
@click.option("--delta", type=DeltaNumber(), help="The release's delta, for Gaussian noise.")
@noise_option
@click.option(
    "--nearest",
    default="20,100,500",
    show_default=True,
    type=Wholes(),
    help="The numbers of texts that a document votes for.",
)
@click.option(
    "--label",
    help="The column of a label, for strata: settings are then compared by a classifier.",
)
@text_option
@click.option(
    "--encoder",
    default="all-MiniLM-L6-v2",
    show_default=True,
    help="The encoder of pools that carry none: the folder or the name of a model.",
)
@click.option(
    "--documents",
    type=click.IntRange(1),
    help="The number of documents, or users, that will be released; by default half of SOURCE.",
)
@click.option(
    "--rounds",
    type=Number(),
    metavar="SHARE",
    help="Also try two releases: the first has this share of epsilon, and narrows the pool.",
)
@click.option(
    "--runs",
    default=5,
    show_default=True,
    type=click.IntRange(2),
    help="The number of runs, each with another split and fresh noise.",
)
@seed_option("splits and noise")
@quiet_option
def calibrate_public_texts(source: str, **given: Any) -> Iterator[str]:
    """Find the best pool, and the number of texts that a document votes for, for a budget.

    The public documents at SOURCE should be like the private ones, and must be in no pool. Half of
    them vote. The texts that a release would hold are compared with the other half: by their
    distance from the documents, or, with a label, by what a classifier learns from them:

    \b
      quietcorpus calibrate public-texts reviews.parquet --pool pool-a --pool pool-b \\
        --label sentiment --epsilons 0.5,1 --delta 1e-6
    """
    from quietcorpus.pipelines.kinds.public_texts.calibrate_report import lines

    yield from lines(qc.calibrate_public_texts(source, **given))
