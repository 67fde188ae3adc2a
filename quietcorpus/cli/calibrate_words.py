"""`quietcorpus calibrate words`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

import quietcorpus as qc
from quietcorpus.mechanisms.words.registry import names

from .command import command
from .options import (
    DeltaNumber,
    Number,
    Numbers,
    draws_option,
    engine_option,
    eta_option,
    new_place_option,
    quiet_option,
    seed_option,
    words_option,
    workers_option,
)


@command(
    "words",
    short_help="Measure the effect of an epsilon on an index's words.",
    note="; nothing was written",
)
@click.argument("index")
@click.option(
    "--mechanism",
    required=True,
    type=click.Choice(names()),
    help="The mechanism to measure.",
)
@click.option(
    "--epsilons",
    required=True,
    type=Numbers(),
    help="The grid of values, such as 6,8,10,14,20, each per unit of distance.",
)
@new_place_option
@words_option
@draws_option
@click.option(
    "--weights",
    help="Parquet of term and weight, to draw words by; public, such as that of a release.",
)
@eta_option
@click.option("--unchanged-at-most", type=Number(), help="Solve for epsilon: N_w is at most this.")
@click.option(
    "--set-size-at-least", type=click.IntRange(2), help="Solve for epsilon: S_w is at least this."
)
@click.option(
    "--share",
    default="0.95",
    show_default=True,
    type=Number(),
    help="The share of the words for which the solution must hold.",
)
@click.option(
    "--confidence",
    default=0.95,
    show_default=True,
    type=click.FloatRange(0, 1, True, True),
    help="The confidence of the solution.",
)
@click.option(
    "--truncation",
    type=Number(),
    help="For tem: the distance beyond which all words are equally likely; by default, by epsilon.",
)
@click.option(
    "--tuning",
    type=Number(),
    help="For vickrey: how much the second nearest word is preferred, above 0 and at most 1.",
)
@click.option(
    "--search",
    metavar="ENGINE[:probes=NUMBER]",
    help="The engine that a release would use, such as faiss-ivf:probes=32, also compared with "
    "exact search by recall and speed; by default exact.",
)
@click.option(
    "--document-epsilon",
    type=Number(),
    help="Solve for the epsilon of a word that keeps whole documents to this one.",
)
@click.option("--document-delta", type=DeltaNumber(), help="The delta of --document-epsilon.")
@click.option(
    "--document-words",
    type=click.IntRange(1),
    help="The most words that a document of --document-epsilon has.",
)
@seed_option("all draws")
@engine_option
@workers_option
@quiet_option
def calibrate_words(index: str, output: str, **given: Any) -> Iterator[str]:
    """Measure what a mechanism does to the words of INDEX, before anything is released.

    For every epsilon and word, this measures how often the word comes back unchanged (N_w), the
    size of the smallest set that holds its outputs except for a probability of eta (S_w), and the
    number of different outputs. It also gives the distances to nearest words, and the matching
    epsilon of the other mechanism. With --unchanged-at-most, --set-size-at-least or both, it finds
    the smallest noise that meets them for a --share of the words, and validates it on fresh words
    and draws:

    \b
      quietcorpus calibrate words glove-300 --mechanism madlib --epsilons 6,8,10,14,20 \\
        --unchanged-at-most 0.5 --set-size-at-least 50 --output calibrated

    With --document-epsilon, --document-delta and --document-words, it finds the largest epsilon of
    a word at which documents of at most that many words keep to this epsilon and delta, whichever
    of their words are replaced.
    """
    from quietcorpus.pipelines.kinds.words.calibrate_report import lines

    yield from lines(qc.calibrate_words(index, output, **given))
