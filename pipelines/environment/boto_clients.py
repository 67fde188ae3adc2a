"""boto's clients of S3, of which a process makes one for each setting."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from quietcorpus.transforms.temporary import Temporary

_CONNECTIONS = 64  # boto keeps 10, and logs a warning for each that it drops


class _Clients:
    """A stand-in for `boto3` whose sessions share their clients."""

    def __init__(self) -> None:
        self._made: dict[object, Any] = {}
        self._lock = threading.Lock()
        self.session = SimpleNamespace(Session=lambda: self)

    def client(self, **settings: Any) -> Any:
        """Return the client for these settings, which is made once in a process."""
        import boto3
        from botocore.config import Config

        # A fork has its own: its parent's connections are no other process's to use.
        key = os.getpid(), *sorted(settings.items())
        with self._lock:
            if key not in self._made:
                config = Config(max_pool_connections=_CONNECTIONS)
                self._made[key] = boto3.session.Session().client(config=config, **settings)
            return self._made[key]


def share_clients() -> Callable[[], None]:
    """Have Beam's file system share its clients of S3; return the undoing.

    Beam makes a session and a client for each file that it opens, and for each other request
    (`S3FileSystem._path_open`, apache_beam/io/aws/s3filesystem.py; `Client.__init__`,
    apache_beam/io/aws/clients/s3/boto3_client.py). That takes a twentieth of a second of a core, a
    quarter with a session's reads, and a separate connection.
    """
    try:
        from apache_beam.io.aws.clients.s3 import boto3_client
    except ImportError:
        return lambda: None
    usual = boto3_client.boto3
    if usual is None:  # boto is not installed
        return lambda: None
    boto3_client.boto3 = _Clients()

    def undo() -> None:
        boto3_client.boto3 = usual

    return undo


clients_shared = Temporary(share_clients)
"""Have Beam's file system share its clients of S3 within the context."""
