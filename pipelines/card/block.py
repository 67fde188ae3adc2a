"""The spec's block in a card's mechanism: a release states it, and `verify` reads it back.

What a spec may not hold, no card states: a block that is read back passes the same checks as the
block of a spec, of the same classes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from pydantic import BaseModel, ValidationError

from quietcorpus.indexes.tokens.tokenizers import Tokenizer
from quietcorpus.mechanisms.accounting.guarantees import round_up

from ..schema.errors import one_line
from ..schema.mechanism import MechanismSpec, block_of
from ..schema.tokenizers import tokenizer_of
from ..storage import places
from .mechanism import Mechanism

_SAME = 1e-15  # a decimal that is rounded up again may be one float above


def stated(block: MechanismSpec) -> dict[str, Any]:
    """Return the card's fields on the mechanism that follow from the spec's block alone."""
    said: dict[str, Any] = resolved(block)
    given = getattr(block, "tokenizer", None)
    return said if given is None else said | {"tokenizer": tokenizer_of(given).description}


def read_back(mechanism: Mechanism) -> MechanismSpec:
    """Return the spec's block that a card's mechanism states.

    Raises ValueError unless a release of that block states all that the mechanism does, under the
    same names and nothing besides.
    """
    content = mechanism.model_dump(mode="json", exclude_none=True)
    if "tokenizer" in content:
        content["tokenizer"] = _rule(content["tokenizer"])
    kind = block_of(mechanism.kind)
    given = mechanism.asked({key: content[key] for key in kind.model_fields if key in content})
    try:
        block = kind.model_validate(given)
    except ValidationError as error:
        raise ValueError(one_line(error, kind, given)) from None
    if not _alike(resolved(block), given):
        raise ValueError("a value is not one that a spec has")
    needed, perhaps = mechanism.results(block)
    found = content.keys() - given.keys()
    if wrong := (needed - content.keys()) | (found - needed - perhaps):
        raise ValueError(f"{min(wrong)} is missing, or does not belong to it")
    return block


def resolved(value: Any) -> Any:
    """Convert a value of the spec's block to plain JSON values."""
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        return {name: resolved(inner) for name, inner in fields.items() if inner is not None}
    if isinstance(value, dict):
        return {name: resolved(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):  # a tuple holds labels, not places
        return [resolved(inner) for inner in value] if isinstance(value, list) else list(value)
    if isinstance(value, Fraction):
        return round_up(value)
    if isinstance(value, str) and value.startswith("/"):
        return places.without_folders(value)
    return getattr(value, "value", value)


def _rule(description: str) -> Any:
    """Return the rule of a description as a spec names it; raises ValueError for another text."""
    found = Tokenizer.described(description)
    if not found.takes_language:
        return found.name
    return {"name": found.name} | ({"language": found.language} if found.language else {})


def _alike(own: Any, given: Any) -> bool:
    """Tell whether two JSON values are the same, but for a decimal's last rounding."""
    if isinstance(own, float) and isinstance(given, float):
        return math.isclose(own, given, rel_tol=_SAME)
    if isinstance(own, Mapping) and isinstance(given, Mapping):
        return own.keys() == given.keys() and all(_alike(own[key], given[key]) for key in own)
    if isinstance(own, list) and isinstance(given, list):
        return len(own) == len(given) and all(map(_alike, own, given))
    return type(own) is type(given) and bool(own == given)
