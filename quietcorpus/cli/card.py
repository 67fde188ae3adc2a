"""`quietcorpus card`."""

from __future__ import annotations

from collections.abc import Iterator

import click

import quietcorpus as qc

from .command import command


@click.group(short_help="Put a release's card into forms that others take.")
def card() -> None:
    """Put a release's card into forms that others take.

    The forms are made from release.json alone.
    """


@command("export", group=card, short_help="Export the card for a registry, loaders or reviewers.")
@click.argument("release")
@click.option(
    "--as",
    "form",
    required=True,
    type=click.Choice(["registry", "croissant", "sp800-226", "datasheet"]),
    help="The form.",
)
@click.option("--curator", help="The publisher of the release, which no card names.")
@click.option(
    "--curator-type",
    type=click.Choice(["Government", "Industry", "Nonprofit"]),
    help="The type of the curator.",
)
@click.option("--use", help="The purpose of the release.")
@click.option("--region", help="The region of the documents, or the one whose law applies.")
def export(release: str, form: str, **given: str | None) -> Iterator[str]:
    """Print the card of RELEASE (a folder or an object-store URI) in another form.

    \b
      registry   a record for the registry of deployments of differential privacy, YAML
      croissant  Croissant 1.1 metadata, which loaders of datasets read, JSON-LD
      sp800-226  the components of NIST SP 800-226, with the evidence for each, Markdown
      datasheet  a datasheet for datasets (Gebru et al.), Markdown

    A registry's record needs --curator, --curator-type, --use and --region; the others take them
    if they have a place for them. Each form marks what the card does not know.

    \b
      quietcorpus card export released/complaints --as croissant > croissant.json
    """
    yield qc.export_card(release, form, **given).rstrip("\n")  # type: ignore[arg-type]
