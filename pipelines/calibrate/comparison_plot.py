"""The pictures of a comparison, after figures 2 to 6 of Feyisetan et al. (PrivateNLP 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .comparison_report import NAMES
from .words_plot import (
    BLACK,
    BLUE,
    ORANGE,
    bands,
    plain,
    render,
    scale,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = dict(zip(NAMES, (BLUE, ORANGE), strict=True))
_HISTOGRAMS = {
    "unchanged": "$N_w$: share of draws that give the word itself",
    "set_size": "$S_w$: words that hold most draws",
    "distinct": "different outputs",
}


def pictures(content: dict[str, Any]) -> dict[str, bytes]:
    """Draw `comparison` and `histograms`, as PNG and SVG, from the content of `comparison.json`."""
    curves = render("comparison", lambda figure: _draw(figure, content), height=9)
    return curves | render("histograms", lambda figure: _draw_histograms(figure, content), height=7)


def _draw(figure: Figure, content: dict[str, Any]) -> None:
    figure.suptitle(content["title"], fontsize=11)
    (statistics, entropies), (neighbours, at_rank) = figure.subplots(2, 2)
    _statistics(statistics, content)
    _entropies(entropies, content)
    _neighbours(neighbours, content)
    _at_rank(at_rank, content)
    for axes in (statistics, entropies, neighbours, at_rank):
        tidy(axes)


def _statistics(axes: Axes, content: dict[str, Any]) -> None:
    """Draw N_w and S_w on axes of their own over one of epsilon (figure 3)."""
    epsilons = [row["epsilon"] for row in content["by_epsilon"]]
    sizes = axes.twinx()
    for name, colour in _COLOURS.items():
        of = [row[name] for row in content["by_epsilon"]]
        shares = [one["unchanged"]["mean"] for one in of]
        axes.plot(
            epsilons, shares, color=colour, marker="o", markersize=3.5, label=f"$N_w$, {name}"
        )
        held = [one["set_size"]["mean"] for one in of]
        sizes.plot(epsilons, held, color=colour, marker="s", markersize=3.5, linestyle="--")
        axes.plot([], [], color=colour, marker="s", linestyle="--", label=f"$S_w$, {name}")
    axes.set(ylim=(-0.02, 1.02), ylabel="mean $N_w$ (whole lines)")
    sizes.set(ylim=(0, None), ylabel="mean $S_w$ (broken lines)")
    sizes.spines["top"].set_visible(False)
    axes.set_title("How often a word stays, and into how many it turns")
    _epsilon_axis(axes, content)


def _entropies(axes: Axes, content: dict[str, Any]) -> None:
    for key, name, style in (("h_0", "$H_0$", "--"), ("h_infinity", "$H_\\infty$", "-")):
        for of, colour in _COLOURS.items():
            points = [
                (row["epsilon"], row[of][key]["quantiles"][2])
                for row in content["by_epsilon"]
                if row[of][key]["quantiles"][2] is not None
            ]
            xs, ys = [x for x, _ in points], [y for _, y in points]
            label = f"{name}, {of}"
            axes.plot(xs, ys, style, color=colour, marker="o", markersize=3.5, label=label)
    label = "$\\log_2$ of the words"
    axes.axhline(content["most_bits"], color=BLACK, linestyle=":", linewidth=1, label=label)
    axes.set(ylim=(0, None), ylabel="bits, median word")
    axes.set_title("Proxies of Rényi entropies")
    _epsilon_axis(axes, content)


def _neighbours(axes: Axes, content: dict[str, Any]) -> None:
    neighbours = content["neighbours"]
    for name, colour in _COLOURS.items():
        bands(axes, neighbours["ranks"], neighbours[name], colour, prefix=f"{name}: ")
    axes.set_xscale("log")
    plain(axes.xaxis)
    axes.set(xlabel="k", ylabel="Euclidean distance", ylim=(0, None))
    axes.set_title("How far a word's k-th neighbour is")


def _at_rank(axes: Axes, content: dict[str, Any]) -> None:
    histogram = content["neighbours"]["histogram"]
    for name, colour in _COLOURS.items():
        axes.stairs(
            histogram[name], histogram["bars"], color=colour, fill=True, alpha=0.5, label=name
        )
    axes.set(xlabel="Euclidean distance", ylabel="words")
    axes.set_title(f"How far the neighbour at k = {histogram['rank']} is")


def _draw_histograms(figure: Figure, content: dict[str, Any]) -> None:
    import matplotlib as mpl

    figure.suptitle(content["title"], fontsize=11)
    rows = content["by_epsilon"]
    colours = mpl.colormaps["viridis"].resampled(len(rows))
    for name, line in zip(NAMES, figure.subplots(len(NAMES), len(_HISTOGRAMS)), strict=True):
        for axes, (key, label) in zip(line, _HISTOGRAMS.items(), strict=True):
            for number, row in enumerate(rows):
                counts, ends = row[name]["histograms"][key], content["bars"][key]
                of = f"$\\varepsilon$ = {row['epsilon']:g}"
                axes.stairs(counts, ends, color=colours(number), linewidth=1.3, label=of)
            axes.set(xlabel=label, ylabel=f"words of {name}")
            axes.grid(alpha=0.25, linewidth=0.5)
            axes.spines[["top", "right"]].set_visible(False)
    figure.legend(
        *axes.get_legend_handles_labels(), loc="outside lower center", ncols=8, frameon=False
    )


def _epsilon_axis(axes: Axes, content: dict[str, Any]) -> None:
    scale(axes, [row["epsilon"] for row in content["by_epsilon"]])
    axes.set_xlabel("$\\varepsilon$ per unit of Euclidean distance")
