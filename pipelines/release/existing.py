"""Checks, by the card alone, whether the output holds this very release already."""

from __future__ import annotations

import json
import logging
from typing import Any

import pydantic
from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems

from quietcorpus.pipelines.card.model import Card, LedgerEntry
from quietcorpus.pipelines.kinds.prepare import prepare
from quietcorpus.pipelines.release.describe import kept, stated
from quietcorpus.pipelines.spec.spec import Spec
from quietcorpus.pipelines.storage import claims, layout, places, stores
from quietcorpus.pipelines.storage import files as storage
from quietcorpus.transforms.errors import InputError

_LOGGER = logging.getLogger("quietcorpus.completed")


def complete(spec: Spec) -> Card | None:
    """Return the card of this very release if the output holds it; None if it holds no release.

    Raises InputError for another release, or for this one with files missing.
    """
    card = _card_at(spec.output)
    if card is None:
        return None
    other = whole_difference(card, spec)
    if other is not None:
        raise InputError(
            f"output: {spec.output} holds another release ({other}); name another place"
        )
    _refuse_incomplete(card, spec.output)
    _tidy(spec)
    return card


def refuse_existing(spec: Spec) -> None:
    """Raise InputError if the output is taken, except by a run that this one may take over."""
    card = _card_at(spec.output)
    if card is not None and _difference(card, spec) is None:
        raise InputError(
            f"output: {spec.output} holds a release already, of the same id, columns and "
            "mechanism; accept it with `if_exists=ok`, or name another place"
        )
    if not (places.is_local(spec.output) or stores.is_supported(spec.output)):
        storage.refuse_existing(spec.output)  # its error for an unknown scheme is the better one
    # A claim's holder may have left files; once this run holds the claim, it checks whose they are.
    unclaimed = places.is_local(spec.output) or claims.read(spec.output) is None
    if card is not None or unclaimed:
        storage.refuse_existing(spec.output)


def _card_at(output: str) -> Card | None:
    try:
        if not storage.exists(uri := f"{output}/{layout.CARD}"):
            return None
        return Card.model_validate_json(storage.read_bytes(uri))
    except (pydantic.ValidationError, OSError, BeamIOError, ValueError):
        return None


def whole_difference(card: Card, spec: Spec) -> str | None:
    """Return what on the card differs from the spec, or from its artefacts as they are now."""
    other = _difference(card, spec)
    if other is None and list(prepare(spec).artefacts) != card.artefacts:
        return "other artefacts"
    return other


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
    block = json.loads(json.dumps(stated(spec)))
    found = card.mechanism.model_dump(mode="json", exclude_none=True)
    for name in [*type(spec.mechanism).model_fields, *block]:
        if not _agrees(found, name, block.get(name)):
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


def _refuse_incomplete(card: Card, output: str) -> None:
    (found,) = FileSystems.match([f"{output}/**"])
    there = {metadata.path for metadata in found.metadata_list}
    missing = [file.path for file in card.files if f"{output}/{file.path}" not in there]
    if missing:
        raise InputError(
            f"output: {output} holds a release that lacks {missing[0]}; delete it and run again"
        )


def _tidy(spec: Spec) -> None:
    """Delete the claim of a run that was cut short after it had published this release."""
    if places.is_local(spec.output):
        return
    try:
        found = claims.read(spec.output)
        if found is not None and found[0].release == spec.release:
            claims.drop(spec.output, found[0])
            _LOGGER.info("deleted the claim of the run that was cut short after it had published")
    except Exception:  # the release is complete all the same
        _LOGGER.warning("%s could not be deleted; delete it", claims.claim_of(spec.output))
