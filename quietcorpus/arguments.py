"""Checks of the API's arguments; their ranges are those of the command line."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import inf
from operator import index as whole_of
from typing import TYPE_CHECKING, SupportsIndex, TypeAlias

from quietcorpus.transforms.errors import InputError

if TYPE_CHECKING:
    from quietcorpus.indexes.tokenizers import Tokenizer

Number: TypeAlias = str | int | float | Decimal | Fraction
"""A number, taken as it is written: 0.1 is exactly one tenth."""


def exact(number: Number) -> Fraction:
    """Return the number as it is written; raise InputError if it is no number above zero."""
    try:
        exact = Fraction(repr(number) if isinstance(number, float) else number)
    except (ValueError, OverflowError):
        raise InputError(f"{number!r} is not a number") from None
    if exact <= 0:
        raise InputError(f"{number!r} is not above zero")
    return exact


def exact_numbers(numbers: Sequence[Number]) -> tuple[Fraction, ...]:
    """Return numbers as `exact` does, ascending, each once."""
    return tuple(sorted({exact(number) for number in numbers}))


def one_of(name: str, value: object, allowed: Sequence[str]) -> None:
    """Raise InputError for an argument that is none of these."""
    if value not in allowed:
        raise InputError(f"{name}: {value!r} is not known; give one of {', '.join(allowed)}")


def flags(**given: object) -> None:
    """Raise InputError for an argument that is neither True nor False."""
    for name, value in given.items():
        if not isinstance(value, bool):
            raise InputError(f"{name}: {value!r} is neither True nor False")


def whole(least: int = 1, most: int | None = None, /, **given: object) -> None:
    """Raise InputError for an argument that is no whole number in a range; None is left alone."""
    for name, value in given.items():
        if value is None:
            continue
        if not isinstance(value, SupportsIndex) or isinstance(value, bool):
            raise InputError(f"{name}: {value!r} is not a whole number")
        number = whole_of(value)
        if number < least:
            said = "not above zero" if least == 1 else f"below {least}"
            raise InputError(f"{name}: {number} is {said}")
        if most is not None and number > most:
            raise InputError(f"{name}: {number} is above {most}")


def above_zero(**given: float | None) -> None:
    """Raise InputError for an argument that is no number above zero; None is left alone."""
    for name, value in given.items():
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < inf:
            raise InputError(f"{name}: {value!r} is not a number above zero")


def between_0_and_1(**given: float) -> None:
    """Raise InputError for an argument that is not between 0 and 1."""
    for name, value in given.items():
        if not 0 < value < 1:
            raise InputError(f"{name}: {value!r} is not between 0 and 1")


def tokenizer_and_language(tokenizer: str, language: str | None) -> tuple[Tokenizer, str | None]:
    """Return an artefact's tokeniser, and its language where that is no part of the rule."""
    from quietcorpus.indexes.languages import LANGUAGES
    from quietcorpus.indexes.tokenizer import NAME

    if tokenizer != NAME or language is None:
        return named_tokenizer(tokenizer, language), None
    if language not in LANGUAGES:
        raise InputError(f"language: {language!r} is not known; give one of {', '.join(LANGUAGES)}")
    return named_tokenizer(tokenizer, None), language


def named_tokenizer(tokenizer: str, language: str | None) -> Tokenizer:
    """Return the tokeniser of a name and a language; raise InputError if it is not to be had."""
    from quietcorpus.indexes.languages import LANGUAGES
    from quietcorpus.indexes.tokenizers import Tokenizer, TokenizerError

    try:
        return Tokenizer.here(tokenizer, language)
    except TokenizerError as error:
        key = "tokenizer" if language in (None, *LANGUAGES) else "language"
        raise InputError(f"{key}: {error}") from None
