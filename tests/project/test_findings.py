"""The scripts of `findings/`: what their heads state, and that their packages are pinned.

They install packages and run for minutes, so `make findings` runs them, and no test does.
"""

from __future__ import annotations

import re

import pytest
from machine import ROOT

SCRIPTS = {path.name: path.read_text("utf-8") for path in sorted((ROOT / "findings").glob("*.sh"))}
MOST_LINES = 80


def faults(script: str) -> list[str]:
    """What a script lacks of the form of a finding."""
    lines = script.splitlines()
    end = next(row for row, line in enumerate(lines) if not line.startswith("#"))
    head = "\n".join(lines[:end])
    found = [
        f"the head has no {name}"
        for name in ("Guess", "Seen", "Met")
        if f"\n# {name}: " not in head
    ]
    if len(lines) >= MOST_LINES:
        found.append(f"it has {len(lines)} lines; most: {MOST_LINES - 1}")
    if "set -euo pipefail\n" not in script or "trap 'rm -rf \"$work\"' EXIT\n" not in script:
        found.append("it does not stop at the first error, or leaves its folder behind")
    if "quietcorpus" in script:
        found.append("it names the product")
    installed = re.findall(r"/bin/pip\" install -q (.*)", script)
    packages = [name.strip('"') for line in installed for name in line.split()]
    loose = [name for name in packages if not re.search(r"==|<", name)]
    if loose or not packages:
        found.append(f"packages without a version: {', '.join(loose) or 'all'}")
    return found


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_finding_states_guess_and_behaviour_of_pinned_packages(name: str) -> None:
    # Kills: a script that holds at no version, has no guess, or stays in the temporary folder.
    assert faults(SCRIPTS[name]) == []


def test_there_are_many() -> None:
    assert len(SCRIPTS) >= 30


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("# Guess: ", "# "), "the head has no Guess"),
        (("==", ">="), "packages without a version"),
        (("trap", "true"), "it does not stop at the first error, or leaves its folder behind"),
        (("import", "import quietcorpus\nimport"), "it names the product"),
        (("import", "\n" * 80 + "import"), "it has "),
    ],
)
def test_a_fault_of_the_form_is_found(change: tuple[str, str], fault: str) -> None:
    script = SCRIPTS["hnsw_duplicates.sh"].replace(*change)
    assert [each[: len(fault)] for each in faults(script)] == [fault]
