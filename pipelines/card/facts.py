"""The facts on a card that follow from no number: times, software, places, columns, the ledger.

Whether they are true cannot be seen, but each has a form, and none has room for another text.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from quietcorpus.indexes.tokens.languages import LANGUAGES
from quietcorpus.indexes.tokens.segmentation import NAME as SPLITTER
from quietcorpus.indexes.tokens.tokenizers import Tokenizer, TokenizerError
from quietcorpus.transforms.errors import InputError, is_plain, key_shown

from ..environment.version import same_code, software
from ..schema.mechanism import MechanismSpec
from ..schema.spec import check_kept
from ..schema.values import LARGEST_COUNT, NAME, Column
from ..storage.places import without_folders
from .costs import MADE_BY, NOISE, is_accountable, is_accounted
from .model import Card
from .parameters import (
    MetricParameters,
    NoiseEntry,
    UserParameters,
    disagree,
    stated_guarantee,
)
from .statements import from_numbers, statement

_DIGEST = re.compile(r"[0-9a-f]{64}")
# As PEP 440 has it; no part begins as the one before it may go on.
_VERSION = (
    r"[0-9]{1,8}(?:\.[0-9]{1,8}){0,5}(?:(?:a|b|rc)[0-9]{1,8})?(?:\.post[0-9]{1,8})?"
    r"(?:\.dev[0-9]{1,8})?(?:\+[0-9a-z.]{0,32})?"
)
_INSTALLED = re.compile(rf"unknown|{_VERSION}")
_LIBRARY = (
    rf"(?:onnxruntime|sentencex|sentence-transformers|tokenizers|torch|transformers|graph"
    rf"|dp-accounting|python-flint) {_VERSION}"
)
_LIBRARIES = rf"{_LIBRARY}(?:, {_LIBRARY}){{0,7}}"
_ICU = r"(?:; ICU [0-9.]{1,16})?"
_COMPUTED = re.compile(_LIBRARIES + _ICU)
# Cards of earlier versions named the device and the processor of a training as well.
_EARLIER = re.compile(
    rf"{_LIBRARIES}(?:; (?:cpu|cuda {_VERSION} on [ -:<-~]{{1,64}})(?:; [ -:<-~]{{1,128}})?)?{_ICU}"
)
_ARITHMETIC = re.compile(r"float32|whole numbers|bfloat16 on processors, float32 on GPUs")
_COLUMN: TypeAdapter[str] = TypeAdapter(Column)
_STATED = ("definition", "unit", "statement")
_MOST = {
    "budget.stages": 4,
    "budget.inherited": 4,
    "artefacts": 4,
    "meaning.typical": 8,
    "meaning.loss_of_documents": 8,
    "meaning.document_losses.documents": 8,
    "guarantee.not_protected": 64,
}
"""The most items that a release states there."""
_LONGEST = 100_000
"""In characters, of a text: what many private artefacts may state together."""


def check_facts(uri: str, card: Card, block: MechanismSpec) -> None:
    """Check the facts of a card whose mechanism states a spec's block; raises InputError.

    What another version of the code may have written otherwise is compared for this one's cards.
    """
    own = same_code(card.code_sha256) is not None
    for key, is_right in _RULES.items():
        if (own or key not in _OF_THIS_CODE) and not is_right(card):
            raise InputError(f"{uri}: {key}: not what a release of this kind states there")
    _check_artefacts(uri, card)
    _check_columns(uri, card, block)


def check_texts(uri: str, content: Any) -> None:
    """Check that all texts and keys of a card can be shown in a line; raises InputError.

    Zero has one sign alone, and no whole number or list is longer than a release has them.
    """
    for place, text in _texts(content, ""):
        if text is None:
            raise InputError(f"{uri}: {place}: larger than any that a release has")
        if not is_plain(text) or len(text) > _LONGEST or text == "-0.0":
            raise InputError(f"{uri}: {place}: a text of several lines, or one that hides some")


def _texts(content: Any, place: str) -> Iterator[tuple[str, str | None]]:
    """Yield all texts, decimals and keys, each with the key that it stands at.

    None stands for a whole number that is too large, and for a list or a block that is too long.
    """
    match content:
        case int():
            if abs(content) > LARGEST_COUNT:
                yield place, None
        case str() | float():
            yield place, str(content)
        case dict():
            for key, value in content.items():
                at = f"{place}.{key_shown(key)}" if place else key_shown(key)
                yield at, key
                if isinstance(value, list | dict) and len(value) > _MOST.get(at, math.inf):
                    yield at, None
                else:
                    yield from _texts(value, at)
        case list():
            for value in content:
                yield from _texts(value, place)


def _is_a_time(card: Card) -> bool:
    try:
        at = datetime.datetime.fromisoformat(card.created)
    except ValueError:
        return False
    return (
        at.utcoffset() == datetime.timedelta()
        and not at.microsecond
        and at.isoformat() == card.created
    )


def _has_software(card: Card) -> bool:
    return card.software.keys() == software().keys() and all(
        map(_INSTALLED.fullmatch, card.software.values())
    )


def _ran_on(card: Card) -> bool:
    """Tell whether the software and the rules of a mechanism are written as a run writes them."""
    found, own = card.mechanism, same_code(card.code_sha256) is not None
    software_form = _COMPUTED if own or not hasattr(found, "training") else _EARLIER
    forms: dict[str, Callable[[str], object]] = {
        "software": software_form.fullmatch,
        "encoder_software": lambda text: _COMPUTED.fullmatch(text) or _is_rule(text),
        "encoder_precision": _ARITHMETIC.fullmatch,
        "splitter": SPLITTER.__eq__,
        "language": LANGUAGES.__contains__,
        "out_of_vocabulary": ("drop", "draw").__contains__,
    }
    values = ((getattr(found, name, None), fits) for name, fits in forms.items())
    numbers = (getattr(found, name, None) for name in _COUNTED)
    return all(value is None or fits(value) for value, fits in values) and all(
        number is None or 0 < number <= LARGEST_COUNT for number in numbers
    )


_COUNTED = ("words", "run_words", "dimensions", "candidates_most_sentences", "candidates_number")


def _is_rule(description: str) -> bool:
    try:
        Tokenizer.described(description)
    except TokenizerError:
        return False
    return True


def _is_in_the_ledger(card: Card) -> bool:
    entry = card.ledger
    if entry is None:
        return True
    same = same_code(card.code_sha256) is not None
    named = entry.partition is None or re.fullmatch(NAME, entry.partition) is not None
    # A corpus has one id column, by which its partitions are compared.
    compared = ("compared", card.id_column)
    by_ids = entry.disjoint is None or card.id_column is None
    return (
        named
        and (entry.partition is None or not isinstance(card.budget.total, UserParameters))
        and (by_ids or (entry.disjoint, entry.identifier) == compared)
        # Cards of earlier versions did not tell how documents were compared.
        and (
            (entry.partition is None) == (entry.disjoint is None)
            or (not same and not entry.disjoint)
        )
        and (entry.identifier is None) == (entry.disjoint != "compared")
        and (entry.noise is None or _is_charged(card, entry.noise, same=same))
    )


def _is_charged(card: Card, noise: NoiseEntry, *, same: bool) -> bool:
    """Return whether a filter may charge this; other code may have counted the noise otherwise."""
    if same and is_accountable():
        return noise == _noise(card)
    return (
        getattr(card.mechanism, "noise_multiplier", None) is not None
        and noise.cost.rho > 0
        and NoiseEntry.of(noise.cost) == noise
    )


def _noise(card: Card) -> NoiseEntry | None:
    """Return what a ledger's filter counts the noise as; None if it cannot count this one."""
    try:
        cost = card.mechanism.charged([stage.parameters for stage in card.budget.stages])
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None
    return None if cost is None else NoiseEntry.of(cost)


