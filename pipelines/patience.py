"""How long the clients of object stores keep trying, in the launcher and in every worker."""

from __future__ import annotations

import os

# With the pauses between them, half a minute of connections that fail at once.
_ATTEMPTS = 10


def be_patient() -> None:
    """Have boto outlast a short outage, unless the environment says otherwise.

    Google's and Azure's clients retry for longer than that by themselves.
    """
    os.environ.setdefault("AWS_RETRY_MODE", "standard")
    os.environ.setdefault("AWS_MAX_ATTEMPTS", str(_ATTEMPTS))
