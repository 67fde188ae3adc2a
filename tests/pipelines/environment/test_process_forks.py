"""gRPC's threads do not abort processes that are forked from the launcher."""

from __future__ import annotations

import os
import subprocess
import sys

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
