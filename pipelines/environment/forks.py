"""Forks of a process that uses gRPC, as Ray's processes are of one that has run Beam."""

from __future__ import annotations

import os


def forget_grpc() -> None:
    """Keep gRPC's threads out of forks; must be called before gRPC is imported.

    Otherwise they start anew in a fork, and abort one process in a hundred (measured) before it
    becomes another program.
    """
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
