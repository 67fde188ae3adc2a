"""The transforms of `quietcorpus.beam` for Beam YAML, which finds them by deploy/beam-yaml.

Every function returns a transform whose outputs are `output` (the released rows), `card` (one row,
whose field `card` is the card in JSON) and, with `error_handling`, the rows that cannot be read.
Its signature and docstring, which Beam YAML shows, are those of the transform.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from os import PathLike
from types import NoneType
from typing import Any, Literal, Optional, get_origin, get_type_hints

import apache_beam as beam
from apache_beam.yaml.yaml_errors import ErrorHandlingConfig
from apache_beam.yaml.yaml_utils import SafeLineLoader

from quietcorpus.transforms.errors import InputError, shown

from . import beam as transforms
from .arguments import kinds_of

__all__ = [
    "draw_candidates",
    "learn_embeddings",
    "privatize_bags",
    "privatize_words",
    "release_histogram",
    "release_user_histogram",
    "select_vocabulary",
]

_OUTPUTS = ("output", "card", "vocabulary", "compression")
_Errors = Optional[ErrorHandlingConfig]
_ERROR_HANDLING = (
    "error_handling: where to send rows that cannot be read, which otherwise fail the job."
)


class _Named(beam.PTransform):
    """A transform whose outputs have the names that Beam YAML gives them."""

    def __init__(self, make: Callable[..., beam.PTransform], errors: Any, **given: Any) -> None:
        super().__init__(make.__name__)
        handling = _plain(errors)
        if not isinstance(handling, dict | None):
            raise InputError(f"error_handling: expected a mapping, got {shown(handling)}")
        if handling is not None and (set(handling) != {"output"} or not handling["output"]):
            raise InputError("error_handling: give only `output`, the name for the errors")
        self._errors = handling["output"] if handling else None
        if self._errors is not None and self._errors in _OUTPUTS:
            raise InputError(f"error_handling: {self._errors} names another output; choose another")
        # The transform has a default for each option that is left out.
        said = {name: value for name, value in given.items() if value is not None}
        plain = {name: _plain(value) for name, value in said.items()}
        self._transform = make(**plain, errors="collect" if self._errors else "raise")

    def expand(self, rows: beam.PCollection) -> dict[str, beam.PCollection]:
        found = (rows | self._transform)._asdict()
        card = found.pop("card") | "card row" >> beam.Map(lambda text: beam.Row(card=str(text)))
        errors = found.pop("errors")
        outputs = {"output": found.pop("rows"), "card": card, **found}
        return outputs | ({self._errors: errors} if self._errors else {})


def _plain(value: Any) -> Any:
    """Return a value without what Beam YAML's loader adds to it, such as line numbers."""
    of_yaml = isinstance(value, dict | list | tuple | str)
    return SafeLineLoader.strip_metadata(value) if of_yaml else value


def _function(made: type[beam.PTransform]) -> Callable[..., beam.PTransform]:
    """Return the function of a transform: arguments as the transform has them, but for `errors`."""
    hints = get_type_hints(made.__init__)
    parameters = []
    for name, own in inspect.signature(made).parameters.items():
        one = own.replace(annotation=_simple(hints[name]), kind=own.POSITIONAL_OR_KEYWORD)
        if name == "errors":
            one = one.replace(name="error_handling", annotation=_Errors, default=None)
        parameters.append(one)
    signature = inspect.Signature(parameters)

    def function(*args: Any, **given: Any) -> beam.PTransform:
        found = signature.bind(*args, **given).arguments
        return _Named(made, found.pop("error_handling", None), **found)

    arguments = str(inspect.getdoc(made.__init__)).partition("Args:")[2].partition("Raises:")[0]
    described = re.sub(r"\berrors: .*(\n {8}.*)*", _ERROR_HANDLING, arguments)
    function.__doc__ = f"{inspect.getdoc(made)}\n\nArgs:{described}"
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def _simple(hint: Any) -> Any:
    """Return the one type by which Beam YAML describes an argument; it checks no value by that."""
    kinds = kinds_of(hint)
    other = next((one for one in kinds if one is not NoneType and _is_more_than_text(one)), str)
    return Optional[other] if NoneType in kinds else other


def _is_more_than_text(hint: Any) -> bool:
    return hint is not str and get_origin(hint) not in (Literal, PathLike)


draw_candidates = _function(transforms.DrawCandidates)
learn_embeddings = _function(transforms.LearnEmbeddings)
privatize_bags = _function(transforms.PrivatizeBags)
privatize_words = _function(transforms.PrivatizeWords)
release_histogram = _function(transforms.ReleaseHistogram)
release_user_histogram = _function(transforms.ReleaseUserHistogram)
select_vocabulary = _function(transforms.SelectVocabulary)
