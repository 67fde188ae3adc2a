"""An Airflow with a database, a corpus of days and a `quietcorpus` that notes its calls."""

from __future__ import annotations

import shlex
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
from machine import BUILD, ROOT

if TYPE_CHECKING:
    from tests.conftest import Workspace


DAGS = ROOT / "deploy" / "airflow"
AIRFLOW = BUILD / "airflow" / "bin" / "airflow"
CANARY = "zanzibarcanary"
PATIENCE_SECONDS = 300


class Airflow:
    """An AIRFLOW_HOME, and a `quietcorpus` that notes its calls and fails when it is told to."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.home = workspace.folder / "airflow"
        self.key = workspace.environment["QUIETCORPUS_MASTER_KEY"]
        self.calls = workspace.folder / "calls"
        self.failure = workspace.folder / "fail"
        wrapper = workspace.folder / "wrapper.sh"
        wrapper.write_text(
            f"""#!/bin/sh
echo "$(stat -c %a "$2") $*" >> {shlex.quote(str(self.calls))}
if code=$(cat {shlex.quote(str(self.failure))}); then
  rm {shlex.quote(str(self.failure))}
  exit $code
fi 2>/dev/null
exec {shlex.quote(*workspace.command())} "$@"
"""
        )
        wrapper.chmod(0o755)
        inherited = workspace.environment.items()
        self.environment = {k: v for k, v in inherited if not k.startswith("AIRFLOW")} | {
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "1",
            "AIRFLOW_VAR_QUIETCORPUS_TEMPLATE": str(workspace.folder / "template.yaml"),
            "AIRFLOW_VAR_QUIETCORPUS_COMMAND": str(wrapper),
            "QUIETCORPUS_START_DATE": "2024-01-01",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def start(self, *arguments: str, **variables: str | None) -> subprocess.Popen[str]:
        """Start Airflow's command line."""
        named = self.environment | variables
        return subprocess.Popen(
            [AIRFLOW, *arguments],
            cwd=self.workspace.folder,
            env={name: value for name, value in named.items() if value is not None},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def end(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        """Wait for a command; what it says and keeps holds neither the key nor the corpus."""
        try:
            said, _ = process.communicate(timeout=PATIENCE_SECONDS)
        except BaseException:
            kill(process)
            raise
        texts = [said.encode(), *(p.read_bytes() for p in self.home.rglob("*") if p.is_file())]
        for text in texts:
            assert self.key.encode() not in text
            assert CANARY.encode() not in text
        assert not list(self.workspace.temporary.glob("*.yaml"))
        return process.returncode, said

    def run(self, *arguments: str, **variables: str | None) -> str:
        """Run a command that must succeed; what it says."""
        code, said = self.end(self.start(*arguments, **variables))
        assert code == 0, said
        return said

    def test(self, day: str, **variables: str | None) -> tuple[int, str]:
        """`airflow dags test` of the day's interval, and what it says."""
        return self.end(self.start(*dags_test(day), **variables))

    def commands(self) -> list[str]:
        """The calls of the `quietcorpus` command since this was last asked."""
        calls = self.calls.read_text().splitlines() if self.calls.exists() else []
        self.calls.unlink(missing_ok=True)
        return calls


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a command and all that it has started."""
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                child.kill()
    process.kill()
    process.wait()


def dags_test(day: str) -> list[str]:
    """A run by hand is of the last interval that has ended, so it is given the day after."""
    following = f"{day[:-1]}{int(day[-1]) + 1}"
    return ["dags", "test", "quietcorpus_release", following]
