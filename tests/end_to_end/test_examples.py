"""Every spec in examples/ runs, on what the demo prepares."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Workspace

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.yaml")))
def test_an_example_runs(workspace: Workspace, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from demo import prepare

    prepare(workspace.folder)
    done = workspace.run("release", str(EXAMPLES / name))
    assert done.returncode == 0, done.stderr
    (output,) = (workspace.folder / "build/demo/releases").iterdir()
    assert workspace.run("verify", str(output)).returncode == 0
    sys.modules.pop("demo")
