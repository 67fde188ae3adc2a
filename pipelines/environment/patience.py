"""The patience of object stores' clients with outages, in the launcher and in every worker."""

from __future__ import annotations

import os
from collections.abc import Callable

from quietcorpus.transforms.temporary import Temporary

# With their pauses, these attempts last half a minute if connections fail at once.
_VARIABLES = {"AWS_RETRY_MODE": "standard", "AWS_MAX_ATTEMPTS": "10"}


def be_patient() -> None:
    """Make boto outlast a short outage, unless the environment says otherwise.

    Google's and Azure's clients retry for longer by default.
    """
    for name, value in _VARIABLES.items():
        os.environ.setdefault(name, value)


def _change() -> Callable[[], None]:
    own = [name for name in _VARIABLES if name not in os.environ]
    be_patient()

    def undo() -> None:
        for name in own:
            os.environ.pop(name, None)

    return undo


patience = Temporary(_change)
"""Be patient within the context, and restore the environment afterwards."""
