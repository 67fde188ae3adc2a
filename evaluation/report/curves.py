"""The plots of a sweep: a measure against a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..results import POINT
from ..verdict import Figure
from . import svg
from .figures import MeasureFigures
from .plots import WIDTH, errors, legend, look, short, told
from .wording import plotted, setting, subject, symbol

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = (svg.BLUE, svg.VERMILION, svg.GREEN, svg.PURPLE, svg.ORANGE)
_MARKERS = "osDP^"


def swept_key(figures: Sequence[Figure]) -> str:
    """Return the parameter that curves are drawn against.

    It is epsilon if that is swept, else the numbers of variants' points, else the first.
    """
    keys = list(dict.fromkeys(key for figure in figures for key in figure["setting"]))
    return next((key for key in ("epsilon", POINT) if key in keys), keys[0])


def curve(measured: MeasureFigures, name: str) -> str | None:
    """Draw lines through a sweep's figures, and the release's own across; None without any."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as Drawing
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    if not (figures := _drawn(measured)):
        return None
    with mpl.rc_context(svg.SETTINGS):
        drawing = Drawing(figsize=(WIDTH, 3.1), layout=ConstrainedLayoutEngine(h_pad=0.08))
        axes = drawing.subplots()
        draw(axes, measured)
        legend(drawing)
        rows = (len(axes.get_legend_handles_labels()[1]) + 1) // 2
        drawing.set_figheight(max(3.1, 2.1 + 0.2 * rows))
        title = f"{measured.measure['title']} against {swept_key(figures)}"
        said = [{**figure, "group": _point(figure)} for figure in figures]
        return svg.inline(drawing, name, title, told(said))


def draw(axes: Axes, measured: MeasureFigures) -> None:
    """Draw a measure's curves, of which there are some, and its references on axes."""
    figures = _drawn(measured)
    key = swept_key(figures)
    _draw(axes, _lines(figures, key), key)
    if len({figure["group"] for figure in figures}) == 1:
        _references(axes, measured, figures[0]["group"])
    axes.set_xlabel(symbol(key))
    axes.grid()


def _drawn(measured: MeasureFigures) -> list[Figure]:
    """Return the figures that have a place on curves."""
    figures = [figure for figure in measured.swept if plotted(figure["mean"])]
    key = swept_key(figures) if figures else ""
    return [figure for figure in figures if key in figure["setting"]]


def _point(figure: Figure) -> str:
    return " ".join(filter(None, (figure["group"], "at " + setting(figure["setting"]))))


def _lines(figures: Sequence[Figure], key: str) -> dict[tuple[str, str], list[Figure]]:
    """Group the figures by subject and by all that differs except the parameter."""
    lines: dict[tuple[str, str], list[Figure]] = {}
    for figure in figures:
        rest = ", ".join(filter(None, (figure["group"], setting(figure["setting"], key))))
        lines.setdefault((figure["subject"], rest), []).append(figure)
    return lines


def _draw(axes: Axes, lines: dict[tuple[str, str], list[Figure]], key: str) -> None:
    values = list(dict.fromkeys(f["setting"][key] for line in lines.values() for f in line))
    at = _positions(values)
    subjects = list(dict.fromkeys(name for name, _ in lines))
    one_each = len(subjects) == len(lines)
    for number, ((name, rest), figures) in enumerate(lines.items()):
        ordered = sorted(figures, key=lambda figure: at[figure["setting"][key]])
        cycled = _COLOURS[number % len(_COLOURS)], _MARKERS[number % len(_MARKERS)]
        colour, marker = look(name, subjects) if one_each else cycled
        whole = subject(name) if one_each else rest if len(subjects) == 1 else f"{name}, {rest}"
        axes.errorbar(
            [at[figure["setting"][key]] for figure in ordered],
            [figure["mean"] for figure in ordered],
            yerr=errors(ordered),
            color=colour,
            marker=marker,
            markersize=4.5,
            linewidth=1.4,
            capsize=2.5,
            label=short(f"at each {symbol(key)}" if whole == subject("release") else whole),
            zorder=3,
        )
    _horizontal(axes, at)


def _positions(values: Sequence[str]) -> dict[str, float]:
    """Return the positions of values: their own if all are numbers, else one after the other."""
    try:
        at = {value: float(value) for value in values}
    except ValueError:
        at = {}
    if at and all(map(plotted, at.values())):
        return at
    return {value: float(position) for position, value in enumerate(values)}


def _horizontal(axes: Axes, at: dict[str, float]) -> None:
    """Set a tick at every value, on the scale that leaves the ticks further apart."""
    from matplotlib.ticker import NullLocator

    ordered = sorted(at, key=lambda value: at[value])
    places = np.array([at[value] for value in ordered])
    if 0 < places[0] < places[-1] and _closest(np.log(places)) > _closest(places):
        axes.set_xscale("log")
    axes.set_xticks([at[value] for value in ordered], [short(value) for value in ordered])
    axes.xaxis.set_minor_locator(NullLocator())


def _closest(places: npt.NDArray[np.float64]) -> float:
    """Return the least distance of two neighbours, as a share of the whole range."""
    return float(np.diff(places).min() / (places[-1] - places[0]))


def _references(axes: Axes, measured: MeasureFigures, group: str) -> None:
    """Draw the release's own figure, and those that no setting changes, as lines across."""
    swept = {figure["subject"] for figure in measured.swept} - {"release"}
    own = [
        figure
        for figure in measured.own
        if figure["group"] == group and plotted(figure["mean"]) and figure["subject"] not in swept
    ]
    styles = ("--", ":", "-.", (0, (6, 2, 1, 2, 1, 2)))
    names = [figure["subject"] for figure in own]
    for position, figure in enumerate(own):
        axes.axhline(
            figure["mean"],
            color=look(figure["subject"], names)[0],
            linestyle=styles[position % len(styles)],
            linewidth=1.1,
            label=short(subject(figure["subject"])),
            zorder=2,
        )
