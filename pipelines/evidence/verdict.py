"""What is read first: which attacks find more in the release than in noise, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.evidence.measures import MEASURES

Figure = Mapping[str, Any]


def verdict(figures: Iterable[Figure]) -> dict[str, list[str]]:
    """A sentence for each attack on the release as it is, by what comes of it.

    An attack of several ways is told by the one that finds most, as an attacker would.

    Returns:
        `above`: attacks that find more than in noise alone; `rest`: those of which so many
        documents do not show it.
    """
    whole = [one for one in figures if not one["setting"] and of_everything(one)]
    noise = {(one["measure"], one["group"]): one for one in whole if one["subject"] == "noise"}
    told: dict[str, list[str]] = {"above": [], "rest": []}
    for name, measure in MEASURES.items():
        compared = [one for one in whole if one["measure"] == name and one["against_noise"]]
        if compared:
            strongest = max(compared, key=lambda one: (_rank(one), _value(one)))
            chance = _value(noise[name, strongest["group"]])
            sentence = measure.says.format(release=_value(strongest), noise=chance)
            told["above" if strongest["against_noise"] == "above" else "rest"].append(sentence)
    return told


def of_everything(figure: Figure) -> bool:
    """Whether a figure is about all documents or words, be it by one of several ways."""
    return not figure["group"] or figure["group"].startswith("by ")


def _rank(figure: Figure) -> bool:
    return bool(figure["against_noise"] == "above")


def _value(figure: Figure) -> float:
    return float(figure["first"]["value"])
