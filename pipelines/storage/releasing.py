"""The release of an output from a dead run that will not be repeated."""

from __future__ import annotations

import logging

from quietcorpus.transforms.errors import ClaimHeld, InputError, Unavailable

from . import claims, layout
from . import files as storage
from .claims import Claim
from .leases import Lease
from .places import is_local
from .staging import (
    abort_uploads_of,
    delete_abandoned,
    new_staging,
    stagings_of,
)

_LOGGER = logging.getLogger("quietcorpus.storage")


def release_claim(output: str, reason: str) -> list[str]:
    """Delete the claim on an output, and all that its run has left; return what lies there still.

    Raises ClaimHeld while the run is alive, and InputError if there is nothing to release, or a
    release. The log keeps the reason.
    """
    if not reason.strip():
        raise InputError("reason: is empty; say why the claim may be released")
    if is_local(output):
        _release_local(output)
        _LOGGER.info("deleted what runs that died have left beside %s: %s", output, reason)
        return []
    if storage.exists(f"{output}/{layout.CARD}"):
        raise _complete(output)
    found = claims.read(output)
    if found is None:
        raise InputError(f"output: no run has a claim on {output}; there is nothing to release")
    claim, version = found
    _refuse_alive(claim, claims.silence(output, version), output)
    _release(claim, version, output)
    _LOGGER.info("released the claim on %s, of release %s: %s", output, claim.run.release, reason)
    return storage.listed(f"{output}/**")


def _release_local(output: str) -> None:
    deleted, held = delete_abandoned(output)
    if held:
        raise ClaimHeld(
            f"output: {output} is being written by a run on this machine; stop it, or wait for it"
        )
    if not deleted:
        raise InputError(f"output: no run has left anything beside {output}; nothing to release")


def _refuse_alive(claim: Claim, silent: float, output: str) -> None:
    if silent < claims.STALE_SECONDS:
        patience = claims.STALE_SECONDS / 60
        raise ClaimHeld(
            f"output: the run of release {claim.run.release} that has the claim on {output} gave a "
            f"sign of life {max(silent, 0):.0f} seconds ago; stop it, or wait until it gave none "
            f"for {patience:.0f} minutes"
        )


def _release(claim: Claim, version: str, output: str) -> None:
    """Withdraw a claim, delete the files that its runs left, and then the claim."""
    own = (*claim.stagings, new_staging(output))  # makes it this command's, not its run's
    withdrawn = claims.rewrite(output, claim, version, withdrawn=True, stagings=own)
    if withdrawn is None:
        raise ClaimHeld(f"output: the claim on {output} has changed just now; see whose it is")
    # It is renewed meanwhile, so that no second command deletes beside this one.
    lease = Lease(output, withdrawn)
    try:
        if storage.exists(f"{output}/{layout.CARD}"):  # it was on its way
            lease.drop()
            raise _complete(output)
        there = [uri.removeprefix(f"{output}/") for uri in storage.listed(f"{output}/**")]
        storage.delete([path for path in there if claim.has_written(path)], output)
        for staging in stagings_of(output):
            storage.delete_folder(staging)
        abort_uploads_of(output)
        if not lease.drop():
            raise Unavailable(
                f"output: not all that lies beside {output} could be deleted; run again after "
                f"{claims.STALE_SECONDS / 60:.0f} minutes"
            )
    finally:
        lease.end()


def _complete(output: str) -> InputError:
    return InputError(
        f"output: {output} holds a release; `quietcorpus release --if-exists=ok` tidies up after it"
    )
