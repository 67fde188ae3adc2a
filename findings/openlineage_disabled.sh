#!/bin/bash
# openlineage-python 1.54.0, Python 3.11: OPENLINEAGE_DISABLED=1 disables nothing.
#
# Guess: a variable called OPENLINEAGE_DISABLED disables the client if it is set to 1, yes or true, in whatever case; an unknown value is
#   reported.
# Seen: only "true" (in any case) counts. With 1 or yes, events are sent as without the variable, and nothing is said.
# Met: lineage that must not leave a private pipeline: names of files, columns and owners go to the server although the operator switched it
#   off. Check with one event to a file.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q openlineage-python==1.54.0
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import os
import uuid

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
from openlineage.client.transport.file import FileConfig, FileTransport


def written(value: str) -> bool:
    """Whether an event reaches a file under such a value of the variable."""
    os.environ["OPENLINEAGE_DISABLED"] = value
    path = f"events-{value}.json"
    client = OpenLineageClient(transport=FileTransport(FileConfig(log_file_path=path, append=True)))
    event = RunEvent(
        eventType=RunState.START,
        eventTime="2026-11-30T00:00:00Z",
        run=Run(runId=str(uuid.UUID(int=1))),
        job=Job("corpus", "release"),
        producer="https://example.org",
    )
    client.emit(event)
    return os.path.exists(path)


found = {value: written(value) for value in ("true", "True", "1", "yes", "on", "false")}
print("written:", found)
assert found == {"true": False, "True": False, "1": True, "yes": True, "on": True, "false": True}
PROGRAM
