"""Tests stand where the module stands that they test, and no module outgrows one idea."""

from __future__ import annotations

from pathlib import Path

from machine import ROOT

PACKAGES = ("evaluation", "indexes", "mechanisms", "pipelines", "transforms")
TESTS = ROOT / "tests"
# A folder called `quietcorpus` would hide the package from a Python that starts beside it.
PUBLIC = TESTS / "public"
FOLDERS = (*PACKAGES, "quietcorpus", "tests", "benchmarks", "examples", "deploy")
MOST_LINES = 800


def modules(folder: Path) -> list[str]:
    """The modules and packages of a folder of the product."""
    return [path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()]


def test_a_test_has_the_name_of_its_module() -> None:
    # Or that name and a suffix, where a module has several. Kills: a module that moves without its
    # tests.
    tests = [path for name in PACKAGES for path in (TESTS / name).rglob("test_*.py")]
    places = [(path, ROOT / path.relative_to(TESTS).parent) for path in tests]
    places += [(path, ROOT / "quietcorpus") for path in PUBLIC.glob("test_*.py")]
    lost = [
        str(path)
        for path, folder in places
        if not any(f"{path.stem}_".startswith(f"test_{name}_") for name in modules(folder))
    ]
    assert not lost


def test_no_module_is_long() -> None:
    # Kills: a module that takes in a second idea line by line, until nobody reads all of it.
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    lines = {str(path): len(path.read_text("utf-8").splitlines()) for path in paths}
    assert len(lines) > 1000
    assert not {path: count for path, count in lines.items() if count > MOST_LINES}
