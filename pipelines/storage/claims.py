"""Claims on outputs in an object store, and the leases that keep them fresh.

Claims on outputs in an object store: which run may publish there, and what it must tidy up.

A claim is an object beside the output that only one run can create, and that the run writes anew
while it is alive. It names the run by its identity, a keyed digest of all that its bytes depend on.
So a run that a crash cut short can be taken over by its own repetition at once. Another version of
the software may take over what was asked for in the same words, once no sign of life has come for
as long as `STALE_SECONDS`: always before anything was published, and afterwards by the same law.
"""

from __future__ import annotations

import logging
import posixpath
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

import orjson

from quietcorpus.transforms.errors import ClaimHeld, InputError, Unavailable

from . import stores
from .files import delete_folder
from .staging import is_staging, new_staging

_LOGGER = logging.getLogger("quietcorpus.storage")

STALE_SECONDS = 15 * 60.0
"""A run is taken for dead after so long without a sign of life, by the store's clock."""
MASTER_KEY = "the master key"
"""The name, in a run's request, of the digest that identifies its master key."""
_VERSION = 2
_ATTEMPTS = 16
_WITHDRAWN = "withdrawn"  # the `run` of a claim of version 1 that is withdrawn
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}")  # it is shown in one line
_PATH = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)*")
_SHARD = re.compile(r"(data/part-)\d+(-of-\d+\.parquet)")
_SHARDS = re.compile(r"data/part-\*-of-\d+\.parquet")


@dataclass(frozen=True)
class Run:
    """A run, as a claim identifies it. The digests are keyed.

    Attributes:
        release: the release's id, for people.
        identity: a digest of all that its bytes depend on; equal ones make equal bytes.
        law: a digest of all that decides what is drawn for a document.
        asked: the digests of what it was asked for, each by its name for people.
        software: the version of the software, for people.
    """

    release: str
    identity: str
    law: str = ""
    asked: Mapping[str, str] = field(default_factory=dict)
    software: str = ""

    def differences(self, other: Run) -> list[str]:
        """Return what another run differs in, by its name for people; [] if it is the same."""
        asked = self.asked if other.asked else {}  # a claim of version 1 does not say
        found = [name for name, digest in asked.items() if other.asked.get(name) != digest]
        if MASTER_KEY in found:  # by which all of them are keyed
            return [MASTER_KEY]
        if not found and self.identity != other.identity:
            there = other.software or "an earlier version"
            same = there == self.software
            here = "of other files or libraries" if same else f"{self.software} here"
            return [f"the software ({there} there, {here})"]
        return found


@dataclass(frozen=True)
class Claim:
    """The content of a claim.

    Attributes:
        run: the run that has it.
        created: when the run first began, which its card repeats.
        stagings: the staging areas of this run and of those it took over; the last is its own, and
            makes the claim differ from every other.
        published: the files at the output that this run, or one that it took over, may have
            written; `*` stands for the number of a shard.
        withdrawn: whether these files are being deleted; no run takes such a claim over.
        beats: how often it was written anew.
        version: of this form; version 1 says neither what was asked for nor what was published,
            and is not written anew.
    """

    run: Run
    created: str
    stagings: tuple[str, ...]
    published: tuple[str, ...] = ()
    withdrawn: bool = False
    beats: int = 0
    version: int = _VERSION

    @property
    def content(self) -> bytes:
        """Return the content of the object."""
        return orjson.dumps(asdict(self))

    @classmethod
    def parse(cls, content: bytes, output: str) -> Claim:
        """Parse a claim on an output; raises ValueError, TypeError or KeyError for another thing.

        What it names will be deleted, so a forged claim must not name anything else.
        """
        fields: dict[str, Any] = orjson.loads(content)
        if "version" not in fields:
            run = Run(fields.pop("release"), fields.pop("run"))
            fields |= {"run": run, "withdrawn": run.identity == _WITHDRAWN, "version": 1}
        else:
            fields["run"] = Run(**fields["run"])
            fields["published"] = tuple(fields["published"])
        claim = cls(**fields | {"stagings": tuple(fields["stagings"])})
        own = [is_staging(staging, output) for staging in claim.stagings]
        files = [_PATH.fullmatch(path) or _SHARDS.fullmatch(path) for path in claim.published]
        named = [_NAME.fullmatch(claim.run.release), _NAME.fullmatch(claim.run.software or "0")]
        known = claim.version in (1, _VERSION) and isinstance(claim.run.asked, dict)
        if not known or not own or not all([*own, *files, *named, claim.beats + 1]):
            raise ValueError
        return claim

    @property
    def holder(self) -> tuple[object, ...]:
        """Return what a claim keeps while its run writes it anew, and no other claim has."""
        return self.stagings, self.withdrawn

    def is_equal(self, run: Run) -> bool:
        """Return whether a run would make the bytes of this claim's, and may do that at once."""
        known = self.version > 1 and not self.withdrawn
        return known and self.run.identity == run.identity

    def has_written(self, path: str) -> bool:
        """Return whether a file at the output may be of this claim's runs."""
        return any(fnmatchcase(path, pattern) for pattern in self.published)


