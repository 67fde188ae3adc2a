"""A workspace for tests of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.fixture
def here(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A workspace whose folder is the working one, and whose environment is this process's."""
    monkeypatch.chdir(workspace.folder)
    monkeypatch.setenv("QUIETCORPUS_MASTER_KEY", workspace.environment["QUIETCORPUS_MASTER_KEY"])
    return workspace
