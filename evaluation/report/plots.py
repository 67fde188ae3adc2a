"""The plots of the report: a measure of the release and of its references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..verdict import Figure, first_draw
from . import svg
from .figures import MeasureFigures, values
from .wording import bounded, number, plotted, subject

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

WIDTH = 3.9  # inches: narrow enough for text of nine points to be legible on a telephone
_LONGEST = 22
_LOOKS = {
    "release": (svg.BLUE, "o"),
    "original": (svg.GREEN, "s"),
    "noise": (svg.GREY, "X"),
    "ceiling": (svg.GREY, "^"),
    "floor": (svg.GREY, "v"),
    "laplace": (svg.VERMILION, "D"),
    "geometric": (svg.PURPLE, "P"),
}
_OTHERS = ((svg.ORANGE, "<"), (svg.VERMILION, ">"), (svg.PURPLE, "h"), (svg.GREEN, "*"))


def comparison(measured: MeasureFigures, name: str) -> str | None:
    """Draw a dot for each figure of the release as it is; None if fewer than two can be drawn."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as Drawing
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    attack = measured.measure["part"] == "attack"  # even its first draw has an interval
    drawn = [first_draw(figure) if attack else figure for figure in measured.own]
    figures = [figure for figure in drawn if plotted(figure["mean"])]
    if len(figures) < 2:
        return None
    grouped = len(values(figures, "group")) > 1
    with mpl.rc_context(svg.SETTINGS):
        height = _height(figures, grouped)
        drawing = Drawing(figsize=(WIDTH, height), layout=ConstrainedLayoutEngine(h_pad=0.08))
        axes = drawing.subplots()
        if grouped:
            _grouped(axes, figures)
            legend(drawing)
        else:
            _single(axes, figures)
        if measured.measure["better"] == "one":
            axes.axvline(1, color=svg.GREY, linestyle=":", linewidth=1, zorder=1)
        axes.invert_yaxis()
        axes.grid(axis="x")
        axes.locator_params(axis="x", nbins=6)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        title = f"{measured.measure['title']}: {len(figures)} figures"
        return svg.inline(drawing, name, title, told(figures))


def told(figures: Sequence[Figure]) -> str:
    """Describe a plot in words."""
    said = (
        f"{' '.join(filter(None, (subject(each['subject']), each['group'])))} "
        f"{number(each['mean'])}"
        for each in figures
    )
    return "; ".join(said) + ". The table holds the same figures."


def look(name: str, names: Sequence[str]) -> tuple[str, str]:
    """Return the colour and the marker of a subject, one of `names`."""
    if name in _LOOKS:
        return _LOOKS[name]
    others = [each for each in names if each not in _LOOKS]
    return _OTHERS[others.index(name) % len(_OTHERS)]


def short(text: str) -> str:
    """Shorten a label to leave room for the plot; the table has it whole."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def errors(figures: Sequence[Figure]) -> Any:
    """Return the reach of the intervals to both sides; zero where there is none."""
    reach = [
        (max(f["mean"] - f["low"], 0), max(f["high"] - f["mean"], 0)) if bounded(f) else (0, 0)
        for f in figures
    ]
    return [list(side) for side in zip(*reach, strict=True)]


def legend(drawing: Drawing) -> None:
    """Add the legend below the axes, where it hides nothing."""
    drawing.legend(
        loc="outside lower center", ncols=2, fontsize=8.5, columnspacing=1.2, handletextpad=0.5
    )


def _height(figures: Sequence[Figure], grouped: bool) -> float:
    """Return the height of a drawing in inches."""
    if not grouped:
        return 0.45 + 0.3 * len(figures)
    subjects, groups = len(values(list(figures), "subject")), len(values(list(figures), "group"))
    return 0.8 + groups * (0.14 + 0.13 * subjects) + 0.2 * ((subjects + 1) // 2)


def _single(axes: Axes, figures: list[Figure]) -> None:
    names = values(figures, "subject")
    for position, figure in enumerate(figures):
        _dots(axes, [figure], [position], look(figure["subject"], names))
    axes.set_yticks(range(len(figures)), [short(subject(f["subject"])) for f in figures])
    axes.set_ylim(-0.6, len(figures) - 0.4)


def _grouped(axes: Axes, figures: list[Figure]) -> None:
    groups, names = values(figures, "group"), values(figures, "subject")
    step = 0.7 / len(names)
    for position, name in enumerate(names):
        of_it = [figure for figure in figures if figure["subject"] == name]
        shift = (position - (len(names) - 1) / 2) * step
        at = [groups.index(figure["group"]) + shift for figure in of_it]
        _dots(axes, of_it, at, look(name, names), short(subject(name)))
    axes.set_yticks(range(len(groups)), [short(group) or "all" for group in groups])
    axes.set_ylim(-0.5, len(groups) - 0.5)


def _dots(
    axes: Axes,
    figures: Sequence[Figure],
    at: Sequence[float],
    drawn: tuple[str, str],
    label: str | None = None,
) -> None:
    axes.errorbar(
        [figure["mean"] for figure in figures],
        at,
        xerr=errors(figures),
        color=drawn[0],
        marker=drawn[1],
        markersize=5,
        linestyle="none",
        capsize=2.5,
        label=label,
        zorder=3,
    )
