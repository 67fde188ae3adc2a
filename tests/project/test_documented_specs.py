"""Every release that the documents show is one that can be asked for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quietcorpus.pipelines.schema.loading import load_spec

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = [
    pytest.param(block, id=f"{path.stem}-{number}")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for number, block in enumerate(re.findall(r"```yaml\n(.*?)```", path.read_text(), re.DOTALL))
    if "release:" in block and "mechanism:" in block
]


@pytest.mark.parametrize("block", BLOCKS)
def test_a_documented_release(block: str, tmp_path: Path) -> None:
    # Kills: an example that its own rules refuse.
    (tmp_path / "spec.yaml").write_text(block.replace("{{ interval }}", "2026-11-22"))
    assert load_spec(str(tmp_path / "spec.yaml")).release


def test_there_are_some() -> None:
    assert len(BLOCKS) >= 3
