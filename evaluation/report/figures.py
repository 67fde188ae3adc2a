"""The figures of an evaluation, by measure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..verdict import Figure, of_everything


@dataclass(frozen=True)
class MeasureFigures:
    """A measure and its figures: of the release as it is, and of a sweep's settings."""

    measure: Mapping[str, Any]
    own: list[Figure]
    swept: list[Figure]

    @property
    def in_short(self) -> dict[str, dict[str, Figure]]:
        """Return the release's own figures by group and subject: the overall ones, or else all."""
        shown = [figure for figure in self.own if of_everything(figure)] or self.own
        groups: dict[str, dict[str, Figure]] = {}
        for figure in shown:
            groups.setdefault(figure["group"], {})[figure["subject"]] = figure
        return groups

    @property
    def own_release(self) -> list[Figure]:
        """Return the figures of the release as it is, of all documents or words."""
        return [one for one in self.own if one["subject"] == "release" and of_everything(one)]

    @property
    def blind(self) -> bool:
        """Return whether the floor, which has no structure, scores better than the original."""
        means = {one["subject"]: one["mean"] for one in self.own if not one["group"]}
        floor, original = means.get("floor"), means.get("original")
        if floor is None or original is None:
            return False
        better = {"higher": floor > original, "lower": floor < original}
        return bool(better.get(self.measure["better"]))


def by_measure(content: Mapping[str, Any]) -> list[MeasureFigures]:
    """Return every measure, in the order of `measures`, then those that only figures name."""
    measures = dict(content["measures"])
    for figure in content["figures"]:
        measures.setdefault(figure["measure"], _unknown(figure["measure"]))
    return [
        MeasureFigures(measure, _of(content, key, _is_own), _of(content, key, _is_swept))
        for key, measure in measures.items()
    ]


def values(figures: list[Figure], field: str) -> list[str]:
    """Return the distinct values of a field, in order of appearance."""
    return list(dict.fromkeys(figure[field] for figure in figures))


def _unknown(key: str) -> dict[str, str]:
    return {"part": "other", "title": key, "meaning": "", "better": "none"}


def _of(content: Mapping[str, Any], key: str, kept: Callable[[Figure], bool]) -> list[Figure]:
    return [figure for figure in content["figures"] if figure["measure"] == key and kept(figure)]


def _is_own(figure: Figure) -> bool:
    return not figure["setting"]


def _is_swept(figure: Figure) -> bool:
    return bool(figure["setting"])
