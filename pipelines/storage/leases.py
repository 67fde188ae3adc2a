"""A claim that its process holds: it is written anew as long as the process lives."""

from __future__ import annotations

import logging
import threading
from typing import Any

from quietcorpus.transforms.errors import ClaimHeld

from . import claims

_LOGGER = logging.getLogger("quietcorpus.storage")
BEAT_SECONDS = 60.0


class Lease:
    """A claim on an output, and the thread that renews it.

    Whether the claim still stands is always asked of the store, never of a clock: a process that
    was suspended may have lost it without noticing.
    """

    def __init__(self, output: str, claim: claims.Claim) -> None:
        self._output = output
        self._claim = claim
        self._ended = threading.Event()
        self._lock = threading.Lock()  # one writer of the claim at a time
        self._thread = threading.Thread(target=self._beat, name="claim", daemon=True)
        self._thread.start()

    @property
    def claim(self) -> claims.Claim:
        """Return the claim as it was last written."""
        return self._claim

    @property
    def stands(self) -> bool:
        """Return whether the claim still stands."""
        return claims.version_of(self._output, self._claim) is not None

    def require(self) -> None:
        """Raise ClaimHeld unless the claim still stands."""
        if not self.stands:
            raise self._lost()

    def change(self, **changes: Any) -> None:
        """Write the claim with these changes; raises ClaimHeld if it is lost."""
        if not self._rewrite(**changes):
            raise self._lost()

    def withdraw(self) -> bool:
        """Write a claim that no run takes over; False if this one is lost.

        Files that a run has published may be deleted under a withdrawn claim alone. Otherwise its
        repetition could publish the same files again while they are being deleted.
        """
        return self._rewrite(withdrawn=True)

    def drop(self) -> bool:
        """Delete the claim with its staging areas, if it still stands, and end its renewal.

        Returns whether it did.
        """
        with self._lock:  # or a renewal could come between the claim's reading and its deletion
            self._ended.set()
            return claims.drop(self._output, self._claim)

    def end(self) -> None:
        """End the renewal; the claim stays where it was not dropped."""
        self._ended.set()
        self._thread.join()

    def _lost(self) -> ClaimHeld:
        return ClaimHeld(
            f"output: the claim on {self._output} was taken over by another run of this release, "
            "or deleted; wait for the other run, or run again"
        )

    def _rewrite(self, **changes: Any) -> bool:
        with self._lock:
            if self._ended.is_set():
                return False
            changed = claims.rewrite(self._output, self._claim, **changes)
            self._claim = changed or self._claim
            return changed is not None

    def _beat(self) -> None:
        warned = False
        while not self._ended.wait(BEAT_SECONDS):
            try:
                if not self._rewrite():
                    if not self._ended.is_set():
                        _LOGGER.warning(
                            "the claim on %s is lost: nothing will be published", self._output
                        )
                    return
                warned = False
            except Exception:  # every object store's client has its own
                if not warned:
                    _LOGGER.warning(
                        "the claim on %s could not be renewed; after %.0f minutes without, another "
                        "run may take it over",
                        self._output,
                        claims.STALE_SECONDS / 60,
                    )
                warned = True
