"""The report's plots draw every figure where its number is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import report_content as made
from report_content import figure

from quietcorpus.evaluation.report import plots
from quietcorpus.evaluation.report.wording import MeasureFigures, by_measure


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The axes of what is drawn, before it becomes text."""
    axes: list[Any] = []

    def keep(drawing: Any, *_: str) -> str:
        axes.extend(drawing.axes)
        return ""

    monkeypatch.setattr(plots, "inline", keep)
    return axes


def measured(*figures: dict[str, Any]) -> MeasureFigures:
    content = {"measures": {"m": made.measure("utility", "M", "")}, "figures": list(figures)}
    return by_measure(content)[0]


def points(container: Any) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in container[0].get_xydata()]


def ends(container: Any, axis: int) -> list[list[float]]:
    """Return the places where the intervals begin and end."""
    (bars,) = container[2]
    return [[float(end[axis]) for end in segment] for segment in bars.get_segments()]


def test_a_comparison_has_a_dot_and_an_interval_for_each_figure(drawn: list[Any]) -> None:
    figures = [figure("m", "release", 0.6, 0.1), figure("m", "original", 0.9)]
    plots.comparison(measured(*figures), "name")
    release, original = drawn[0].containers
    assert points(release) == [(0.6, 0)]
    assert points(original) == [(0.9, 1)]
    assert ends(release, 0) == [pytest.approx([0.5, 0.7])]
    assert ends(original, 0) == [[0.9, 0.9]]
    assert [tick.get_text() for tick in drawn[0].get_yticklabels()] == [
        "this release",
        "original text",
    ]


def test_an_interval_need_not_be_around_its_figure(drawn: list[Any]) -> None:
    skew = figure("m", "release", 0.6) | {"low": 0.55, "high": 0.9}
    plots.comparison(measured(skew, figure("m", "noise", 0.1)), "name")
    assert ends(drawn[0].containers[0], 0) == [pytest.approx([0.55, 0.9])]


def test_groups_are_apart_and_subjects_in_them_too(drawn: list[Any]) -> None:
    figures = [
        figure("m", who, mean, 0.01, group=group)
        for group, mean in (("first", 0.5), ("second", 0.4))
        for who in ("release", "noise", "another", "one more")
    ]
    plots.comparison(measured(*figures), "name")
    places = [place for container in drawn[0].containers for _, place in points(container)]
    assert len(set(places)) == len(figures)
    assert [round(place) for place in places] == [0, 1] * 4
    looks = {(each[0].get_color(), each[0].get_marker()) for each in drawn[0].containers}
    assert len(looks) == 4


@pytest.mark.parametrize("means", [(), (0.5,), (0.5, float("nan")), (0.5, None)])
def test_fewer_than_two_dots_are_no_plot(means: tuple[float | None, ...]) -> None:
    figures = [figure("m", str(place), mean) for place, mean in enumerate(means)]
    content = {"measures": {"m": made.measure("utility", "M", "")}, "figures": figures}
    assert plots.comparison(by_measure(content)[0], "name") is None


def test_a_curve_goes_through_its_figures_in_order(drawn: list[Any]) -> None:
    swept = [
        figure("m", "release", mean, 0.05, epsilon=epsilon)
        for epsilon, mean in (("10", 0.9), ("1", 0.3), ("2", 0.5))
    ]
    own = [figure("m", "release", 0.5, 0.1), figure("m", "ceiling", 0.95)]
    plots.curve(measured(*own, *swept), "name")
    (line,) = drawn[0].containers
    assert points(line) == [(1, 0.3), (2, 0.5), (10, 0.9)]
    assert np.allclose(ends(line, 1), [[0.25, 0.35], [0.45, 0.55], [0.85, 0.95]])
    across = {each.get_label(): each.get_ydata()[0] for each in drawn[0].lines
              if len(each.get_xdata()) == 2 and list(each.get_xdata()) == [0, 1]}  # fmt: skip
    assert across == {"this release": 0.5, "ceiling": 0.95}


