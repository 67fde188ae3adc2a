"""The digest that a worker compares with its launcher's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from machine import ROOT

from quietcorpus.pipelines.environment.version import environment_digest

PRINT = (
    "from quietcorpus.pipelines.environment.version import environment_digest; "
    "print(environment_digest())"
)


def test_the_digest_is_the_same_wherever_python_starts(tmp_path: Path) -> None:
    """Kills: a digest of all that lies in a checkout, where its parent is on Python's path."""
    (tmp_path / "quietcorpus").symlink_to(ROOT)
    for folder in (tmp_path, ROOT, ROOT / "tests"):
        printed = subprocess.check_output([sys.executable, "-c", PRINT], cwd=folder, text=True)
        assert printed.strip() == environment_digest()
