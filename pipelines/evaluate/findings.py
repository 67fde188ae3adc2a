"""The findings of an evaluation, as recommendations read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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

    def _own(self, measure: str, subject: str) -> list[Figure]:
        return [
            one
            for one in self.figures
            if (one["measure"], one["subject"]) == (measure, subject)
            and not one["setting"]
            and of_everything(one)
        ]
