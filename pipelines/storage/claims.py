"""Claims on outputs in an object store: which run may publish there, and what it must tidy up.

A claim is an object beside the output that only one run can create. It names the run by its
identity, a keyed digest of all that its bytes depend on. So a run that a crash cut short can be
taken over by its own repetition, and by no other run.
"""

from __future__ import annotations

import posixpath
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

import orjson

from quietcorpus.pipelines.storage import stores
from quietcorpus.pipelines.storage.files import delete_folder
from quietcorpus.pipelines.storage.staging import is_staging, new_staging
from quietcorpus.transforms.errors import ClaimHeld, InputError, Unavailable

_ATTEMPTS = 16
WITHDRAWN = "withdrawn"
"""The `run` of a claim whose files are being deleted; no run's identity equals it."""


@dataclass(frozen=True)
class Claim:
    """The content of a claim.

    Attributes:
        release: the release's id, for people.
        run: the run's identity; equal ones make equal bytes.
        created: when the run first began, which its card repeats.
        stagings: the staging areas of this run and of those it took over; the last is its own, and
            makes the claim differ from every other.
    """

    release: str
    run: str
    created: str
    stagings: tuple[str, ...]

    @property
    def content(self) -> bytes:
        """Return the content of the object."""
        return orjson.dumps(asdict(self))


def claim_of(output: str) -> str:
    """Return the URI of an output's claim."""
    folder, name = posixpath.split(output)
    return f"{folder}/.{name}.claim"


def read(output: str) -> tuple[Claim, str] | None:
    """Read an output's claim and its version, or None; raises InputError if it cannot be read."""
    uri = claim_of(output)
    found = stores.read(uri)
    if found is None:
        return None
    try:
        content = orjson.loads(found[0])
        claim = Claim(**content | {"stagings": tuple(content["stagings"])})
        # They will be deleted, so a forged claim must not name anything else.
        own = [is_staging(staging, output) for staging in claim.stagings]
        if not own or not all(own):
            raise ValueError
        return claim, found[1]
    except (ValueError, TypeError, KeyError):
        raise InputError(
            f"output: {uri} is not a claim that this version knows; delete it"
        ) from None


def take(output: str, release: str, run: str) -> Claim:
    """Claim an output, or take over the claim of the same run; raises ClaimHeld otherwise."""
    uri = claim_of(output)
    staging = new_staging(output)
    for _ in range(_ATTEMPTS):
        found = read(output)
        if found is None:
            claim = Claim(release, run, datetime.now(UTC).isoformat(timespec="seconds"), (staging,))
            taken = stores.create_exclusively(uri, claim.content)
        else:
            before, version = found
            _refuse_other(before, run, output)
            claim = replace(before, stagings=(*before.stagings, staging))
            taken = stores.replace(uri, claim.content, version)
        if taken:
            return claim
    raise Unavailable(f"output: {uri} changes again and again; run again once other runs are done")


def _refuse_other(claim: Claim, run: str, output: str) -> None:
    if claim.run != run:
        raise ClaimHeld(
            f"output: {output} is being written by another run, of release {claim.release}; wait "
            f"for it, or if it died, delete its claim {claim_of(output)}"
        )


def version_of(output: str, claim: Claim) -> str | None:
    """Return the version of the object if this claim still stands in it, or None if it is lost."""
    found = read(output)
    return found[1] if found is not None and found[0] == claim else None


def withdraw(output: str, claim: Claim) -> Claim | None:
    """Replace this claim by one that no run takes over; None if this one is lost.

    Files that a run has published may be deleted under a withdrawn claim alone. Otherwise its
    repetition could publish the same files again while they are being deleted.
    """
    version = version_of(output, claim)
    if version is None:
        return None
    withdrawn = replace(claim, run=WITHDRAWN)
    done = stores.replace(claim_of(output), withdrawn.content, version)
    return withdrawn if done else None


def drop(output: str, claim: Claim) -> None:
    """Delete the staging areas of a claim, and then the claim itself, if it still stands."""
    version = version_of(output, claim)
    if version is None:
        delete_folder(claim.stagings[-1])
    elif not [staging for staging in claim.stagings if not delete_folder(staging)]:
        stores.delete(claim_of(output), version)
