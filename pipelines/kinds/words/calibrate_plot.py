"""The picture of a calibration."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which remain distinct under any colour vision.
BLUE, ORANGE, GREEN, BLACK = "#0072B2", "#D55E00", "#009E73", "#000000"
_WIDE = 30


def pictures(content: dict[str, Any]) -> dict[str, bytes]:
    """Draw `calibration.png` and `calibration.svg` from the content of `calibration.json`."""
    return render("calibration", lambda figure: _draw(figure, content))


def render(name: str, draw: Callable[[Figure], None], height: float = 4.8) -> dict[str, bytes]:
    """Return a wide picture as PNG and SVG, by file name; equal drawings give equal bytes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    settings: dict[Any, Any] = {"svg.hashsalt": "quietcorpus", "font.size": 9, "axes.titlesize": 10}
    with mpl.rc_context(settings):
        figure = Figure(figsize=(12, height), layout=ConstrainedLayoutEngine(w_pad=0.12))
        draw(figure)
        drawn = {}
        for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
            stream = io.BytesIO()
            figure.savefig(stream, format=kind, dpi=160, metadata=metadata)
            drawn[f"{name}.{kind}"] = stream.getvalue()
    return drawn


def _draw(figure: Figure, content: dict[str, Any]) -> None:
    figure.suptitle(content["title"], fontsize=11)
    unchanged, sizes, neighbours = figure.subplots(1, 3)
    _unchanged(unchanged, content)
    _set_sizes(sizes, content)
    for axes in (unchanged, sizes):
        _epsilon_axis(axes, content)
    _neighbours(neighbours, content)
    for axes in (unchanged, sizes, neighbours):
        tidy(axes)


def tidy(axes: Axes) -> None:
    """Add a grid and a legend."""
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(  # below, where it hides nothing
        loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, fontsize=8, frameon=False
    )


def _unchanged(axes: Axes, content: dict[str, Any]) -> None:
    rows = content["by_epsilon"]
    quantiles = [row["unchanged"]["quantiles"] for row in rows]
    bands(axes, [row["epsilon"] for row in rows], quantiles, BLUE)
    axes.set(ylim=(-0.02, 1.02), ylabel="$N_w$: share of draws that give the word itself")
    axes.set_title("How often a word comes back unchanged")


def _set_sizes(axes: Axes, content: dict[str, Any]) -> None:
    rows, parameters = content["by_epsilon"], content["parameters"]
    quantiles = [row["set_size"]["quantiles"] for row in rows]
    bands(axes, [row["epsilon"] for row in rows], quantiles, ORANGE)
    axes.axhline(
        parameters["held"],
        color=BLACK,
        linestyle=":",
        linewidth=1,
        label=f"most that {parameters['draws']:,} draws can show",
    )
    axes.set_yscale("log")
    plain(axes.yaxis)
    share = 100 * (1 - parameters["eta"])
    axes.set_ylabel(f"$S_w$: words that hold {share:.4g} % of the draws")
    axes.set_title("Into how many words it turns")


def _neighbours(axes: Axes, content: dict[str, Any]) -> None:
    neighbours = content["neighbours"]
    bands(axes, neighbours["ranks"], neighbours["quantiles"], GREEN)
    mean = content["mean_distance"]
    axes.axhline(mean, color=BLACK, linestyle=":", linewidth=1, label="mean of all pairs")
    axes.set_xscale("log")
    plain(axes.xaxis)
    unit = " (bits)" if content["unit"] == "bit" else ""
    axes.set(xlabel="k", ylabel=f"{content['metric']} distance{unit}", ylim=(0, None))
    axes.set_title("How far a word's k-th neighbour is")


def bands(
    axes: Axes, x: Sequence[float], quantiles: Sequence[Any], colour: str, prefix: str = ""
) -> None:
    """Draw the median, the quartiles, and the middle 90 % of words; labels begin with `prefix`."""
    values = np.array(quantiles)
    axes.plot(
        x, values[:, 2], color=colour, marker="o", markersize=3.5, label=f"{prefix}median word"
    )
    for low, high, alpha, share in ((1, 3, 0.4, 50), (0, 4, 0.18, 90)):
        axes.fill_between(
            x,
            values[:, low],
            values[:, high],
            color=colour,
            alpha=alpha,
            linewidth=0,
            label=f"{prefix}middle {share} % of words",
        )


def scale(axes: Axes, epsilons: Sequence[float]) -> None:
    """Scale the axis of epsilons, linear unless their grid is wide."""
    if max(epsilons) > _WIDE * min(epsilons):
        axes.set_xscale("log")
        plain(axes.xaxis)


def _epsilon_axis(axes: Axes, content: dict[str, Any]) -> None:
    """Scale and name the axis, and mark the solution."""
    scale(axes, [row["epsilon"] for row in content["by_epsilon"]])
    axes.set_xlabel(f"$\\varepsilon$ per {content['unit']}")
    if content["solution"] is not None:
        solved = content["solution"]["epsilon"]
        label = f"$\\varepsilon$ = {solved:g}, solved for"
        axes.axvline(solved, color=BLACK, linestyle="--", linewidth=1, label=label)


def plain(axis: Axis) -> None:
    """Label a logarithmic axis with numbers rather than powers of ten."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())
