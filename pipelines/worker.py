"""A local worker process: Beam's harness, which logs to its launcher alone."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time


def main() -> None:
    """Run the harness that the launcher's environment describes, for as long as it lives."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    logging.basicConfig(handlers=[logging.NullHandler()])
    from apache_beam.runners.worker import sdk_worker_main

    # Beam prints the traceback of every failed bundle, which the launcher is told of anyhow.
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        sdk_worker_main.main(sys.argv)
    finally:
        # An interrupted bundle may still be in compiled code, which the interpreter's own way
        # out would abort, with a message; the launcher knows already how the bundle ended.
        os._exit(0)


def _end_with(launcher: int) -> None:
    """Alone, a harness may wait for its launcher for minutes, with private text in hand."""
    while os.getppid() == launcher:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    main()
