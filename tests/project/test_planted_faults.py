"""The tests that docs/measurements/planted-faults.md names are there, and `make test` runs them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from machine import ROOT

PAGE = ROOT / "docs" / "measurements" / "planted-faults.md"


def is_slow(node: ast.AST) -> bool:
    """Return whether a decorator, or the value of a module's `pytestmark`, is a mark of those that
    `make test` leaves out."""
    return ast.unparse(node) in ("pytest.mark.slow", "pytest.mark.nightly")


@pytest.mark.slow
def test_every_named_test_is_run() -> None:
    # Kills: a test that is renamed, deleted or marked as slow, so that its fault passes unseen.
    named = set(re.findall(r"`([\w/]+\.py)`: `(test_\w+)`", PAGE.read_text("utf-8")))
    assert len(named) > 50
    for path, name in named:
        module = ast.parse((ROOT / "tests" / path).read_text("utf-8"))
        marks = [
            node.value
            for node in module.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
        ]
        assert not any(map(is_slow, marks)), path
        functions = (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef))
        found = [function for function in functions if function.name == name]
        assert len(found) == 1, (path, name)
        assert not any(map(is_slow, found[0].decorator_list)), (path, name)


def test_every_file_with_nightly_tests_is_listed() -> None:
    # Kills: a test that `.ci/run` leaves out, and nothing says which one finds its faults.
    _, _, listed = PAGE.read_text("utf-8").partition("## Sweeps that only the nightly run has")
    paths = (path for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__))
    nightly = {path.name for path in paths if "pytest.mark.nightly" in path.read_text("utf-8")}
    assert len(nightly) > 5
    assert not {name for name in nightly if f"{name}`" not in listed}
