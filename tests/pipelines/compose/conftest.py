"""The master key in this process's environment."""

from __future__ import annotations

import pytest
from machine import MASTER_KEY


@pytest.fixture(autouse=True)
def master_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give launcher and workers, which are this process, one master key."""
    monkeypatch.setenv("QUIETCORPUS_MASTER_KEY", MASTER_KEY)
