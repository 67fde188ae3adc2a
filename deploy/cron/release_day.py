#!/usr/bin/env python3
"""One quietcorpus release of one day, for cron and whatever else starts a command at a time.

    release_day.py TEMPLATE [--day DAY] [--tries 4] [--pause SECONDS] [-- OPTIONS of the release]

TEMPLATE is a spec in which {{ interval }} stands for the day, yesterday in UTC unless it is given.
What a person is to know goes to standard output, one line each: a release that was not made, and an
account of the ledger of which 80 % or more is used. The log goes to standard error. The exit code
is that of `quietcorpus release`. What may pass (1, a signal, or an input that is not there yet, 4)
is tried again; bad input (2) and a cap that is reached (3) are not. The file that
QUIETCORPUS_LEDGER_HEAD_FILE names, if any, keeps the head of the ledger. It needs Python and a
`quietcorpus` on PATH; the two may have different environments.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

ALERT_SHARE = 0.8


def rendered(template: str, day: date) -> str:
    """Return the spec of a day, which must be in its release id and in its output."""
    text = Path(template).read_text(encoding="utf-8")
    for key in ("release", "output"):
        lines = [line for line in text.splitlines() if line.startswith(f"{key}:")]
        if not any("{{ interval }}" in line for line in lines):
            print(f"{template}: {key}: put {{{{ interval }}}} into it")
            sys.exit(2)
    return text.replace("{{ interval }}", day.isoformat())


class Command:
    """The command; a signal to this process ends it, and it is not tried again."""

    def __init__(self) -> None:
        self.stopped = False
        self._process: subprocess.Popen[bytes] | None = None
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)

    def _stop(self, number: int, _: object) -> None:
        self.stopped = True
        if self._process is None or self._process.poll() is not None:
            sys.exit(128 + number)
        if number == signal.SIGTERM:  # a terminal sends Ctrl-C to both
            self._process.terminate()

    def run(self, spec: str, options: list[str]) -> tuple[int, dict[str, Any]]:
        """Run it once; return its exit code, as a shell has it, and its summary."""
        with tempfile.TemporaryDirectory() as folder:  # of this user alone
            file, told = Path(folder, "spec.yaml"), Path(folder, "summary.json")
            file.write_text(spec, encoding="utf-8")
            command = ["quietcorpus", "release", str(file), "--if-exists=ok"]
            command += ["--summary", str(told), *options]
            self._process = subprocess.Popen(command, stdout=sys.stderr)  # noqa: S603
            code = self._process.wait()
            summary = told.read_text(encoding="utf-8") if told.exists() else "{}"
        print(summary, file=sys.stderr, flush=True)
        return (code if code >= 0 else 128 - code), json.loads(summary)


def main() -> int:
    """Release a day, and say what a person is to know."""
    parser = argparse.ArgumentParser()
    parser.add_argument("template")
    parser.add_argument("--day", type=date.fromisoformat)
    parser.add_argument("--tries", type=int, default=4)
    parser.add_argument("--pause", type=float, default=300.0, help="seconds before a second try")
    parser.add_argument("options", nargs="*", help="of quietcorpus release, after --")
    given = parser.parse_intermixed_args()  # a day may stand before the options of the release
    day = given.day or datetime.now(UTC).date() - timedelta(days=1)
    spec, command = rendered(given.template, day), Command()
    for number in range(given.tries):
        code, summary = command.run(spec, given.options)
        passes = code in (1, 4) or code > 128
        if not passes or command.stopped or number == given.tries - 1:
            break
        time.sleep(given.pause * 2**number)
    if code:
        why = summary.get("reason", "no summary")
        print(f"{given.template}, {day}: not released, exit code {code} ({why})")
    for one in summary.get("accounts", []):
        if one["share"] >= ALERT_SHARE:
            used = f"{one['share']:.0%} of the ledger's account {one['account']} is used"
            print(f"{given.template}, {day}: {used}")
    return code


if __name__ == "__main__":
    sys.exit(main())
