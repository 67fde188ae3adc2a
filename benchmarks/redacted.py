"""Texts without the names that a recogniser found, which is what many do in place of a mechanism.

Redaction promises nothing. What attackers find in such texts says `evaluate --reference-text`. The
recogniser is compromise, an npm package with rules and lists of its own, which fetches nothing when
it runs.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).with_name("redact.mjs")


def redacted(texts: list[str], packages: Path) -> list[str]:
    """Return texts without the names of people, places and organisations.

    `packages` is the folder in which npm has installed compromise.
    """
    run = subprocess.run(
        ["node", SCRIPT],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        cwd=packages,
        check=True,
    )
    found: list[str] = json.loads(run.stdout)
    return found
