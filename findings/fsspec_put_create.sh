#!/bin/bash
# fsspec 2026.9.0, Python 3.11: a local file system writes over a file that it was told to create only if there is none.
#
# Guess: `mode="create"` of fsspec means the same in all methods that write: FileExistsError if the target is there, as `pipe_file` and
#   `open(path, "xb")` raise it.
# Seen: by `LocalFileSystem`, `put_file`, `put` and `cp_file` with `mode="create"` replace the file and return as usual; the option is
#   swallowed. The memory file system refuses in `put_file` and `put`, and replaces in `cp_file`. `pipe_file` and "xb" refuse on both.
# Met: publishing a finished file under a name that must be new (a release, a claim, a ledger entry): tests on the memory file system pass,
#   and two runs on a shared disk overwrite each other.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q fsspec==2026.9.0
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import os

import fsspec

with open("made", "wb") as file:
    file.write(b"new")
made, target = os.path.abspath("made"), os.path.abspath("target")


def outcome(fs, method: str) -> str:
    """What becomes of a target that is there."""
    fs.pipe_file(target, b"old")
    if fs.protocol == "memory":
        fs.pipe_file(made, b"new")
    steps = {
        "pipe_file": lambda: fs.pipe_file(target, b"new", mode="create"),
        "open": lambda: fs.open(target, "xb").close(),
        "put_file": lambda: fs.put_file(made, target, mode="create"),
        "put": lambda: fs.put(made, target, mode="create"),
        "cp_file": lambda: fs.cp_file(made, target, mode="create"),
    }
    try:
        steps[method]()
    except FileExistsError:
        assert fs.cat_file(target) == b"old"
        return "refused"
    return "replaced" if fs.cat_file(target) == b"new" else "kept"


found = {}
for name in ("file", "memory"):
    fs = fsspec.filesystem(name)
    found[name] = {method: outcome(fs, method) for method in ("pipe_file", "open", "put_file", "put", "cp_file")}
    print(name, found[name])
refused, replaced = "refused", "replaced"
assert list(found["file"].values()) == [refused, refused, replaced, replaced, replaced]
assert list(found["memory"].values()) == [refused, refused, refused, refused, replaced]
PROGRAM
