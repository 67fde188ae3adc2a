"""A local worker process: Beam's harness, which logs to its launcher and leaves Ctrl-C to it."""

from __future__ import annotations

import logging
import signal
import sys


def main() -> None:
    """Run the harness that the launcher's environment describes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(handlers=[logging.NullHandler()])
    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main(sys.argv)


if __name__ == "__main__":
    main()
