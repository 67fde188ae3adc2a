"""Checks, by the card alone, whether the output holds this very release already."""

from __future__ import annotations

import json
from typing import Any

import pydantic
from apache_beam.io.filesystem import BeamIOError

from quietcorpus.transforms.errors import InputError, blamed
from quietcorpus.transforms.outages import outage

from ..card.block import stated
from ..card.model import Card, LedgerEntry
from ..jobs.kind import prepare
from ..schema.spec import Spec
from ..storage import files as storage
from ..storage.output import Output
from .describe import kept


def complete(spec: Spec) -> Card | None:
    """Return the card of this very release, as `standing` does, and tidy up after it."""
    card = standing(spec)
    if card is not None:
        Output(spec.output).tidy(spec.release)
    return card


def standing(spec: Spec) -> Card | None:
    """Return the card of this very release if the output holds it; None if it holds no release.

    Raises InputError for another release, or for this one with files missing.
    """
    output = Output(spec.output)
    card = _card_at(output)
    if card is None:
        return None
    other = whole_difference(card, spec)
    if other is not None:
        raise InputError(
            f"output: {output.uri} holds another release ({other}); name another place"
        )
    _refuse_incomplete(card, output)
    return card


def refuse_existing(spec: Spec) -> None:
    """Raise InputError if the output is taken, except by a run that this one may take over."""
    output = Output(spec.output)
    card = _card_at(output)
    if card is not None and _difference(card, spec) is None:
        raise InputError(
            f"output: {output.uri} holds a release already, of the same id, columns and "
            "mechanism; accept it with `if_exists=ok`, or name another place"
        )
    # A claim's holder may have left files; once this run holds the claim, it checks whose they are.
    if not output.claimed or card is not None:
        output.require_free()


def _card_at(output: Output) -> Card | None:
    """Return the card there, or None if there is none that can be read.

    Raises Unavailable if its store does not answer now, so that no run takes it for missing.
    """
    try:
        if not storage.exists(output.card):
            return None
        return Card.model_validate_json(storage.read_bytes(output.card))
    except Exception as error:  # every object store's client has its own
        if outage(error):
            raise blamed(error, f"output: {output.uri}", "cannot be read") from None
        if isinstance(error, pydantic.ValidationError | OSError | BeamIOError | ValueError):
            return None
        raise


def whole_difference(card: Card, spec: Spec) -> str | None:
    """Return what on the card differs from the spec, or from its artefacts as they are now."""
    other = _difference(card, spec)
    if other is not None:
        return other
    kind = prepare(spec)
    if list(kind.artefacts) != card.artefacts:
        return "other artefacts"
    found = card.mechanism.model_dump(mode="json")
    differing = [name for name, value in kind.chosen.items() if found.get(name) != value]
    return f"other mechanism.{differing[0]}" if differing else None


def _difference(card: Card, spec: Spec) -> str | None:
    """Return what on the card differs from the spec; None if nothing does."""
    if card.release != spec.release:
        return f"release: {card.release}"
    columns = kept(spec)
    if card.columns != list(columns):
        return "other input.keep"
    if card.id_column != columns.get("id"):
        return "other input.id"
    if _partition(card.ledger) != _asked(spec):
        return "other ledger"
    block = json.loads(json.dumps(stated(spec.mechanism)))
    found = card.mechanism.model_dump(mode="json", exclude_none=True)
    for name in [*type(spec.mechanism).model_fields, *block]:
        # Where a key is left out, `whole_difference` compares the value that was found.
        left_out = name in spec.mechanism.found and block.get(name) is None
        if not left_out and not _agrees(found, name, block.get(name)):
            return f"other mechanism.{name}"
    return None


def _partition(counted: LedgerEntry | None) -> tuple[str | None, ...] | None:
    """Return how the card's ledger counts the release."""
    if counted is None:
        return None
    return counted.partition, counted.disjoint, counted.identifier


def _asked(spec: Spec) -> tuple[str | None, ...] | None:
    """Return how the spec's ledger is to count the release."""
    if spec.ledger is None:
        return None
    column = spec.input.id if spec.disjoint == "compared" else None
    return spec.ledger.partition, spec.disjoint, column


def _agrees(block: dict[str, Any], name: str, value: Any) -> bool:
    """Return whether a card's block has the spec's value of a key.

    For `matching` the key itself holds the resulting number, and `matched` the spec's value.
    """
    if isinstance(value, dict) and "matching" in value:
        return bool(block.get("matched") == value["matching"])
    return bool(block.get(name) == value)


def _refuse_incomplete(card: Card, output: Output) -> None:
    there = output.files
    missing = [file.path for file in card.files if f"{output.uri}/{file.path}" not in there]
    if missing:
        raise InputError(
            f"output: {output.uri} holds a release that lacks {missing[0]}; delete it and run again"
        )
