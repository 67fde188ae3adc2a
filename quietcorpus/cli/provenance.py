"""`quietcorpus provenance`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

import quietcorpus as qc

from .command import command
from .options import quiet_option, text_option


@command(
    short_help="Look for texts that are said to be public in the corpus.",
    note="; no report was written",
)
@click.argument("spec", type=click.Path())
@click.option(
    "--report",
    required=True,
    type=click.Path(),
    help="The private report: a new file on this machine, for its owner alone.",
)
@click.option(
    "--public",
    multiple=True,
    metavar="PLACE",
    help="A file, a glob or a saved dataset of further public texts, such as an artefact was made "
    "of; may be given again.",
)
@text_option
@click.option(
    "--accept",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    help="The number of public texts that may be found in the corpus.",
)
@quiet_option
def provenance(spec: str, report: str, public: Sequence[str], **given: Any) -> Iterator[str]:
    """Look for the public texts of a release in its private corpus, before the release.

    The texts of a pool, those of candidates that keep theirs, and those of --public are compared
    with all documents of SPEC's input. A text is found if a document equals it; or if the shorter
    of the two can be made of a passage of the longer one by editing at most 3 of 10 words. Texts of
    fewer than 12 words do not count. If more texts are found than --accept, the exit code is 1.

    This reads the corpus without protection. The report, and whether this command fails, reveal
    facts about the corpus: they are for readers who may read it. No release runs this by itself.

    \b
      quietcorpus provenance spec.yaml --report private/provenance.json \\
        --public 'reviews/*.parquet'
    """
    content = qc.check_provenance(spec, report=report, public=public, **given)
    from quietcorpus.pipelines.provenance.provenance import lines, refuse

    yield from lines(content, report)
    refuse(content)
