"""The figures of an evaluation by measure, and the report's wording of numbers and names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quietcorpus.mechanisms.accounting.guarantees import shown_up

from ..results import POINT
from ..verdict import Figure, of_everything

if TYPE_CHECKING:
    from markupsafe import Markup


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


# The names of subjects. A subject that is not listed keeps its own name.
_SUBJECTS = {
    "release": "this release",
    "original": "original text",
    "reference": "text of another tool",
    "noise": "noise alone",
    "laplace": "Laplace noise",
    "geometric": "geometric noise",
    "exact": "votes without noise",
    "pool": "the pool as it is",
    "guarantee": "what the guarantee allows",
    "public": "public vectors",
    "public-release": "public and released vectors",
    "public-original": "public and original vectors",
}
_BETTER = {
    ("utility", "higher"): "Higher is better.",
    ("utility", "lower"): "Lower is better.",
    ("utility", "one"): "Best at one.",
}
_MINUS = "\N{MINUS SIGN}"
_VARIANT = "compare"  # whose values are names, which need no key
_SYMBOLS = {"epsilon": "ε", "delta": "δ"}


def number(value: float | None) -> str:
    """Format a number, or a dash and the reason why there is none."""
    if value is None:
        return "— (not measured)"
    if math.isnan(value):
        return "— (not a number)"
    if math.isinf(value):
        return "— (infinite)"
    size = abs(value)
    if size >= 1000:
        text = f"{value:,.0f}"
    elif size >= 10:
        text = f"{value:.1f}"
    elif size >= 0.001 or value == 0:
        text = f"{value:.3f}"
    else:
        text = f"{value:.2g}"
    return text.replace("-", _MINUS)


def first(figure: Mapping[str, Any]) -> tuple[str, str]:
    """Format a figure's first draw, and its interval over documents if it has one."""
    one = figure["first"]
    known = plotted(one["low"]) and plotted(one["high"])
    return number(one["value"]), f"{number(one['low'])} to {number(one['high'])}" if known else ""


def first_or_fresh(figure: Mapping[str, Any]) -> tuple[str, str]:
    """Format a figure's first draw and interval, and say whether the draw is the release itself."""
    value, ends = first(figure)
    said = "a draw like it" if figure["first"]["fresh"] else "this release"
    return value, "; ".join(filter(None, (ends, said)))


def mean(figure: Mapping[str, Any]) -> tuple[str, str]:
    """Format a figure's mean over draws, and its interval."""
    return number(figure["mean"]), interval(figure)


def mean_or_first(figure: Mapping[str, Any]) -> tuple[str, str]:
    """Format a figure's mean and interval over draws; of one draw, its interval over documents."""
    return first(figure) if figure["draws"] == 1 else mean(figure)


def interval(figure: Mapping[str, Any]) -> str:
    """Format a figure's interval, or the reason why it has none."""
    low, high = figure["low"], figure["high"]
    if low is None or high is None:
        return "one draw" if figure["draws"] == 1 else "— (draws equal)"
    if not (math.isfinite(low) and math.isfinite(high)):
        return "— (unbounded)"
    return f"{number(low)} to {number(high)}"


def plotted(value: float | None) -> bool:
    """Return whether a value can be drawn."""
    return value is not None and math.isfinite(value)


def bounded(figure: Mapping[str, Any]) -> bool:
    """Return whether a figure has an interval with two finite ends."""
    return plotted(figure["low"]) and plotted(figure["high"])


def subject(name: str) -> str:
    """Return the name of a figure's subject."""
    return _SUBJECTS.get(name, name)


def symbol(key: str) -> str:
    """Return a parameter's customary symbol, or its name if it has none."""
    return _SYMBOLS.get(key, key)


def setting(parameters: Mapping[str, str], leave_out: str | None = None) -> str:
    """Format the parameters that a sweep set, such as `ε = 5, size = 100`."""
    pairs = ((key, value) for key, value in parameters.items() if key != leave_out)
    return ", ".join(
        value if key == _VARIANT else f"at {value}" if key == POINT else f"{symbol(key)} = {value}"
        for key, value in pairs
    )


def direction(measure: Mapping[str, Any]) -> str:
    """Say in a sentence which direction of a measure is better; empty if neither is."""
    part = measure["part"]
    if part == "attack":
        return "Lower is more private."
    return _BETTER.get((part, measure["better"]), "")


def caution(measured: MeasureFigures) -> str:
    """Return a warning if a measure scores the floor better than the original; empty otherwise."""
    if not measured.blind:
        return ""
    means = {"higher": "A higher value counts as better", "lower": "A lower value counts as better"}
    return (
        f"{means[measured.measure['better']]}. But on this corpus the floor, which has no "
        "structure, scores better than the original text: here the measure does not tell "
        "structure, and a better value does not make a better release."
    )


def code(text: str) -> Markup:
    """Return a text as HTML, with what stands between backquotes as code."""
    from markupsafe import Markup, escape

    parts = (escape(part) for part in text.split("`"))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else part
        for number, part in enumerate(parts)
    )


def listed(items: Iterable[str]) -> str:
    """Join names by commas, each once."""
    return ", ".join(dict.fromkeys(items))


def stated(value: Any) -> str:
    """Format a number of a guarantee as `cell` does, but rounded up."""
    return shown_up(value) if isinstance(value, float) else cell(value)


def cell(value: Any) -> str:
    """Format a value of an audit: text as it is, a float in six digits, a dash for None."""
    if value is None:
        return "—"
    if isinstance(value, float):
        return f"{value:.6g}".replace("-", _MINUS) if math.isfinite(value) else number(value)
    return f"{value:,}" if isinstance(value, int) else str(value)
