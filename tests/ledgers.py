"""Releases with a ledger in a workspace, and what the ledger then shows."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML

if TYPE_CHECKING:
    from tests.conftest import Workspace


PRECISION = {"definition": "limited-precision", "precision": 2, "epsilon": 10, "delta": 1e-6}


def opened(workspace: Workspace, *caps: Mapping[str, Any], place: str = "ledger") -> Path:
    """A ledger of the workspace's input; its folder."""
    terms = {"corpus": "input", "caps": [dict(cap) for cap in caps or (PRECISION,)]}
    with (workspace.folder / "caps.yaml").open("w") as stream:
        YAML(typ="safe").dump(terms, stream)
    done = workspace.run("ledger", "init", place, "caps.yaml")
    assert done.returncode == 0, done.stderr
    return workspace.folder / place


def spec(name: str, **changes: Any) -> dict[str, Any]:
    """A release of epsilon 4 with a ledger, at a place of its own."""
    own = {"release": name, "output": f"released/{name}", "ledger": "ledger"}
    return own | {key.replace("__", "."): value for key, value in changes.items()}


def shown(workspace: Workspace, place: str = "ledger") -> dict[str, Any]:
    """The first account, and the open reservations."""
    done = workspace.run("ledger", "show", place, "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    return {**content["accounts"][0], "open": [one["release"] for one in content["open"]]}


def used(workspace: Workspace, place: str = "ledger") -> float:
    epsilon: float = shown(workspace, place)["used"]["epsilon"]
    return epsilon


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


OWN_CODES = {"would pass the cap": 3, "no file matches": 4}
"""The exit codes of refusals that schedulers tell apart, by their words."""


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """The one line of a refusal."""
    code = next((own for said, own in OWN_CODES.items() if said in done.stderr), 2)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("quietcorpus: error: ")
    return last.removeprefix("quietcorpus: error: ")
