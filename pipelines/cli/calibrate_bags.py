"""`quietcorpus calibrate bag-of-words`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, get_args

import click

from quietcorpus import api
from quietcorpus.pipelines.cli.options import Number, Numbers
from quietcorpus.pipelines.terminal.failures import guarded
from quietcorpus.pipelines.terminal.logs import configure_logging


class _Bins(click.ParamType):
    """A list of whole numbers above zero, separated by commas; sorted, without duplicates."""

    name = "numbers"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        one = click.IntRange(1)
        return tuple(sorted({int(one.convert(part, param, ctx)) for part in value.split(",")}))


@click.command("bag-of-words", short_help="The best map and number of bins, on public text.")
@click.argument("source", required=False)
@click.option("--vocabulary", help="Of the release to be: text with a term a line, or Parquet.")
@click.option("--histogram", help="In place of SOURCE: a release whose vocabulary has weights.")
@click.option("--epsilons", required=True, type=Numbers(), help="Such as 0.5,1,2; epsilon / N.")
@click.option(
    "--bins",
    default="100,200,400,800,1600",
    show_default=True,
    type=_Bins(),
    help="Numbers of bins to try; those above the number of words are left out.",
)
@click.option(
    "--map",
    "methods",
    multiple=True,
    default=["frequency"],
    show_default=True,
    type=click.Choice(get_args(api.TriedMap)),
    help="Maps to try; may be given again. `none` has a bin for every term.",
)
@click.option("--text", default="text", show_default=True, help="The column of the text.")
@click.option(
    "--documents",
    type=click.IntRange(1),
    help="As many as will be released; all of SOURCE, or of the histogram, if left out. Memory "
    "holds all, times the number of bins.",
)
@click.option(
    "--histogram-epsilon", default="0.5", show_default=True, type=Number(), help="Over N, too."
)
@click.option(
    "--runs", default=5, show_default=True, type=click.IntRange(2), help="Each with fresh noise."
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0))
@click.option("--quiet", is_flag=True, help="No progress bar; plain log lines.")
def calibrate_bags(
    source: str | None,
    vocabulary: str | None,
    histogram: str | None,
    epsilons: tuple[Fraction, ...],
    bins: tuple[int, ...],
    methods: tuple[api.TriedMap, ...],
    text: str,
    documents: int | None,
    histogram_epsilon: Fraction,
    runs: int,
    seed: int,
    quiet: bool,
) -> None:
    """Find the best map and number of bins for a budget, with `quietcorpus reconstruct` in mind.

    Releases of the public documents at SOURCE are simulated and reconstructed, and 20 topics of the
    results are compared with the documents' own. Without public text, documents of the same number
    and mean length are drawn from topics around the noisy histogram of a release:

    \b
      quietcorpus calibrate bag-of-words 'public/*.parquet' --vocabulary words.txt --epsilons 1,2
      quietcorpus calibrate bag-of-words --histogram releases/words --epsilons 1,2
    """

    def run() -> list[str]:
        configure_logging("INFO")
        from quietcorpus.pipelines.calibrate.bags import lines

        return list(
            lines(
                api.calibrate_bags(
                    source,
                    vocabulary=vocabulary,
                    histogram=histogram,
                    epsilons=epsilons,
                    bins=bins,
                    maps=methods,
                    text=text,
                    documents=documents,
                    histogram_epsilon=histogram_epsilon,
                    runs=runs,
                    seed=seed,
                    progress=not quiet,
                )
            )
        )

    for line in guarded(run):
        click.echo(line)
