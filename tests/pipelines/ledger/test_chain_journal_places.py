"""Places that hold no ledger, or refuse one: a line says what is wrong."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from journals import TERMS, assert_whole, record, request
from machine import ROOT

from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.transforms.errors import InputError


def test_an_empty_folder_and_none_hold_no_ledger(tmp_path: Path) -> None:
    # Kills: a ledger that is made by looking for it.
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match="holds no ledger; open one with"):
            Ledger.open(str(place))
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_ledger(tmp_path: Path) -> None:
    # Kills: an error of the operating system for a line that says what is wrong.
    place = tmp_path / "file"
    place.write_text("a file")
    with pytest.raises(InputError, match=f"^ledger: {place}"):
        Ledger.open(str(place))


@contextmanager
def as_nobody() -> Iterator[None]:
    """Modes do not bind root, who is somebody else meanwhile."""
    own = os.geteuid()
    if own == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(own)


def test_a_folder_that_is_not_writable_is_told(spoiled: Path) -> None:
    # Kills: an error of the operating system for a line that says what is wrong.
    ledger = assert_whole(spoiled)
    spoiled.chmod(0o555)
    with as_nobody(), pytest.raises(InputError, match="cannot be written to; check the perm"):
        ledger.reserve(request("d"))
    spoiled.chmod(0o755)
    assert_whole(spoiled)


@pytest.mark.parametrize("what", ["folder", "record"])
def test_a_ledger_that_is_not_readable_is_told(spoiled: Path, what: str) -> None:
    # Kills: an error of the operating system for a line that says what is wrong.
    path = spoiled if what == "folder" else record(spoiled, 3)
    mode = path.stat().st_mode
    path.chmod(0)
    try:
        with as_nobody(), pytest.raises(InputError, match=f"^ledger: {spoiled}"):
            Ledger.open(str(spoiled))
    finally:
        path.chmod(mode)


NO_LINKS = """
import ctypes, errno, platform, struct, sys
from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.caps import as_terms
from quietcorpus.transforms.errors import InputError

# A filter of system calls answers `link` and `linkat` as a file system without links does.
calls = {"x86_64": [86, 265], "aarch64": [37]}[platform.machine()]
steps = [(0x20, 0, 0, 0)]
steps += [(0x15, len(calls) - at, 0, call) for at, call in enumerate(calls)]
steps += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050000 | errno.EPERM)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
if libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0) != 0:
    print("no filter")
    sys.exit()
try:
    Ledger.init(sys.argv[1], as_terms(sys.argv[2]))
except InputError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "aarch64"), reason="the filter's numbers are not known"
)
def test_a_file_system_without_links_is_told(tmp_path: Path) -> None:
    # Kills: a record that is written without a link, or an error of the operating system.
    caps = tmp_path / "caps.yaml"
    caps.write_text("corpus: /corpus\ncaps: [{definition: sentence, epsilon: 1}]\n")
    place = tmp_path / "ledger"
    found = subprocess.run(
        [sys.executable, "-c", NO_LINKS, str(place), str(caps)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if found.stdout == "no filter\n":
        pytest.skip("filters of system calls are not allowed here")
    assert found.stdout == (
        f"ledger: the file system of {place} has no hard links, by which one writer excludes the "
        "others; name a place on another one, or in an object store\n"
    )
    assert list(place.iterdir()) == []


def test_a_file_system_that_refuses_is_told_in_one_line() -> None:
    # /proc refuses new files, root's too. Kills: an error of the operating system that is raised.
    place = "/proc/sys/quietcorpus"
    with pytest.raises(InputError, match=f"^ledger: {place} cannot be written to; check the path"):
        Ledger.init(place, TERMS)
