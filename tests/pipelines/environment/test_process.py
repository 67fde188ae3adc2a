"""gRPC's threads do not abort processes that are forked from the launcher."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from quietcorpus.pipelines.environment.process import has_avx512

CODE = """
import os, sys
from quietcorpus.cli.main import main
assert "grpc" not in sys.modules
main.callback()
assert os.environ["GRPC_ENABLE_FORK_SUPPORT"] == "false"
"""


def test_grpc_is_told_before_it_is_imported() -> None:
    # Kills: an import at the top of the command line, after which gRPC no longer listens.
    kept = {k: v for k, v in os.environ.items() if k != "GRPC_ENABLE_FORK_SUPPORT"}
    subprocess.run([sys.executable, "-c", CODE], env=kept, check=True)


# OpenBLAS is told of AVX-512 before NumPy loads it.


INTEL = "vendor_id : GenuineIntel\nflags : fpu avx512f avx512dq avx512cd avx512bw avx512vl\n"


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        (INTEL, True),
        (INTEL.replace("GenuineIntel", "AuthenticAMD"), False),
        (INTEL.replace("avx512vl", "avx512vnni"), False),
        ("", False),
    ],
)
def test_only_what_openblas_can_use_counts(description: str, expected: bool) -> None:
    assert has_avx512(description) is expected


def test_the_command_line_says_so_before_numpy_is_there() -> None:
    # Kills: a command module that imports NumPy first, for which the variable comes too late.
    program = "import sys, quietcorpus.cli.main; print('numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
