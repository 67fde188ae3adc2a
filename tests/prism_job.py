"""Run a command on Beam's Prism, in a network that has the loopback interface alone.

    unshare --net --map-root-user python tests/prism_job.py PRISM PORT COMMAND...

Prism listens on every interface of its machine; `unshare` gives it a network of its own.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import subprocess
import sys
import time
from contextlib import suppress

_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41  # of ioctl's, for an interface (linux/sockios.h)


def main() -> int:
    """Start Prism, run the command, and end Prism; return the command's exit code."""
    prism, port, *command = sys.argv[1:]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh", b"lo", _UP_AND_RUNNING))
    with subprocess.Popen(
        [prism, f"-job_port={port}", "-serve_http=false"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            for _ in range(600):
                with suppress(OSError), socket.create_connection(("127.0.0.1", int(port))):
                    break
                time.sleep(0.1)
            return subprocess.run(command, check=False).returncode
        finally:
            server.kill()


if __name__ == "__main__":
    sys.exit(main())
