"""Pages of the documentation whose examples are run, from top to bottom."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from machine import ROOT

GUIDES = ROOT / "docs" / "guides"


def assert_every_example_runs(page: Path) -> None:
    """Fail for Python on the page that `doctest` would pass over."""
    blocks = re.findall(r"```(\w*)\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    assert len(blocks) > 10
    for language, block in blocks:
        if language == "sh":  # how to install
            assert block.startswith("pip install ")
            continue
        assert language == "python"
        assert block.startswith(">>> ")
        assert "SKIP" not in block


def assert_true(page: Path) -> None:
    """Run the page in the working folder; fail for an example that gives something else."""
    failed, tried = doctest.testfile(
        str(page),
        module_relative=False,
        optionflags=doctest.ELLIPSIS,
        encoding="utf-8",
    )
    assert tried > 10
    assert failed == 0
