"""The check that the noise which a card tells of costs no more than the card says."""

from __future__ import annotations

import importlib.util
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from importlib.metadata import version
from itertools import islice

from quietcorpus.transforms.errors import InputError

from ..environment.version import same_code
from ..schema.users import MOST_GROUPS
from .model import Card
from .parameters import DocumentParameters, UserParameters

_MORE = "{uri}: budget: the noise that the card tells costs more than it says"
_NEVER = 800
"""Geometric noise beyond `_NEVER` scales has a chance below 10^-347; likewise Gaussian."""
Course = tuple[str, Fraction, Fraction, int]
"""A group's name, and its units' sampling rate, noise multiplier and number of steps."""


def is_accountable() -> bool:
    """Return whether the accountant is installed; without it, no Gaussian noise is compared."""
    return importlib.util.find_spec("dp_accounting") is not None


ACCOUNTANTS = ("dp-accounting", "python-flint")
"""The packages that compute what Gaussian noise costs."""


def is_solved_alike(card: Card) -> bool:
    """Return whether this code solved a card's noise, with an accountant of the same versions."""
    if not is_accountable() or same_code(card.code_sha256) is None:
        return False
    used = re.split("[,;] ", str(getattr(card.mechanism, "software", "")))
    return all(f"{name} {version(name)}" in used for name in ACCOUNTANTS)


def check_cost(
    uri: str, stage: DocumentParameters | UserParameters, courses: Iterable[Course]
) -> None:
    """Check with the accountant what the courses of all groups cost.

    Units that have no groups form one, of any name. Raises InputError for a card that says less,
    that has other groups, or none, and for numbers that cannot be. `courses` may raise ValueError,
    TypeError and ArithmeticError for those, as it is read from the card.
    """
    if not is_accountable():
        return
    from quietcorpus.mechanisms.accounting.privacy_loss import epsilon_of

    delta = Fraction(stage.delta_exact)
    groups = stage.groups if isinstance(stage, UserParameters) else []
    stated = {group.name: group.epsilon_exact for group in groups}
    try:
        listed = list(islice(courses, MOST_GROUPS + 1))
        # An epsilon takes a tenth of a second: none is computed for names that cannot be right.
        if len(listed) > MOST_GROUPS or (stated and stated.keys() != {name for name, *_ in listed}):
            raise ValueError
        found = {name: epsilon_of(rate, noise, steps, delta) for name, rate, noise, steps in listed}
        agree = all(
            found[name] <= Fraction(stated.get(name, stage.epsilon_exact)) for name in found
        )
    except (KeyError, TypeError, ValueError, ArithmeticError):
        found, agree = {}, False
    if not found or not agree:
        raise InputError(_MORE.format(uri=uri))


def check_rate(
    uri: str, stage: DocumentParameters | UserParameters, spent: Iterable[tuple[str, Fraction]]
) -> None:
    """Check what geometric noise costs the units of each group, by exact arithmetic, delta zero.

    Arguments, and what is raised, are those of `check_cost`; `spent` has each group's epsilon.
    """
    groups = stage.groups if isinstance(stage, UserParameters) else []
    try:
        stated = {group.name: Fraction(group.epsilon_exact) for group in groups}
        found = dict(spent)
        agree = not Fraction(stage.delta_exact) and all(
            0 <= own <= stated.get(name, Fraction(stage.epsilon_exact))
            for name, own in found.items()
        )
    except (TypeError, ValueError, ArithmeticError):
        found, agree = {}, False
    if not found or not agree or (stated and stated.keys() != found.keys()):
        raise InputError(_MORE.format(uri=uri))


def courses_of_norms(noise_multiplier: str, norms: Mapping[str, int]) -> Iterator[Course]:
    """Yield the courses of groups whose users are clipped to these norms in one noisy sum."""
    # The module imports optional packages.
    from quietcorpus.mechanisms.users.clipped_sum import STEPS

    for name, norm in norms.items():
        yield name, Fraction(1), Fraction(noise_multiplier) * STEPS / max(norm, 1), int(norm > 0)


def within(rate: Fraction | float) -> float:
    """Return what geometric noise of a rate never passes."""
    return _NEVER / float(rate)


def within_deviations(deviation: Fraction | float) -> float:
    """Return what Gaussian noise of a standard deviation never passes."""
    return math.sqrt(2 * _NEVER) * float(deviation)
