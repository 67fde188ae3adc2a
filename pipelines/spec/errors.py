"""Errors of a spec, in one line that names the key, the value and what is allowed."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import Any

import pydantic
from pydantic import BaseModel

from quietcorpus.pipelines import registry
from quietcorpus.pipelines.spec.mechanism import UNKNOWN_KIND, MechanismSpec, block_of
from quietcorpus.pipelines.spec.words import TAGS

_TOO_LONG = 10**40
_ALIKE = 0.75  # of difflib's ratio: less would take another kind's `precision` for `epsilon`


def one_line(error: pydantic.ValidationError, whole: type[BaseModel], content: Any) -> str:
    """Return the first error of a spec as `key: value problem; remedy`.

    Args:
        error: the errors.
        whole: the model of the spec.
        content: the content that was checked against it.
    """
    errors = error.errors(include_url=False)
    # A misspelt key makes one key unknown and another one missing: the first error says more.
    first = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])
    key = ".".join(_keys(first["loc"]))
    value, kind, message = first["input"], first["type"], first["msg"]
    if kind == "extra_forbidden":
        allowed = _allowed(first["loc"][:-1], whole, content)
        meant = _meant(str(first["loc"][-1]), allowed)
        return f"{key}: unknown key{meant} allowed here: {', '.join(allowed)}"
    if kind == "missing":
        return f"{key}: missing; give it a value"
    if kind == UNKNOWN_KIND:
        given, known = value.get("kind"), registry.names()
        meant = _meant(str(given), known)
        return f"{key}.kind: {shown(given)} is not a kind{meant} give one of {', '.join(known)}"
    if kind in ("model_type", "model_attributes_type"):
        keys = ", ".join(_allowed(first["loc"], whole, content))
        return f"{key or 'the spec'}: {shown(value)} is not a mapping; give the keys {keys}"
    if isinstance(value, dict | BaseModel) and not message.startswith("is "):
        # A message that begins with a key of its own continues this key's path.
        joint = "." if message.split(" ")[0].endswith(":") else ": "
        return f"{key}{joint}{message}" if key else message
    if kind == "string_type" and not isinstance(value, list | None):
        message = "is not a string; put it in quotes"
    return f"{key}: {shown(value)} {_lowered(message)}"


def shown(value: object) -> str:
    """Quote a value in an error, but describe a very long number by its number of digits."""
    if isinstance(value, int) and abs(value) >= _TOO_LONG:
        return f"a number of {math.floor(math.log10(abs(value))) + 1} digits"
    try:
        return repr(value)
    except ValueError:  # it holds such a number, longer than Python writes
        return "what holds a number of thousands of digits"


def _meant(given: str, names: Iterable[str]) -> str:
    """Return the text between an unknown name and the known ones."""
    near = difflib.get_close_matches(given.lower(), names, 1, _ALIKE)
    return f", did you mean {near[0]}?" if near else ";"


def _lowered(message: str) -> str:
    return message if message.startswith("is ") else f"is not allowed: {message}"


def _keys(location: tuple[Any, ...]) -> list[str]:
    """Return the spec's own keys in the location that pydantic gives an error.

    A union's tag is not a key, and an error of a key itself belongs to the mapping.
    """
    own = location[:-2] if location[-1:] == ("[key]",) else location
    return [str(part) for part in own if part not in TAGS]


def _allowed(location: tuple[Any, ...], whole: type[BaseModel], content: Any) -> list[str]:
    """Return the keys of the model at `location` of a spec's content."""
    model: Any = whole
    for part in location:
        if part in TAGS:
            model = TAGS[part]
            continue
        annotation = model.model_fields[part].annotation
        options = [annotation, *getattr(annotation, "__args__", ())]
        options += [getattr(option, "__origin__", None) for option in options]  # of Annotated
        model = next(
            (o for o in options if isinstance(o, type) and issubclass(o, BaseModel)), model
        )
        if model is MechanismSpec:
            model = block_of(content[part]["kind"])
    return list(model.model_fields)