def patterns(paths: Sequence[str]) -> tuple[str, ...]:
    """Return files at an output as a claim names them."""
    return tuple(sorted({_SHARD.sub(r"\1*\2", path) for path in paths}))


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
        return Claim.parse(found[0], output), found[1]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError(
            f"output: {uri} is not a claim that this version knows; free the output with the "
            "version that wrote it, or delete it"
        ) from None


def take(output: str, run: Run) -> Claim:
    """Claim an output, or take over a claim that the run may; raises ClaimHeld otherwise."""
    uri = claim_of(output)
    staging = new_staging(output)
    for _ in range(_ATTEMPTS):
        found = read(output)
        if found is None:
            claim = Claim(run, datetime.now(UTC).isoformat(timespec="seconds"), (staging,))
            taken = stores.create_exclusively(uri, claim.content)
        else:
            before, version = found
            if not before.is_equal(run):
                _refuse_other(before, silence(output, version), run, output)
            claim = replace(before, run=run, stagings=(*before.stagings, staging))
            taken = stores.replace(uri, claim.content, version)
        if taken:
            return claim
    raise Unavailable(f"output: {uri} changes again and again; run again once other runs are done")


def silence(output: str, version: str) -> float:
    """Return the seconds since this version of a claim was written; 0 if it was changed since."""
    found = stores.age(claim_of(output))
    return found[1] if found is not None and found[0] == version else 0.0


def _refuse_other(claim: Claim, silent: float, run: Run, output: str) -> None:
    """Raise ClaimHeld unless a run may take over this claim of another."""
    other = run.differences(claim.run)
    asked_the_same = bool(claim.run.asked) and claim.run.asked == run.asked
    lawful = not claim.published or claim.run.law == run.law
    may_wait = asked_the_same and lawful and not claim.withdrawn
    if may_wait and claim.version > 1 and silent >= STALE_SECONDS:
        return
    differs = f", which differs in {' and '.join(other)}" if other else ""
    raise ClaimHeld(
        f"output: {output} is being written by another run, of release {claim.run.release}"
        f"{differs}; {_remedy(claim, silent, output, may_wait=may_wait)}"
    )


def _remedy(claim: Claim, silent: float, output: str, *, may_wait: bool) -> str:
    """Return the remedy for a claim that a run may not take over."""
    command = f"give `quietcorpus release-claim {output} --reason ...`"
    if claim.version == 1:
        return f"an earlier version made its claim: wait for it, or if it died, {command}"
    if silent >= STALE_SECONDS:
        return f"it gave no sign of life for {silent / 60:.0f} minutes: {command}"
    return (
        f"its last sign of life was {max(silent, 0):.0f} seconds ago: wait for it; if it died, "
        f"{'run again' if may_wait else command} after {STALE_SECONDS / 60:.0f} minutes without one"
    )


def version_of(output: str, claim: Claim) -> str | None:
    """Return the version of the object if this claim still stands in it, or None if it is lost."""
    found = read(output)
    if found is None or found[0].holder != claim.holder:
        return None
    return found[1]


def rewrite(output: str, claim: Claim, version: str | None = None, **changes: Any) -> Claim | None:
    """Write a claim anew, with these changes; None if it is lost, or is not of this version."""
    version = version or version_of(output, claim)
    if version is None:
        return None
    changed = replace(claim, **{"beats": claim.beats + 1, **changes})
    return changed if stores.replace(claim_of(output), changed.content, version) else None


def drop(output: str, claim: Claim) -> bool:
    """Delete the staging areas of a claim, and then the claim itself, if it still stands.

    Returns whether it did: it does not while a staging area could not be deleted. If another run
    has taken the claim over, it may use what this one has finished, and deletes it at its end.
    """
    found = read(output)
    if found is None or found[0].holder != claim.holder:
        if found is None or claim.stagings[-1] not in found[0].stagings:
            delete_folder(claim.stagings[-1])
        return False
    version = found[1]
    left = [staging for staging in claim.stagings if not delete_folder(staging)]
    return not left and stores.delete(claim_of(output), version)


BEAT_SECONDS = 60.0


class Lease:
    """A claim on an output, and the thread that renews it.

    Whether the claim still stands is always asked of the store, never of a clock: a process that
    was suspended may have lost it without noticing.
    """

    def __init__(self, output: str, claim: Claim) -> None:
        self._output = output
        self._claim = claim
        self._ended = threading.Event()
        self._lock = threading.Lock()  # one writer of the claim at a time
        self._thread = threading.Thread(target=self._beat, name="claim", daemon=True)
        self._thread.start()

    @property
    def claim(self) -> Claim:
        """Return the claim as it was last written."""
        return self._claim

    @property
    def stands(self) -> bool:
        """Return whether the claim still stands."""
        return version_of(self._output, self._claim) is not None

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
            return drop(self._output, self._claim)

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
            changed = rewrite(self._output, self._claim, **changes)
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
                        STALE_SECONDS / 60,
                    )
                warned = True
