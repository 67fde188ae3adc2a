"""The picture of a report on search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .calibrate_plot import BLACK, plain, render, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = (BLACK, "#999999", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")


def pictures(content: dict[str, Any]) -> dict[str, bytes]:
    """Draw `search-report.png` and `.svg` from the content of `search-report.json`."""
    return render("search-report", lambda figure: _draw(figure, content))


def _draw(figure: Figure, content: dict[str, Any]) -> None:
    figure.suptitle(content["title"], fontsize=11)
    recall, speed, unchanged = figure.subplots(1, 3)
    _lines(recall, content, lambda one: one["recall"]["share"])
    recall.set(ylim=(-0.02, 1.02), ylabel="recall@1")
    recall.set_title("How often the nearest word is found")
    _lines(speed, content, lambda one: one["words_a_second"])
    speed.set_yscale("log")
    plain(speed.yaxis)
    speed.set_ylabel("words a second, one thread")
    speed.set_title("How fast")
    _lines(unchanged, content, lambda one: one["unchanged"]["mean"])
    unchanged.set(ylim=(-0.02, 1.02), ylabel="mean $N_w$")
    unchanged.set_title("How often a word comes back unchanged")
    for axes in (recall, speed, unchanged):
        axes.set_xlabel("$\\varepsilon$ per unit of Euclidean distance")
        tidy(axes)


def _lines(axes: Axes, content: dict[str, Any], value: Any) -> None:
    rows = content["by_epsilon"]
    for number, one in enumerate(rows[0]["engines"]):
        probes = f", {one['probes']} probes" if one["probes"] else ""
        axes.plot(
            [row["epsilon"] for row in rows],
            [value(row["engines"][number]) for row in rows],
            color=_COLOURS[number % len(_COLOURS)],
            marker="o",
            markersize=3.5,
            label=one["engine"] + probes,
        )