_RULES: Mapping[str, Callable[[Card], bool]] = {
    "created": _is_a_time,
    "software": _has_software,
    "mechanism": _ran_on,
    "counts": lambda card: (
        (card.counts is not None) == card.mechanism.counts_records
        and (card.counts is None or card.counts.documents > 0)
    ),
    "meaning": lambda card: (
        (card.meaning is not None) == isinstance(card.budget.total, MetricParameters)
    ),
    "papers_figure": lambda card: card.papers_figure is None or card.mechanism.has_papers_figure,
    "reconstruction": lambda card: card.reconstruction is None or card.mechanism.is_reconstructable,
    "accepted": lambda card: card.accepted != [] and _differ(card.accepted or []),
    "page_sha256": lambda card: card.page_sha256 is not None,
    "ledger": _is_in_the_ledger,
}
"""The rules of the keys besides those that all parts of `verify` compare."""


_OF_THIS_CODE = {"software", "page_sha256"}


def _differ(values: list[Any]) -> bool:
    return len(set(values)) == len(values)


def _check_artefacts(uri: str, card: Card) -> None:
    """Check that the artefacts are those that the mechanism names, and what they state."""
    used = [(name, without_folders(place)) for name, place in card.mechanism.used]
    if [(one.name, one.uri) for one in card.artefacts] != used:
        raise InputError(f"{uri}: artefacts: not those that the mechanism names")
    for artefact in card.artefacts:
        if not _DIGEST.fullmatch(artefact.digest):
            raise InputError(f"{uri}: artefacts: {artefact.name} has no digest")
        if artefact.provenance == "public" and artefact.guarantee is not None:
            raise InputError(f"{uri}: artefacts: {artefact.name} is public, and cost nothing")
        if artefact.provenance == "private" and artefact.name not in card.mechanism.private:
            raise InputError(f"{uri}: artefacts: {artefact.name} is private, and must be public")
        costs = artefact.provenance == "private" and artefact.name != "encoder"
        if costs and artefact.guarantee is None:
            raise InputError(f"{uri}: artefacts: {artefact.name} is private, at no stated cost")
        if artefact.guarantee is not None and (problem := problem_of(artefact.guarantee)):
            raise InputError(f"{uri}: artefacts: the guarantee of the {artefact.name} {problem}")
        if from_numbers(artefact.guarantee) != artefact.guarantee:
            raise InputError(
                f"{uri}: artefacts: the guarantee of the {artefact.name} has another statement "
                "than follows from its parameters"
            )