@pytest.mark.parametrize(
    ("values", "scale", "places"),
    [
        (("1", "2", "5", "10"), "log", [1, 2, 5, 10]),
        (("2", "4", "6", "8", "10"), "linear", [2, 4, 6, 8, 10]),
        (("0", "1", "100"), "linear", [0, 1, 100]),
        (("random", "frequency"), "linear", [0, 1]),
        (("1", "inf"), "linear", [0, 1]),
        (("5",), "linear", [5]),
    ],
)
def test_marks_stand_where_they_can_be_read(
    drawn: list[Any], values: tuple[str, ...], scale: str, places: list[float]
) -> None:
    plots.curve(measured(*(figure("m", "release", 0.5, epsilon=each) for each in values)), "name")
    assert drawn[0].get_xscale() == scale
    assert [x for x, _ in points(drawn[0].containers[0])] == places
    assert [tick.get_text() for tick in drawn[0].get_xticklabels()] == list(values)


def test_one_value_written_in_two_ways_stands_in_one_place(drawn: list[Any]) -> None:
    swept = [figure("m", "release", 0.5, epsilon=each) for each in ("5", "5.0")]
    plots.curve(measured(*swept), "name")
    assert points(drawn[0].containers[0]) == [(5, 0.5), (5, 0.5)]


def test_other_keys_make_a_line_each_against_epsilon(drawn: list[Any]) -> None:
    swept = [
        figure("m", "release", float(size) / 1000, size=size, epsilon=epsilon)
        for size in ("100", "200")
        for epsilon in ("1", "2")
    ]
    plots.curve(measured(*swept), "name")
    assert [each.get_label() for each in drawn[0].containers] == ["size = 100", "size = 200"]
    assert [points(each) for each in drawn[0].containers] == [
        [(1, 0.1), (2, 0.1)],
        [(1, 0.2), (2, 0.2)],
    ]
    assert drawn[0].get_xlabel() == "ε"


def test_points_of_variants_make_a_line_each_against_their_numbers(drawn: list[Any]) -> None:
    # Kills: places by the variants' names; a variant without points, which has no place.
    swept = [
        figure("m", "release", float(at) / 100, compare=name, at=at)
        for name in ("madlib", "brr")
        for at in ("10", "6")
    ]
    plots.curve(measured(*swept, figure("m", "release", 0.9, compare="plain")), "name")
    assert [each.get_label() for each in drawn[0].containers] == ["madlib", "brr"]
    assert [points(each) for each in drawn[0].containers] == [[(6, 0.06), (10, 0.1)]] * 2
    assert drawn[0].get_xlabel() == "at"


@pytest.mark.parametrize("lines", [1, 13, 40])
def test_a_long_legend_leaves_room_for_the_lines(
    monkeypatch: pytest.MonkeyPatch, lines: int
) -> None:
    # Kills: a height of its own, from which the legend of 13 settings took all that lines need.
    sizes: list[float] = []
    inline = plots.inline

    def keep(drawing: Any, *given: str) -> str:
        written = inline(drawing, *given)  # a warning that nothing is left is an error in tests
        sizes.append(drawing.axes[0].get_position().height * drawing.get_figheight())
        return written

    monkeypatch.setattr(plots, "inline", keep)
    swept = [
        figure("m", "release", 0.5, epsilon=epsilon, map=f"map {line}")
        for line in range(lines)
        for epsilon in ("1", "2")
    ]
    assert plots.curve(measured(*swept), "name")
    assert sizes[0] > 1.2  # inches


def test_what_no_setting_changes_is_a_line_across(drawn: list[Any]) -> None:
    # Kills: noise drawn twice, once at each setting and once across; a release without its line.
    swept = [
        figure("m", who, value, 0.1, epsilon=epsilon)
        for who, value in (("release", 0.5), ("noise", 0.1))
        for epsilon in ("1", "2")
    ]
    own = [figure("m", who, 0.3, 0.1) for who in ("release", "noise", "original")]
    plots.curve(measured(*swept, *own), "name")
    across = [line.get_label() for line in drawn[0].lines if len(set(line.get_ydata())) == 1]
    assert {"this release", "original text"} <= set(across)
    names = drawn[0].get_legend_handles_labels()[1]
    assert sorted(names) == ["at each ε", "noise alone", "original text", "this release"]
