"""The master key in this process's environment, and a transform of words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from composed import Make
from machine import MASTER_KEY
from small_specs import WEAK

from quietcorpus.beam import PrivatizeWords


@pytest.fixture(autouse=True)
def master_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give launcher and workers, which are this process, one master key."""
    monkeypatch.setenv("QUIETCORPUS_MASTER_KEY", MASTER_KEY)


@pytest.fixture
def words_of(word_index: Path) -> Make:
    """Makes the transform, at so small an epsilon that little of a word is left."""

    def make(release: str = "test", **changes: Any) -> PrivatizeWords:
        given: dict[str, Any] = {
            "index": word_index,
            "mechanism": "brr",
            "epsilon": 0.05,
            "text": "body",
            "id": "number",
            "keep": ["product"],
        }
        return PrivatizeWords(release, **{"accept": WEAK} | given | changes)

    return make