def problem_of(guarantee: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the stated guarantee of a private artefact; None if nothing is."""
    if guarantee.keys() - {MADE_BY, NOISE} != {*_STATED, "parameters"}:
        return "has other keys than definition, unit, parameters and statement"
    texts = [*(guarantee[key] for key in _STATED), guarantee.get(MADE_BY, "none")]
    if not all(isinstance(text, str) and text.strip() and is_plain(text) for text in texts):
        return "has no text of one line for definition, unit, statement or release"
    numbers = guarantee["parameters"]
    if not isinstance(numbers, dict) or not numbers or disagree(numbers):
        return "has no parameters, or decimals that do not match its rationals"
    return _problem_of_numbers(guarantee, numbers)


def _problem_of_numbers(guarantee: Mapping[str, Any], numbers: dict[str, Any]) -> str | None:
    """Return what in the parameters contradicts the rest; None if nothing does."""
    if len({key.casefold() for key in numbers}) < len(numbers):
        return "has two parameters whose names differ in case alone"
    own = stated_guarantee(numbers)
    if own is not None:
        if (guarantee["definition"], guarantee["unit"]) != (own.definition, own.unit):
            return "has the parameters of another definition, or another unit"
        if _factors(guarantee["statement"])[:1] not in ([], _factors(statement(own))[:1]):
            return "has a statement of other numbers than its parameters"
    if NOISE in guarantee and not is_accounted(guarantee):
        return "has noise that is not that of its parameters"
    return None


def _factors(statement: str) -> list[str]:
    return re.findall(r"exp\(([^) ]*)", statement)


def _check_columns(uri: str, card: Card, block: MechanismSpec) -> None:
    """Check that the copied columns are some that a spec of the kind may name."""
    if (card.columns or card.id_column is not None) and not block.copies_columns:
        raise InputError(f"{uri}: columns: this kind copies none")
    try:
        block.check_columns("", card.kept)
        check_kept("", card.id_column, card.kept)
        for name in (*card.kept, *card.columns):
            _COLUMN.validate_python(name)
    except (ValidationError, PydanticCustomError):
        raise InputError(f"{uri}: columns: not names of columns that a release may copy") from None
