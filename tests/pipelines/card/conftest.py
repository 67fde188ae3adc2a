"""Copies of the releases of each kind."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def copied(golden: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Copies that a test may spoil."""
    return lambda name: shutil.copytree(golden / f"out-{name}", tmp_path / "out")
