"""`quietcorpus calibrate bag-of-words`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import click

import quietcorpus as qc

from ..calibration import TriedMap
from .command import command
from .options import (
    Number,
    Numbers,
    Wholes,
    quiet_option,
    seed_option,
    text_option,
    tokenizer_options,
)


@command("bag-of-words", short_help="Find the best map and number of bins, on public text.")
@click.argument("source", required=False)
@click.option(
    "--vocabulary",
    help="The vocabulary of the planned release: text with one term per line, or Parquet.",
)
@click.option("--histogram", help="Instead of SOURCE: a release whose vocabulary has weights.")
@click.option(
    "--epsilons",
    required=True,
    type=Numbers(),
    help="The documents' epsilons, divided by N, such as 0.5,1,2.",
)
@click.option(
    "--bins",
    default="100,200,400,800,1600",
    show_default=True,
    type=Wholes(),
    help="The numbers of bins to try; those above the number of words are left out.",
)
@click.option(
    "--map",
    "maps",
    multiple=True,
    default=["frequency"],
    show_default=True,
    type=click.Choice(get_args(TriedMap)),
    help="A map to try; may be given again. `none` has a bin for every term.",
)
@tokenizer_options("SOURCE")
@text_option
@click.option(
    "--documents",
    type=click.IntRange(1),
    help="The number of documents that will be released; by default, all of SOURCE or of the "
    "histogram. All of them, times the number of bins, must fit in memory.",
)
@click.option(
    "--histogram-epsilon",
    default="0.5",
    show_default=True,
    type=Number(),
    help="The histogram's epsilon, also divided by N.",
)
@click.option(
    "--runs",
    default=5,
    show_default=True,
    type=click.IntRange(2),
    help="The number of runs, each with fresh noise.",
)
@seed_option("the noise")
@quiet_option
def calibrate_bags(source: str | None, **given: Any) -> Iterator[str]:
    """Find the best map and number of bins for a budget, with `quietcorpus reconstruct` in mind.

    This simulates releases of the public documents at SOURCE, reconstructs them, and compares 20
    topics of the results with the documents' own. Without public text, it draws documents of the
    same number and mean length from topics around the noisy histogram of a release:

    \b
      quietcorpus calibrate bag-of-words 'public/*.parquet' --vocabulary words.txt --epsilons 1,2
      quietcorpus calibrate bag-of-words --histogram releases/words --epsilons 1,2
    """
    from quietcorpus.pipelines.kinds.bag_of_words.calibrate import lines

    yield from lines(qc.calibrate_bags(source, **given))
