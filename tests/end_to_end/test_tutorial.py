"""The tutorial, as its page tells it."""

from __future__ import annotations

from pathlib import Path

import datasets
import pytest
from machine import MASTER_KEY
from pages import GUIDES, assert_every_example_runs, assert_true

PAGE = GUIDES / "tutorial.md"


def test_every_example_of_the_page_is_one_that_runs() -> None:
    assert_every_example_runs(PAGE)


@pytest.mark.slow
def test_the_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: an example that does not run, a figure that is not so, a card that says otherwise.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUIETCORPUS_MASTER_KEY", MASTER_KEY)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    assert_true(PAGE)
