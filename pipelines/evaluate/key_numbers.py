"""The three numbers that a report opens with: what attackers find, the promise, and the use."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from quietcorpus.evaluation.verdict import Figure

from .findings import Findings

COUNT = 3
_AREAS = frozenset({"vote-membership", "user-membership", "count-membership", "membership"})
ATTACKS = {
    "linkage": "rows are linked to their documents by an attacker who has the original texts",
    "facts": "rows are found by an attacker who knows 1 to 5 sentences or rare words of a document",
    "inversion-bayes": "words are recovered by an attacker who knows the mechanism",
    "vote-membership": "pairs of one who voted and one who did not are told apart by an attacker",
    "count-membership": "pairs of a document in the histogram and another are told apart",
    "user-membership": "pairs of a user who took part and one who did not are told apart",
    "membership": "pairs of a document that a model had learnt from and another are told apart",
    "authorship": "documents have their author named by an attacker who knows others of theirs",
}
"""The attacks that have a number, the most harmful first; what the number is."""


class KeyNumber(NamedTuple):
    """A number: its value, what it is (text that goes on from the value), and its comparison."""

    value: str
    what: str
    beside: str


_RIGHT = "documents get the right label from a classifier that learnt from the release"
_LEARNT = (
    ("original", "learnt from the original"),
    ("floor", "by always guessing the most frequent label"),
)
_USES: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = (
    ("words-accuracy", _RIGHT, _LEARNT),
    ("accuracy", _RIGHT, _LEARNT),
    ("histogram-error", "is what the counts are wrong by", ()),
    ("map-list", "is how far nearest words agree with the original's",
     (("original", "between two trainings on the original"),)),
    ("similarity", "is how alike texts and their releases are (cosine of mean vectors)",
     (("noise", "to texts of shuffled words"),)),
    ("topic-jaccard", "is how far words of topics are found again (Jaccard)",
     (("ceiling", "from the original itself"),)),
)  # fmt: skip
"""The measures of use that have a number, the plainest first: what it is, and what beside it."""
_UNUSED = KeyNumber("Not measured", "is what the release is good for", "labels would show it")


def key_numbers(found: Findings, promise: tuple[str, str]) -> list[KeyNumber]:
    """Return three numbers: the two worst attacks (or one and what is promised), and the use.

    `promise` is that of `odds.in_short`.
    """
    risks = [*_attacks(found), KeyNumber(*promise, "as promised against every attacker")]
    return [*risks[: COUNT - 1], next(_uses(found), _UNUSED)]


def of_tried(share: float, tried: int) -> str:
    """Write a share as a number of those tried, rounded up."""
    return f"{math.ceil(share * tried - 1e-6):,} of {tried:,}"


def pairs(area: float) -> str:
    """Write an AUC as a number of pairs that an attacker distinguishes, rounded up."""
    return f"{math.ceil(100 * area - 1e-9)} of 100"


def attacked(measure: str, figure: Figure) -> str:
    """Say in a clause what an attack finds."""
    return f"{_written(measure, figure)} {ATTACKS[measure]}"


def _written(measure: str, figure: Figure) -> str:
    first = figure["first"]
    return pairs(first["value"]) if measure in _AREAS else of_tried(first["value"], first["tried"])


def _attacks(found: Findings) -> Iterator[KeyNumber]:
    """Yield attacks that find more than in noise, then others; the most harmful first."""
    figures = [(name, one) for name in ATTACKS if (one := found.strongest(name)) is not None]
    for name, one in sorted(figures, key=lambda pair: pair[1]["against_noise"] != "above"):
        first = one["first"]
        shown = [f"{found.noise(name) * 100:.1f} by chance"]
        if first["low"] is not None:
            ends = f"{first['low'] * 100:.1f} to {first['high'] * 100:.1f}"
            shown.append(f"{ends} with 95\N{NO-BREAK SPACE}% confidence")
        if one["draws"] > 1:
            shown.append(f"{one['mean'] * 100:.1f} on average over {one['draws']} draws like it")
        yield KeyNumber(_written(name, one), ATTACKS[name], f"of 100: {'; '.join(shown)}")


def _uses(found: Findings) -> Iterator[KeyNumber]:
    for name, what, references in _USES:
        own = found.figure(name)
        if own is None:
            continue
        others = ((found.mean(name, subject), beside) for subject, beside in references)
        shown = [f"{100 * other:.1f} {beside}" for other, beside in others if other is not None]
        if own["draws"] > 1:
            shown.append(f"{100 * own['mean']:.1f} on average over {own['draws']} draws like it")
        value = f"{100 * own['first']['value']:.0f} of 100"
        yield KeyNumber(value, what, "; ".join(shown))
