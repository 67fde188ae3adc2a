"""`quietcorpus calibrate words`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

import click

from quietcorpus import api
from quietcorpus.pipelines.cli.options import Number, Numbers, engine_option
from quietcorpus.pipelines.terminal.failures import guarded
from quietcorpus.pipelines.terminal.logs import configure_logging


class _Words(click.ParamType):
    """A whole number above zero, or `all`, which is 0."""

    name = "number|all"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if value == "all":
            return 0
        return int(click.IntRange(1).convert(value, param, ctx))


@click.command("words", short_help="What an epsilon does to an index's words, before a run.")
@click.argument("index")
@click.option("--mechanism", required=True, type=click.Choice(["madlib", "brr"]))
@click.option(
    "--epsilons",
    required=True,
    type=Numbers(),
    help="The grid, such as 6,8,10,14,20; a unit of distance each.",
)
@click.option("--output", required=True, help="A folder or an object-store URI, still empty.")
@click.option(
    "--words", default=10_000, show_default=True, type=_Words(), help="How many to measure."
)
@click.option(
    "--draws",
    default=1000,
    show_default=True,
    type=click.IntRange(1, 1_000_000),
    help="For each word and epsilon.",
)
@click.option(
    "--weights",
    help="Parquet of term and weight, by which words are drawn; public, such as a release's.",
)
@click.option(
    "--eta",
    default="0.05",
    show_default=True,
    type=Number(),
    help="S_w holds 1 - eta of the outputs.",
)
@click.option("--unchanged-at-most", type=Number(), help="Solve for epsilon: N_w is at most this.")
@click.option(
    "--set-size-at-least", type=click.IntRange(2), help="Solve for epsilon: S_w is at least this."
)
@click.option(
    "--share",
    default="0.95",
    show_default=True,
    type=Number(),
    help="Of the words for which this is so.",
)
@click.option(
    "--confidence",
    default=0.95,
    show_default=True,
    type=click.FloatRange(0, 1, True, True),
    help="Of the solution.",
)
@click.option(
    "--seed",
    default=1,
    show_default=True,
    type=click.IntRange(0),
    help="Equal seeds give equal numbers.",
)
@engine_option
@click.option(
    "--workers",
    type=click.IntRange(1),
    help="Threads or processes here; one a processor if left out.",
)
@click.option("--quiet", is_flag=True, help="No progress bar; plain log lines.")
def calibrate_words(
    index: str,
    mechanism: Literal["madlib", "brr"],
    epsilons: tuple[Fraction, ...],
    output: str,
    words: int,
    draws: int,
    weights: str | None,
    eta: Fraction,
    unchanged_at_most: Fraction | None,
    set_size_at_least: int | None,
    share: Fraction,
    confidence: float,
    seed: int,
    engine: Literal["local", "ray"],
    workers: int | None,
    quiet: bool,
) -> None:
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
    """

    def run() -> list[str]:
        configure_logging("INFO")
        from quietcorpus.pipelines.calibrate.words_report import lines

        return list(
            lines(
                api.calibrate_words(
                    index,
                    output,
                    mechanism=mechanism,
                    epsilons=epsilons,
                    words=words or None,
                    draws=draws,
                    weights=weights,
                    eta=eta,
                    unchanged_at_most=unchanged_at_most,
                    set_size_at_least=set_size_at_least,
                    share=share,
                    confidence=confidence,
                    seed=seed,
                    engine=engine,
                    workers=workers,
                    progress=not quiet,
                )
            )
        )

    for line in guarded(run, lambda: "; nothing was written"):
        click.echo(line)
