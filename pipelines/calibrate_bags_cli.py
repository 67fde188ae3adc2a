"""`quietcorpus calibrate bag-of-words`."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from pipelines.calibrate_cli import Number, Numbers
from pipelines.command import guarded

if TYPE_CHECKING:
    from pipelines.calibration_documents import Documents


class _Bins(click.ParamType):
    """Whole numbers above zero, with commas in between; ascending, each once."""

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
    type=click.Choice(["frequency", "random", "none"]),
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
    methods: tuple[str, ...],
    text: str,
    documents: int | None,
    histogram_epsilon: Fraction,
    runs: int,
    seed: int,
    quiet: bool,
) -> None:
    """Say which map and number of bins serve a budget best, for `quietcorpus reconstruct`.

    Releases of the public documents at SOURCE are simulated and reconstructed, and 20 topics of
    what comes out are compared with the documents' own. Without public text, documents are drawn
    from topics around the noisy histogram of a release, of the same number and mean length:

    \b
      quietcorpus calibrate bag-of-words 'public/*.parquet' --vocabulary words.txt --epsilons 1,2
      quietcorpus calibrate bag-of-words --histogram releases/words --epsilons 1,2
    """

    def run() -> list[str]:
        from pipelines.logs import configure_logging

        configure_logging("INFO")
        from apache_beam.io.filesystems import FileSystems
        from apache_beam.options.pipeline_options import PipelineOptions

        from indexes.compression import Method
        from pipelines import calibrate_bags as job

        job.check_installed()
        FileSystems.set_options(PipelineOptions([]))
        settings = job.Settings(
            epsilons=epsilons,
            bins=bins,
            methods=[Method(name) for name in methods],
            histogram_epsilon=histogram_epsilon,
            runs=runs,
            seed=seed,
        )
        given = _documents(source, vocabulary, histogram, text, documents, seed)
        return list(job.lines(job.calibrate(given, settings, quiet=quiet)))

    for line in guarded(run):
        click.echo(line)


def _documents(
    source: str | None,
    vocabulary: str | None,
    histogram: str | None,
    text: str,
    documents: int | None,
    seed: int,
) -> Documents:
    from pipelines.calibration_documents import Drawn, PublicTexts
    from pipelines.spec_values import absolute
    from transforms.artefacts import Artefact
    from transforms.documents import Corpus
    from transforms.errors import InputError
    from transforms.vocabulary import load

    if histogram is not None:
        if source is not None or vocabulary is not None:
            raise InputError("--histogram: stands in place of SOURCE and --vocabulary; leave them")
        return Drawn.of(histogram, documents, seed)
    if source is None or vocabulary is None:
        raise InputError("SOURCE: give public documents and a --vocabulary, or a --histogram")
    words = load(Artefact.found("--vocabulary", absolute(vocabulary)))
    return PublicTexts.read(Corpus(absolute(source), text), words, documents, seed)
