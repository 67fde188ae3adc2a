"""`quietcorpus calibrate sentence-embeddings`."""

from __future__ import annotations

from fractions import Fraction

import click

from quietcorpus import api
from quietcorpus.pipelines.cli.options import Numbers
from quietcorpus.pipelines.terminal.failures import guarded
from quietcorpus.pipelines.terminal.logs import configure_logging


@click.command("sentence-embeddings", short_help="The best utility, on public text.")
@click.argument("candidates")
@click.argument("source")
@click.option("--epsilons", required=True, type=Numbers(), help="Such as 3,6,10; of a sentence.")
@click.option("--text", default="text", show_default=True, help="The column of the text.")
@click.option(
    "--encoder",
    default="all-MiniLM-L6-v2",
    show_default=True,
    help="The candidates' own: a folder, or the name, of a sentence-transformers model.",
)
@click.option(
    "--documents", default=200, show_default=True, type=click.IntRange(1), help="How many to use."
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0))
def calibrate_sentences(
    candidates: str,
    source: str,
    epsilons: tuple[Fraction, ...],
    text: str,
    encoder: str,
    documents: int,
    seed: int,
) -> None:
    """Compare the utilities of CANDIDATES on the public documents at SOURCE.

    CANDIDATES must have been made from other documents. For every epsilon and utility, the table
    gives the best number of projections, the closeness of the released embedding to the document's
    own (the cosine of their deviations from the centre of public sentences), and the depth of the
    drawn candidate (its utility divided by the number of sentences). All are exact expectations
    over the mechanism's draws.
    """

    def run() -> list[str]:
        configure_logging("INFO")
        from quietcorpus.pipelines.calibrate.sentences import lines

        return list(
            lines(
                api.calibrate_sentences(
                    candidates,
                    source,
                    epsilons=epsilons,
                    text=text,
                    encoder=encoder,
                    documents=documents,
                    seed=seed,
                )
            )
        )

    for line in guarded(run):
        click.echo(line)
