"""Helpers for tests of Dataflow: where it is deployed from, and programs without an account."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

from machine import ROOT

if TYPE_CHECKING:
    from tests.conftest import Workspace


DEPLOY = ROOT / "deploy" / "dataflow"


def run(workspace: Workspace, *arguments: str, **environment: str) -> Any:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=workspace.folder,
        # Without an account anywhere, and without looking for one on Google's machines.
        env=workspace.environment | {"NO_GCE_CHECK": "true"} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
