"""A workspace: a folder with a corpus, a vocabulary and a spec, and the real command line on it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_client import CommandServer
from machine import MASTER_KEY
from ruamel.yaml import YAML
from small_specs import changed

COMMAND = str(Path(sys.executable).with_name("quietcorpus"))
TERMS = ["alpha", "beta", "delta", "gamma", "hello", "island", "quiet", "world"]
TEXTS = ["hello quiet world", "alpha beta gamma delta", "", "Quiet island, quiet world!"]


class Workspace:
    """Files under one folder; commands run with it as working, home and temporary folder."""

    def __init__(self, folder: Path, server: CommandServer) -> None:
        self.folder = folder
        self._server = server
        self.input = folder / "input"
        self.output = folder / "released" / "out"
        self.temporary = folder / "tmp"
        for path in (self.input, self.temporary, folder / "home"):
            path.mkdir()
        (folder / "vocabulary.txt").write_text("\n".join(TERMS) + "\n")
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(
                ("QUIETCORPUS_", "AWS_", "PYTEST_", "RAY_", "OTEL_", "OPENLINEAGE_")
            )
        } | {
            "HOME": str(folder / "home"),
            "TMPDIR": str(self.temporary),
            # torch makes this empty folder when imported, in the temporary one unless told.
            "TORCHINDUCTOR_CACHE_DIR": str(folder / "home" / "torch"),
            "QUIETCORPUS_MASTER_KEY": MASTER_KEY,
        }

    def json_lines(self, records: Iterable[Any], name: str = "corpus.jsonl") -> Path:
        """Write records: bytes are lines as they are, strings texts, anything else JSON."""
        lines = (
            record
            if isinstance(record, bytes)
            else json.dumps({"text": record} if isinstance(record, str) else record).encode()
            for record in records
        )
        path = self.input / name
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return path

    def parquet(
        self,
        columns: Mapping[str, Any],
        name: str = "corpus.parquet",
        row_group_size: int | None = None,
        **options: Any,
    ) -> Path:
        """Write a Parquet file of the given columns."""
        path = self.input / name
        pq.write_table(pa.table(dict(columns)), path, row_group_size=row_group_size, **options)
        return path

    def spec(self, changes: Mapping[str, Any] | None = None, name: str = "spec.yaml") -> Path:
        """Write a spec: a small bag of words, but for `changes` by dotted key (... removes)."""
        path = self.folder / name
        with path.open("w") as stream:
            YAML(typ="safe").dump(changed(changes or {}), stream)
        return path

    def command(self, *arguments: str) -> list[str]:
        """The command line as the operating system sees it."""
        return [COMMAND, *arguments]

    def run(
        self,
        *arguments: str,
        environment: Mapping[str, str | None] | None = None,
        fresh: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Run the command to its end in a process of its own, forked or (`fresh`) started."""
        named = self.environment | dict(environment or {})
        variables = {name: value for name, value in named.items() if value is not None}
        if not fresh:
            return self._server.run(arguments, self.folder, variables)
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def run_code(self, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python code, such as a changed command, in a forked process of its own."""
        return self._server.run(arguments, self.folder, self.environment, code)

    def release(
        self, changes: Mapping[str, Any] | None = None, *arguments: str
    ) -> subprocess.CompletedProcess[str]:
        """Write a spec and release it, which must succeed."""
        done = self.run("release", str(self.spec(changes)), *arguments)
        assert done.returncode == 0, done.stderr
        return done

    def release_here(self, changes: Mapping[str, Any], **given: Any) -> None:
        """The same in this process, which keeps what is slow to load, such as encoders."""
        from quietcorpus.pipelines.release.run import release
        from quietcorpus.pipelines.runners.engine import Engine
        from quietcorpus.pipelines.schema.loading import load_spec

        source = changes.get("input", {}).get("path", "input/corpus.jsonl")
        output = changes.get("output", "released/out")
        places = {"input.path": f"{self.folder}/{source}", "output": f"{self.folder}/{output}"}
        spec = load_spec(str(self.spec({**changes, **places})))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("QUIETCORPUS_MASTER_KEY", self.environment["QUIETCORPUS_MASTER_KEY"])
            release(spec, Engine([], 1), lambda: None, **given)

    def refused(
        self,
        changes: Mapping[str, Any] | None = None,
        *arguments: str,
        environment: Mapping[str, str | None] | None = None,
        fresh: bool = False,
        code: int = 2,
    ) -> str:
        """Write a spec and release it, which must be refused as bad input is; the message."""
        spec = str(self.spec(changes))
        return self.error_of(
            self.run("release", spec, *arguments, environment=environment, fresh=fresh), code
        )

    def error_of(self, done: subprocess.CompletedProcess[str], code: int = 2) -> str:
        """The one line of a refusal, once everything else about it has been checked."""
        lines = done.stderr.splitlines()
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr + done.stdout
        assert [line for line in lines if line.startswith("quietcorpus: error: ")] == lines[-1:]
        assert all(line.startswith(("INFO ", "WARNING ")) for line in lines[:-1]), done.stderr
        assert done.stdout == ""
        self.assert_nothing_left()
        return lines[-1].removeprefix("quietcorpus: error: ")

    def error_of_existing(self, done: subprocess.CompletedProcess[str]) -> str:
        """The difference between the release at the output and the one that was asked for."""
        assert done.returncode == 2, done.stderr
        found = re.search(r"holds another release \((.*)\); name another", done.stderr)
        assert found, done.stderr
        return found[1]

    def assert_nothing_left(self) -> None:
        """No release, no staging area, no temporary file."""
        assert not (self.output / "release.json").exists()
        assert self.leftovers() == []

    def leftovers(self) -> list[str]:
        """The files that a run may not leave behind, whether it succeeded or not."""
        beside = self.output.parent.glob(f".{self.output.name}*")
        return sorted(str(path) for path in [*beside, *self.temporary.iterdir()])

    def rows(self, output: Path | None = None) -> list[dict[str, Any]]:
        """The released rows, in the order of their ids."""
        files = sorted(((output or self.output) / "data").glob("*.parquet"))
        table = pa.concat_tables([pq.read_table(file) for file in files])
        rows: list[dict[str, Any]] = table.sort_by("id").to_pylist()
        return rows

    def card(self, output: Path | None = None) -> dict[str, Any]:
        """The content of `release.json`."""
        content: dict[str, Any] = json.loads(((output or self.output) / "release.json").read_text())
        return content
