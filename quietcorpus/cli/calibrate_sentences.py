"""`quietcorpus calibrate sentence-embeddings`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

import quietcorpus as qc

from .command import command
from .options import Numbers, quiet_option, seed_option, text_option


@command("sentence-embeddings", short_help="Find the best mechanism, on public text.")
@click.argument("candidates")
@click.argument("source")
@click.option(
    "--epsilons", required=True, type=Numbers(), help="The epsilons of a sentence, such as 3,6,10."
)
@text_option
@click.option(
    "--encoder",
    default="all-MiniLM-L6-v2",
    show_default=True,
    help="The candidates' own: a folder, or the name, of a sentence-transformers model.",
)
@click.option(
    "--documents",
    default=200,
    show_default=True,
    type=click.IntRange(10),
    help="The number of documents to use.",
)
@seed_option("the choice of documents and of all draws")
@quiet_option
def calibrate_sentences(candidates: str, source: str, **given: Any) -> Iterator[str]:
    """Compare mechanisms, with CANDIDATES, on the public documents at SOURCE.

    CANDIDATES must have been made from other documents. For every epsilon, mechanism and utility,
    the table gives the number of projections or directions with the highest agreement: the
    correlation of the released embeddings' cosines between documents with those of the documents'
    own, along the directions in which public documents differ. Beside it are the closeness of the
    released embedding to the document's own (the cosine of their deviations from the centre of
    public sentences) and the depth of the drawn candidate (its utility divided by the number of
    sentences). For deep-candidate, closeness and depth are exact expectations; all else is an
    average over draws.
    """
    from quietcorpus.pipelines.kinds.sentence_embeddings.calibrate import lines

    yield from lines(qc.calibrate_sentences(candidates, source, **given))
