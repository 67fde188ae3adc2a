"""The findings of an evaluation, as rules read them, and its report's first three numbers.

The numbers are what attackers find, the promise, and the use.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from quietcorpus.evaluation.measures import MEASURES
from quietcorpus.evaluation.verdict import Figure, of_everything, rank

from ..card.weakness import Weakness


@dataclass(frozen=True)
class Findings:
    """The inputs of the rules, all taken from the report.

    Attributes:
        kind: the kind of release.
        mechanism: the mechanism's block, as the card has it.
        figures: those of the report.
        weaknesses: those of the guarantee.
        failed: the names of audits that failed.
        untold: the names of audits that could not have failed.
        audited: whether there were audits.
        id_column: the input's column of ids that is released; None if ids are fresh.
        alone: by kept column that is not the ids: the share of released rows that have a value of
            it which no other row has.
        reconstructed: whether the release was made of another one's noisy bins.
        of_documents: whether the release has a row for each document, which attacks need.
        whole: whether every document of the corpus was evaluated.
        calm: whether no rule has spoken that asks for more noise.
    """

    kind: str
    mechanism: Mapping[str, Any]
    figures: Sequence[Figure]
    weaknesses: Sequence[Weakness] = ()
    failed: Sequence[str] = ()
    untold: Sequence[str] = ()
    audited: bool = False
    id_column: str | None = None
    alone: Mapping[str, float] = field(default_factory=dict)
    reconstructed: bool = False
    of_documents: bool = True
    whole: bool = False
    calm: bool = True

    def figure(self, measure: str, subject: str = "release") -> Figure | None:
        """Return the first figure of a measure of the release's own setting, or None."""
        return next(iter(self._own(measure, subject)), None)

    def mean(self, measure: str, subject: str = "release") -> float | None:
        """Return the mean of that figure, or None."""
        found = self.figure(measure, subject)
        return None if found is None else float(found["mean"])

    @property
    def useful(self) -> bool:
        """Return whether anything was measured that the release is good for."""
        return any(
            one["subject"] == "release"
            and not one["setting"]
            and MEASURES[one["measure"]].part == "utility"
            for one in self.figures
        )

    def strongest(self, measure: str) -> Figure | None:
        """Return the way of an attack that finds most, or None if it was not compared with noise.

        A way that finds more than in noise comes before all others.
        """
        compared = [one for one in self._own(measure, "release") if one["against_noise"]]
        return max(compared, key=rank, default=None)

    def above_noise(self, measure: str) -> float | None:
        """Return what an attack finds that finds more than in noise; None for any other."""
        found = self.strongest(measure)
        if found is None or found["against_noise"] != "above":
            return None
        return float(found["first"]["value"])

    def noise(self, measure: str) -> float:
        """Return what an attack finds in noise alone; zero if that was not measured."""
        own = self._own(measure, "noise")
        return max((float(one["first"]["value"]) for one in own), default=0.0)

    def harm(self, measure: str) -> float:
        """Return the value of an attack from which on it is harm."""
        return _HARM.get(measure, self.noise(measure) + NAMED)  # by chance, some authors are right

    def harmful(self, measure: str) -> float | None:
        """Return what an attack finds that finds more than in noise and does harm, or None."""
        value = self.above_noise(measure)
        return None if value is None or value < self.harm(measure) else value

    def _own(self, measure: str, subject: str) -> list[Figure]:
        return [
            one
            for one in self.figures
            if (one["measure"], one["subject"]) == (measure, subject)
            and not one["setting"]
            and of_everything(one)
        ]


COUNT = 3
TRACED, FOUND, AUC, NAMED = 0.10, 0.50, 0.60, 0.10


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
MEMBERS = {
    "membership": "documents a model had learnt from",
    "user-membership": "users took part",
    "vote-membership": "documents or users voted",
    "count-membership": "documents are in the histogram",
}
"""The attacks whose number is an AUC; whom they tell apart from others."""
_AREAS = dict.fromkeys(MEMBERS, AUC)
_HARM = {"linkage": TRACED, "facts": TRACED, "inversion-bayes": FOUND, **_AREAS}


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
    ("overview-sizes", "is what the sizes of groups are wrong by", ()),
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
    return pairs(first["value"]) if measure in MEMBERS else of_tried(first["value"], first["tried"])


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
