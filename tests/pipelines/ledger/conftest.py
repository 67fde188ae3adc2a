"""A ledger's folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from ledger_requests import terms

from quietcorpus.pipelines.ledger.book import Ledger


@pytest.fixture
def place(tmp_path: Path) -> str:
    Ledger.init(str(tmp_path / "ledger"), terms(tmp_path / "corpus"))
    return str(tmp_path / "ledger")
