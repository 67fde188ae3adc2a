"""The collector rests while libraries are imported, and takes nothing apart at the end."""

from __future__ import annotations

import gc
import subprocess
import sys
from contextlib import suppress

import pytest

from quietcorpus.pipelines.environment.process import uncollected

# Prints a line if its end takes an object apart that holds itself.
ENDS = """
from quietcorpus.pipelines.environment import process
class Loud:
    def __del__(self):
        print("taken apart", flush=True)
one = Loud()
one.itself = one
"""


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_as_it_was(*, enabled: bool) -> None:
    """Kills: a caller's process whose garbage is never collected again, or against its will."""
    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with suppress(ValueError), uncollected():
            assert not gc.isenabled()
            raise ValueError("lost")
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_the_end_of_a_command() -> None:
    """Kills: a command that takes half a second to end; one whose libraries complain of leaks."""
    kept = "process.keep_all()\n"
    complaining = f"{kept}import sys; sys.modules['triton'] = None"
    said = {
        end: subprocess.check_output([sys.executable, "-P", "-c", ENDS + end], text=True)
        for end in ("", kept, complaining)
    }
    assert said == {"": "taken apart\n", kept: "", complaining: "taken apart\n"}


# Prints how many objects the collector passes over, after imports of a command and of others.
KEPT = """
import gc
from quietcorpus.pipelines.environment import process
with process.uncollected():
    import json
print(gc.get_freeze_count())
process.keep_all()
with process.uncollected():
    import decimal
print(gc.get_freeze_count() > 1000)
"""


def test_what_a_command_has_imported() -> None:
    """Kills: a collector that walks through all libraries; one that keeps others' garbage."""
    said = subprocess.check_output([sys.executable, "-P", "-c", KEPT], text=True)
    assert said == "0\nTrue\n"
