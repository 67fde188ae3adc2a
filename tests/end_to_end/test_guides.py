"""The lines of the README and of the guide to cards, run as they are written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from machine import ROOT

pytestmark = pytest.mark.slow

WORDS = [f"{a}{b}{c}" for a in "bdfg" for b in "aeiou" for c in "lmnr"]
DOCUMENTS = 120
ELSEWHERE = (
    "make ",
    "python3 -m venv",
    "pip install",
    "--runner=SparkRunner",
    "spec.yaml --workers",
)
"""Marks of the blocks of an installation and of clusters, which other tests run."""


def blocks(page: str, language: str) -> list[str]:
    """Return the blocks of a page that are in a language and can run here."""
    found = re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    return [block for block in found if not any(mark in block for mark in ELSEWHERE)]


def run(folder: Path, script: str) -> str:
    """Run a block in a folder, line after line, and return what it prints."""
    tools = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (script, done.stderr[-2_000:])
    return done.stdout


@pytest.fixture
def complaints(tmp_path: Path) -> Path:
    """A folder with a corpus and a list of words, by the names that the pages give them."""
    generator = np.random.default_rng()
    texts = [" ".join(generator.choice(WORDS, 40)) for _ in range(DOCUMENTS)]
    columns = {
        "complaint_id": [f"c{number}" for number in range(DOCUMENTS)],
        "narrative": texts,
        "product": [["loan", "card"][number % 2] for number in range(DOCUMENTS)],
    }
    (tmp_path / "corpus").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "corpus" / "a.parquet")
    (tmp_path / "vocabulary.txt").write_text("\n".join(WORDS) + "\n")
    return tmp_path


def test_the_readme(complaints: Path) -> None:
    # From a first spec to a report. Kills: a line that names another file or option than there is.
    init, release, check = blocks("README.md", "sh")
    run(complaints, init)
    (spec,) = blocks("README.md", "yaml")
    (complaints / "complaints.yaml").write_text(spec.replace("size: 1000", "size: 40"))
    run(complaints, release)
    assert "epsilon 2.5" in run(complaints, check)
    released = complaints / "releases" / "complaints-2026-11"
    (tree,) = re.findall(
        r"```\n(releases/.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL
    )
    for name in re.findall(r"── (\S+)", tree):
        assert any(released.glob(name)), name
    assert (complaints / "private" / "evaluation" / "evaluation.html").exists()


def test_the_guide_to_cards(complaints: Path) -> None:
    # Kills: a form that is no longer made, a signature that OpenSSL does not verify.
    (spec,) = blocks("README.md", "yaml")
    spec = re.sub(r"(?m)^output: .*", "output: released/complaints", spec)
    (complaints / "complaints.yaml").write_text(spec.replace("size: 1000", "size: 40"))
    forms, signed, verified = blocks("docs/guides/cards.md", "sh")
    run(complaints, signed)
    assert "Verified Successfully" in run(complaints, verified)
    run(complaints, forms.replace("> complaints.yaml", "> registry.yaml"))
    for name in ("registry.yaml", "croissant.json", "sp800-226.md", "datasheet.md"):
        assert (complaints / name).stat().st_size > 100
