"""`quietcorpus init`: a first spec for a corpus."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click

import quietcorpus as qc

from .command import command

_WANTED = ("counts", "terms", "text", "document-vectors", "word-vectors", "overview")
_OFFER = """What do you want to hand out?
  counts            word counts of every document: topics, search, classification
  terms             the frequent words of the corpus, or of its users, with noisy counts
  text              text that people can read
  document-vectors  a vector for every document: classification, search
  word-vectors      a vector for every word
  overview          what the corpus is about: groups of texts, their sizes and telling words"""


def _ask(context: click.Context, option: click.Parameter, given: str | None) -> str:
    """Ask for what was not given, where a person can answer."""
    if given is not None:
        return given
    if not sys.stdin.isatty():
        raise click.MissingParameter(ctx=context, param=option)
    click.echo(_OFFER, err=True)
    return str(click.prompt("Wanted", type=click.Choice(_WANTED), err=True))


def _named(language: str | None, *, guessed: bool) -> str:
    from quietcorpus.indexes.tokens.languages import LANGUAGES

    if language is None:
        return "not recognised; --language gives it"
    return LANGUAGES[language] + (", it seems; --language gives another" if guessed else "")


@command(
    api=lambda: qc.propose_spec,
    short_help="Write a first spec for a corpus.",
    note="; nothing was written",
)
@click.argument("corpus")
@click.option(
    "--want", type=click.Choice(_WANTED), callback=_ask, help="The content of the release."
)
@click.option(
    "--output",
    default="spec.yaml",
    show_default=True,
    help="The file to write, which must not exist.",
)
def init(corpus: str, output: str, **given: Any) -> Iterator[str]:
    """Write a first spec for CORPUS, a file or a glob, with the reasons beside its values.

    The command looks at the first thousand records, for their columns. What you want and whom you
    protect decide the kind of release. The command prints and writes nothing of a record except
    the names of columns and the language of the texts.

    \b
      quietcorpus init complaints.parquet --want counts --label product
      quietcorpus init reviews.parquet --want terms --protect users --users 40000
      quietcorpus init 'mail/*.jsonl' --want text --protect users --user sender --users 20000
    """
    if given["want"] == "text" and given["protect"] is None and sys.stdin.isatty():
        choice = click.Choice(["words", "documents", "users"])
        given["protect"] = click.prompt("Whom does the guarantee hide?", type=choice, err=True)
    proposed = qc.propose_spec(corpus, output=output, **given)
    yield f"spec      {output}: {proposed.kind}"
    yield f"language  {_named(proposed.language, guessed=given['language'] is None)}"
    for step in proposed.before:
        yield f"first     {step}"
    yield f"then      quietcorpus release {output}"
    told = f"quietcorpus release {output} --dry-run tells what it will be good for"
    yield f"verdict   {proposed.verdict or told}"
