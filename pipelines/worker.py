"""A local worker process: Beam's harness, which logs to its launcher alone."""

from __future__ import annotations

import logging
import os
import sys


def main() -> None:
    """Run the harness that the launcher's environment describes."""
    logging.basicConfig(handlers=[logging.NullHandler()])
    from apache_beam.runners.worker import sdk_worker_main

    # Beam prints the traceback of every failed bundle, which the launcher is told of anyhow.
    with open(os.devnull, "w", encoding="utf-8") as sys.stderr:
        sdk_worker_main.main(sys.argv)


if __name__ == "__main__":
    main()
