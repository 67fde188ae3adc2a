"""A command that writes texts anew: given released rows as JSON Lines, it gives back as many."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

import orjson

from quietcorpus.transforms.errors import InputError, StageError, path_shown

from ..environment.credentials import refuse_in_options, without_secrets

MOST_BYTES = 1 << 30
"""The most that a command may write: texts are in memory at once."""


@dataclass(frozen=True)
class Program:
    """A command, found on this machine.

    Attributes:
        arguments: the program's path, and its arguments.
        minutes: how long it may run.
    """

    arguments: tuple[str, ...]
    minutes: float

    @classmethod
    def find(cls, command: Sequence[str], minutes: float) -> Program:
        """Find the program; raises InputError if there is none, or an argument holds a secret."""
        if not command:
            raise InputError("command: is empty; name a program")
        refuse_in_options(command)
        found = shutil.which(command[0])
        if found is None:
            raise InputError(
                f"command: there is no program {path_shown(command[0])}; check name and PATH"
            )
        return cls((found, *command[1:]), minutes)

    def vary(self, rows: Sequence[dict[str, Any]]) -> list[str]:
        """Give the rows to the program, and return the text of each, as it wrote it.

        The program has this process's environment without secrets, and its standard error. What
        it starts ends with it.

        Args:
            rows: of `id`, `text` and any other keys; one JSON object a line is what it reads.

        Raises:
            InputError: it cannot be run, fails, or does not write one text for each row.
            StageError: it takes longer than it may.
        """
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as written:
            given.writelines(orjson.dumps(row) + b"\n" for row in rows)
            given.seek(0)
            self._run(given, written)
            size = written.seek(0, os.SEEK_END)
            if size > MOST_BYTES:
                raise InputError(
                    f"command: wrote {size:,} bytes, and more than {MOST_BYTES:,} cannot be worked "
                    "with; vary fewer or shorter texts"
                )
            written.seek(0)
            return list(_texts(written, rows))

    def _run(self, given: IO[bytes], written: IO[bytes]) -> None:
        try:
            process = subprocess.Popen(  # noqa: S603
                self.arguments,
                stdin=given,
                stdout=written,
                env=without_secrets(os.environ),
                start_new_session=True,
            )
        except OSError as error:
            raise InputError(f"command: {self.name} cannot be run ({error.strerror})") from None
        try:
            code = process.wait(self.minutes * 60)
        except subprocess.TimeoutExpired:
            raise StageError(
                f"command: {self.name} had not ended after {self.minutes:g} minutes; give it more "
                "(`minutes`), or vary fewer texts"
            ) from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if code:
            how = f"exit code {code}" if code > 0 else f"signal {-code}"
            raise InputError(f"command: {self.name} failed ({how}); see its own messages")

    @property
    def name(self) -> str:
        """Return the program's name, for people."""
        return os.path.basename(self.arguments[0])


def _texts(written: Iterable[bytes], rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the texts; raises InputError at the first line that is not that of its row."""
    lines = iter(written)
    for number, row in enumerate(rows, 1):
        line = next(lines, None)
        if line is None:
            raise InputError(
                f"command: wrote {number - 1:,} lines for {len(rows):,} rows; it must write one "
                "for each"
            )
        yield _text(line, number, row["id"])
    if next(lines, None) is not None:
        raise InputError(f"command: wrote more than {len(rows):,} lines, one for each row")


def _text(line: bytes, number: int, row: object) -> str:
    try:
        found = orjson.loads(line)
    except ValueError:
        found = None
    keys = {"id", "text"}
    if not (isinstance(found, dict) and found.keys() == keys and isinstance(found["text"], str)):
        raise InputError(
            f'command: line {number:,} is not {{"id": ..., "text": "..."}}, in JSON and in UTF-8'
        )
    if found["id"] != row:
        raise InputError(
            f"command: line {number:,} has another id than row {number:,}; keep the rows in order"
        )
    text: str = found["text"]
    return text
