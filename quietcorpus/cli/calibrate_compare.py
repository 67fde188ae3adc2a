"""`quietcorpus calibrate compare`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

import quietcorpus as qc

from .command import command
from .options import (
    Numbers,
    draws_option,
    eta_option,
    new_place_option,
    quiet_option,
    seed_option,
    words_option,
    workers_option,
)


@command(
    "compare",
    short_help="Compare the effect of an epsilon on two indexes' common words.",
    note="; nothing was written",
)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--epsilons",
    required=True,
    type=Numbers(),
    help="The grid of values for both, such as 6,8,10,14,20, each per unit of distance.",
)
@new_place_option
@words_option
@draws_option
@eta_option
@seed_option("all draws")
@workers_option
@quiet_option
def calibrate_compare(first: str, second: str, output: str, **given: Any) -> Iterator[str]:
    """Measure what Madlib does to the words that the indexes A and B share, in each of them.

    The same epsilon gives a different level of privacy in another embedding. For every epsilon of
    the grid, this measures N_w and S_w as `quietcorpus calibrate words` does, the proxies of Renyi
    entropies that follow from them, and the epsilon of B at which words fare as in A. Both
    embeddings are reduced to the common words:

    \b
      quietcorpus calibrate compare glove-300 fasttext-300 --epsilons 5,8,12,18,27,40 \\
        --output compared
    """
    from quietcorpus.pipelines.kinds.words.compare_report import lines

    yield from lines(qc.compare_indexes(first, second, output, **given))
