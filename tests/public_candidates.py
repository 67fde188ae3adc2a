"""A few candidates, made of real text by the real command."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING

from scripts import run_script

if TYPE_CHECKING:
    from conftest import Workspace

PUBLIC_TEXTS = 180  # of the Lee corpus, from its beginning: what candidates are made of

# The command, which takes Ray however few sentences there are.
WITH_RAY = (
    "from quietcorpus.pipelines.prepare import encoding; encoding._FEW = 0; "
    "from quietcorpus.cli.main import main; main()"
)


def build_candidates(
    workspace: Workspace,
    output: str,
    texts: list[str],
    *,
    with_ray: bool = False,
    **options: object,
) -> subprocess.CompletedProcess[str]:
    """Make 40 candidates; documents of seven sentences give their first five.

    So few need no Ray, unless it is asked for. Options are the command's, with `_` for `-`.
    """
    numbers = [f"lee-{number}" for number in range(len(texts))]
    workspace.parquet({"text": texts, "number": numbers}, "public.parquet")
    whole = {
        "provenance": "public",
        "candidates": 40,
        "clusters": 4,
        "projections": 20,
        "least_sentences": 7,
        "most_sentences": 5,
    } | options
    given = [f"--{name.replace('_', '-')}={value}" for name, value in whole.items()]
    command = ("index", "build-candidates", "input/public.parquet", "--output", output, *given)
    if not with_ray:
        return workspace.run(*command)
    folder = tempfile.mkdtemp(prefix="qcr", dir=tempfile.gettempdir())  # Ray's sockets' are short
    workspace.environment["RAY_TMPDIR"] = folder
    try:
        done = run_script(workspace, WITH_RAY, *command)
        # Where Ray is told to be silent, it says that it was told.
        done.stderr = re.sub(r"(?m)^\[.* logging\.cc:\d+: Set ray log level .*\n", "", done.stderr)
        return done
    finally:
        shutil.rmtree(folder, ignore_errors=True)
