"""Processes that are forked from one that uses gRPC, as Ray's are from one that has run Beam."""

from __future__ import annotations

import os


def forget_grpc() -> None:
    """Have gRPC's threads stay behind in a fork; to be called before gRPC is imported.

    Otherwise they begin anew there, and one in a hundred processes, measured, is aborted by them
    before it becomes another program.
    """
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
