"""The report of a comparison: `comparison.json`, rows, and lines for a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quietcorpus.evaluation.calibration import WORDS_A_BLOCK, Measured
from quietcorpus.evaluation.distances import epsilon_of, telling
from quietcorpus.evaluation.report.plots import BLUE, VERMILION
from quietcorpus.indexes.words.manifest import IndexManifest

from ...terminal.progress import table
from . import calibrate_report
from .calibrate_report import BLACK, bands, epsilon_axis, ranked, render, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


NAMES = ("A", "B")
HISTOGRAM_RANK = 10
_BARS = 20


@dataclass(frozen=True)
class ComparisonSettings:
    """The settings of a comparison.

    Attributes:
        epsilons: the grid, per unit of Euclidean distance, for both embeddings.
        words: the largest number of common words to measure; None for all of them.
        draws: the number of draws for each embedding, epsilon and word.
        eta: S_w is the size of the smallest set with probability 1 - eta or more.
        seed: the seed of everything that is drawn; equal seeds give equal numbers.
    """

    epsilons: tuple[Fraction, ...]
    words: int | None = 10_000
    draws: int = 1000
    eta: Fraction = Fraction(1, 20)
    seed: int = 1


@dataclass(frozen=True)
class Compared:
    """The measurements of an embedding on the common words.

    Attributes:
        manifest: the description of its index.
        measured: N_w, S_w and so on; words are numbered among the common ones.
        ranks: the values of k.
        distances: float64 (n, len(ranks)), the distances to k-th neighbours of the first words.
    """

    manifest: IndexManifest
    measured: Measured
    ranks: Sequence[int]
    distances: npt.NDArray[np.float64]


def content(
    settings: ComparisonSettings, both: tuple[Compared, Compared], common: int
) -> dict[str, Any]:
    """Return all numbers, with everything that is needed to repeat them.

    Entropies are in bits: H_0 = log2 S_w and H_infinity = -log2 N_w are proxies of the Renyi
    entropies of these orders (section 3 of the paper), and log2 of the number of words is the most.
    A null H_infinity belongs to a word that no draw gave: it is above about log2(draws).
    """
    measured = both[0].measured
    spread = {
        "unchanged": np.linspace(0, 1, _BARS + 1),
        "set_size": np.linspace(0, measured.held, _BARS + 1),
        "distinct": np.linspace(0, measured.draws, _BARS + 1),
    }
    at_rank = [one.distances[:, list(one.ranks).index(HISTOGRAM_RANK)] for one in both]
    edges = np.linspace(0, max(column.max() for column in at_rank), _BARS + 1)
    return {
        "schema_version": 1,
        "title": (
            f"Madlib on the {common:,} words of both: {measured.draws:,} draws for each of "
            f"{len(measured.words):,} words"
        ),
        "embeddings": {
            name: calibrate_report.described(one.manifest)
            for name, one in zip(NAMES, both, strict=True)
        },
        "common_words": common,
        "most_bits": math.log2(common),
        "parameters": {
            "epsilons": [str(epsilon) for epsilon in settings.epsilons],
            "draws": measured.draws,
            "words": len(measured.words),
            "words_that_share_noise": WORDS_A_BLOCK,
            "eta": float(settings.eta),
            "held": measured.held,
            "seed": settings.seed,
            "quantiles": list(calibrate_report.QUANTILES),
        },
        "bars": {name: list(ends) for name, ends in spread.items()},
        "by_epsilon": [
            {
                "epsilon": float(epsilon),
                **{
                    name: _row(one.measured, e, spread)
                    for name, one in zip(NAMES, both, strict=True)
                },
            }
            for e, epsilon in enumerate(settings.epsilons)
        ],
        "equal": [_equal(both, e) for e in range(len(settings.epsilons))],
        "neighbours": {
            "ranks": list(both[0].ranks),
            "words": len(both[0].distances),
            **{
                name: [calibrate_report.quantiles(column) for column in one.distances.T]
                for name, one in zip(NAMES, both, strict=True)
            },
            "histogram": {
                "rank": HISTOGRAM_RANK,
                "bars": list(edges),
                **{
                    name: _counts(column, edges)
                    for name, column in zip(NAMES, at_rank, strict=True)
                },
            },
        },
    }


def _row(measured: Measured, e: int, spread: dict[str, npt.NDArray[np.float64]]) -> dict[str, Any]:
    values = {
        "unchanged": measured.unchanged_share[e],
        "set_size": measured.set_size[e],
        "distinct": measured.distinct[e],
    }
    return {
        **{name: calibrate_report.summary(of, measured.blocks) for name, of in values.items()},
        "h_0": {"quantiles": calibrate_report.quantiles(_bits(measured.max_entropy[e]))},
        "h_infinity": {"quantiles": calibrate_report.quantiles(_bits(measured.min_entropy[e]))},
        "histograms": {name: _counts(of, spread[name]) for name, of in values.items()},
    }


def _bits(nats: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return nats / math.log(2) + 0.0  # no -0.0


def _counts(values: npt.NDArray[np.number], edges: npt.NDArray[np.float64]) -> list[int]:
    return [int(count) for count in np.histogram(values, edges)[0]]


def _equal(both: tuple[Compared, Compared], e: int) -> dict[str, float | None]:
    """Find the epsilons of the second embedding that do to words what one does in the first.

    None is beyond the grid, or where most words of the first are at an end of what draws can show.
    """
    one, other = (compared.measured for compared in both)
    by_unchanged = by_set_size = None
    if telling(one.unchanged[e], 0, one.draws):
        means = other.unchanged_share.mean(axis=1)
        by_unchanged = epsilon_of(float(one.unchanged_share[e].mean()), other.epsilons, means)
    if telling(one.set_size[e], 1, one.held):
        means = other.set_size.mean(axis=1)
        by_set_size = epsilon_of(float(one.set_size[e].mean()), other.epsilons, means)
    return {"A": one.epsilons[e], "B_by_unchanged": by_unchanged, "B_by_set_size": by_set_size}


def rows(both: tuple[Compared, Compared], terms: pa.Array) -> pa.Table:
    """Return a row for each embedding, epsilon and word; H_infinity is null if no draw gave it."""
    tables = []
    for name, one in zip(NAMES, both, strict=True):
        table = calibrate_report.rows(one.measured, terms)
        for nats, bits in (("max_entropy", "h_0"), ("min_entropy", "h_infinity")):
            column = pc.divide(table[nats], math.log(2))
            table = table.drop_columns([nats]).append_column(bits, column)
        tables.append(table.add_column(0, "embedding", [[name] * len(table)]))
    return pa.concat_tables(tables)


def lines(found: dict[str, Any]) -> Iterator[str]:
    """Yield the tables for a terminal."""
    yield found["title"]
    for name in NAMES:
        one = found["embeddings"][name]
        yield (
            f"{name}: {one['words']:,} words, {one['dimensions']} dimensions, from "
            f"{one['source'].get('uri', 'no file')}"
        )
    yield (
        f"N_w and S_w are means over words, the rest medians; the entropies' proxies H_inf and H_0 "
        f"are in bits, at most {found['most_bits']:.2f} (log2 of the words)"
    )
    yield ""
    columns = ("N_w {}:.3f", "S_w {}:.1f", "outputs {}:.0f", "H_inf {}:.2f", "H_0 {}:.2f")
    rows = []
    for row in found["by_epsilon"]:
        means = (row[name][key]["mean"] for key in _MEANS for name in NAMES)
        medians = (row[name][key]["quantiles"][2] for key in _MEDIANS for name in NAMES)
        rows.append((row["epsilon"], *means, *medians))
    yield from table(
        ("epsilon:.4g", *(column.format(name) for column in columns for name in NAMES)), rows
    )
    yield ""
    equal = ("A at:.4g", "is like B, by N_w, at:.4g", "by S_w, at:.4g")
    yield from table(equal, (tuple(pair.values()) for pair in found["equal"]))
    neighbours = found["neighbours"]
    for name in NAMES:
        yield ""
        yield f"distances in {name}"
        yield from calibrate_report.neighbour_lines(neighbours["ranks"], neighbours[name])


_MEANS, _MEDIANS = ("unchanged", "set_size"), ("distinct", "h_infinity", "h_0")
_COLOURS = dict(zip(NAMES, (BLUE, VERMILION), strict=True))
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
    """Draw N_w and S_w on separate axes over one of epsilon (figure 3)."""
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
    epsilon_axis(axes, content, "unit of Euclidean distance")


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
    epsilon_axis(axes, content, "unit of Euclidean distance")


def _neighbours(axes: Axes, content: dict[str, Any]) -> None:
    neighbours = content["neighbours"]
    for name, colour in _COLOURS.items():
        bands(axes, neighbours["ranks"], neighbours[name], colour, prefix=f"{name}: ")
    ranked(axes, "Euclidean distance")


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
