"""The settings of a sweep, and the results that are kept of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quietcorpus.evaluation.results import MeasuredDraw, Observation
from quietcorpus.pipelines.evaluate.sweep import Done, grid, named, parsed
from quietcorpus.transforms.errors import InputError


def observed(draw: int, value: float, *, epsilon: str | None = None) -> MeasuredDraw:
    """A draw with one figure."""
    setting = () if epsilon is None else (("epsilon", epsilon),)
    return MeasuredDraw(setting, draw, [Observation("linkage", "release", value, "", 0.1, 0.6, 9)])


def test_a_sweep_is_every_combination() -> None:
    assert grid({}) == []
    assert grid(parsed(["epsilon=1, 2,2"])) == [(("epsilon", "1"),), (("epsilon", "2"),)]
    assert grid({"epsilon": [1, "2"], "compression.size": [100]}) == [
        (("epsilon", "1"), ("compression.size", "100")),
        (("epsilon", "2"), ("compression.size", "100")),
    ]


def test_variants_are_whole_blocks_times_the_sweep(tmp_path: Path) -> None:
    # Kills: blocks taken apart, values that YAML would read otherwise, a sweep in place of a grid.
    path = tmp_path / "maps.yaml"
    path.write_text(
        "dense: {compression: {method: none}, histogram_epsilon: null}\n"
        "ranked: {compression: {method: frequency, size: 100}}\n"
    )
    found = named(str(path))
    dense, ranked = ((("compare", name),) for name in ("dense", "ranked"))
    assert found == {
        dense: {"compression": '{"method": "none"}', "histogram_epsilon": "null"},
        ranked: {"compression": '{"method": "frequency", "size": 100}'},
    }
    assert grid({"epsilon": [1, 2]}, found) == [
        (*variant, ("epsilon", value)) for variant in found for value in ("1", "2")
    ]
    assert grid({}, found) == [dense, ranked]


def test_numbers_are_points_of_a_variant(tmp_path: Path) -> None:
    # Kills: one point for all, a number taken for a key of the mechanism, a point without its name.
    path = tmp_path / "matched.yaml"
    path.write_text(
        "madlib: {10: {mechanism: madlib, epsilon: 10}, 2.5: {mechanism: madlib, epsilon: 2.5}}\n"
        "plain: {mechanism: brr}\n"
    )
    assert named(str(path)) == {
        (("compare", "madlib"), ("at", "10")): {"mechanism": '"madlib"', "epsilon": "10"},
        (("compare", "madlib"), ("at", "2.5")): {"mechanism": '"madlib"', "epsilon": "2.5"},
        (("compare", "plain"),): {"mechanism": '"brr"'},
    }


POINTLESS = ["a: {1: 5}", "a: {1: {}}", "1: {2: {a: 3}}"]


@pytest.mark.parametrize(
    "content", ["", "[a, b]", "dense:", "dense: 5", "dense: {}", "1: {a: 2}", *POINTLESS]
)
def test_what_names_no_variants(tmp_path: Path, content: str) -> None:
    path = tmp_path / "maps.yaml"
    path.write_text(content)
    with pytest.raises(InputError, match=r"^compare: "):
        named(str(path))


@pytest.mark.parametrize("given", ["epsilon", "epsilon=", "=1", "epsilon=1,,2", "epsilon=1,"])
def test_what_is_no_sweep(given: str) -> None:
    with pytest.raises(InputError, match=r"sweep: .* is not KEY=VALUE,VALUE"):
        parsed([given])


def test_a_key_of_a_sweep_twice() -> None:
    with pytest.raises(InputError, match="a key is given twice"):
        parsed(["epsilon=1", "epsilon=2"])


def test_results_are_kept_by_evaluation_setting_and_draw(tmp_path: Path) -> None:
    # Kills: a result that another evaluation, setting or draw takes for its own.
    one, other = Done(str(tmp_path), "one"), Done(str(tmp_path), "other")
    measured = observed(1, 0.25, epsilon="2")
    one.keep(measured)
    assert one.find((measured.setting, 1)) == measured
    for done, task in (
        (other, (measured.setting, 1)),
        (one, (measured.setting, 2)),
        (one, ((), 1)),
        (one, ((("epsilon", "3"),), 1)),
    ):
        assert done.find(task) is None
    (path,) = tmp_path.iterdir()
    path.write_text(path.read_text()[:-9])  # cut short
    assert one.find((measured.setting, 1)) is None


@pytest.mark.parametrize(
    "change", [{"measure": "weather"}, {"value": "high"}, {"low": "low"}, {"extra": 1}]
)
def test_what_was_not_kept_by_us_is_not_taken_up(tmp_path: Path, change: dict[str, object]) -> None:
    done, measured = Done(str(tmp_path), "one"), observed(0, 0.5)
    done.keep(measured)
    (path,) = tmp_path.iterdir()
    content = json.loads(path.read_text())
    content["observations"][0] |= change
    path.write_text(json.dumps(content))
    assert done.find(((), 0)) is None
