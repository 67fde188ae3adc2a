"""The staging of a release, its publication, and the freeing of an output by hand."""

from __future__ import annotations

import functools
import logging
import os
import posixpath
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Protocol

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.errors import ClaimHeld, InputError, StageError, Unavailable
from quietcorpus.transforms.shards import Written, staged_content
from quietcorpus.transforms.threads import in_turn

from . import claims, layout, stores
from . import files as storage
from .claims import Claim, Lease
from .places import is_local
from .staging import (
    RELEASE,
    abort_uploads_of,
    delete_abandoned,
    has_records,
    new_staging,
    stagings_of,
)

_STORAGE_LOGGER = logging.getLogger("quietcorpus.storage")

_LOGGER = logging.getLogger("quietcorpus.publishing")
_FILES_AT_ONCE = 16


class Staging(Protocol):
    """A place beside the output where a release is put together.

    Attributes:
        staging: the folder in which files are put together.
        created: when the run began, as the card says it.
        earlier: the staging areas of runs of the same identity that were cut short, and have
            finished some shards.
    """

    @property
    def earlier(self) -> Sequence[str]: ...

    @property
    def staging(self) -> str: ...

    @property
    def created(self) -> str: ...

    def publish(
        self, files: Sequence[Written], texts: dict[str, str], on_publishing: Callable[[], None]
    ) -> None:
        """Publish the release; raises InputError or ClaimHeld if another was published first.

        `on_publishing` is called just before the release may exist.
        """


class Folder:
    """An output folder on this machine, which appears at once."""

    def __init__(
        self, output: str, staging: str, key: ReleaseKey | None, earlier: Sequence[str] = ()
    ) -> None:
        self._output = output
        self._key = key
        self.staging, self.earlier = staging, earlier
        self.created = datetime.now(UTC).isoformat(timespec="seconds")

    def publish(
        self, files: Sequence[Written], texts: dict[str, str], on_publishing: Callable[[], None]
    ) -> None:
        target = f"{self.staging}/{RELEASE}"
        for folder in {posixpath.dirname(f"{target}/{file.path}") for file in files}:
            os.makedirs(folder, exist_ok=True)
        _place(files, functools.partial(self._move, target), self._key)
        for name, text in texts.items():
            storage.write_bytes(f"{target}/{name}", text.encode())
        on_publishing()
        storage.move(target, self._output)

    @staticmethod
    def _move(target: str, file: Written, content: Iterator[bytes]) -> None:
        """Put a file in its place, so that the disk need not hold all of a release twice."""
        uri = f"{target}/{file.path}"
        if not file.sealed:
            os.rename(file.staged, uri)
            return
        storage.write_chunks(uri, content)
        os.remove(file.staged)


class Claimed:
    """A prefix of an object store, which is a release once `release.json` exists."""

    def __init__(self, output: str, claim: claims.Claim, key: ReleaseKey | None) -> None:
        self._output = output
        self._lease = Lease(output, claim)
        self._key = key
        # Whether the claim may be dropped: not while files at the output may be part of an
        # unfinished release, such as those of a run that was taken over.
        self._settled = len(claim.stagings) == 1
        self.staging, self.earlier = claim.stagings[-1], list[str]()
        self.created = claim.created

    def begin(self) -> None:
        """Tidy up after the runs that this one takes over, but for the shards that they finished.

        The areas of those shards are deleted with the claim.
        """
        stagings = self._lease.claim.stagings
        if stagings[:-1]:
            _LOGGER.info("taking over an earlier run of this release, which was cut short")
        for staging in stagings[:-1]:
            if has_records(staging, self._lease.claim.run.identity):
                self.earlier.append(staging)
            else:
                storage.delete_folder(staging)
        # Every writer here has a claim: an area that no claim names belongs to a run that no other
        # run continues.
        orphans = stagings_of(self._output)
        if self._lease.stands:
            abort_uploads_of(self._output)
            for staging in orphans - set(stagings):
                _LOGGER.info("deleting %s, which a run that was cut short has left", staging)
                storage.delete_folder(staging)

    def blame_takeover(self) -> None:
        """Raise ClaimHeld if the claim is lost: the run's own error then follows from that."""
        if self._lease.claim.withdrawn:
            return
        try:
            self._lease.require()
        except ClaimHeld:
            raise
        except Exception:  # the store is gone too; the run's own error says more
            _LOGGER.debug("the claim could not be read")

    def publish(
        self, files: Sequence[Written], texts: dict[str, str], on_publishing: Callable[[], None]
    ) -> None:
        names = [*(file.path for file in files), *texts]
        self._lease.require()
        self._refuse_strangers(names)
        # Record the names first: a successor that finds the claim must know which files may exist.
        before = self._lease.claim.published
        self._lease.change(published=claims.patterns([*before, *names]))
        card = texts[layout.CARD]
        try:
            _place(files, self._upload, self._key)
            for name, text in texts.items():
                if name != layout.CARD:
                    self._create(name, text)
            self._lease.require()
        except BaseException:
            self._undo(names)
            raise
        # From here on the release may exist, so nothing of it is deleted. If it stays unknown
        # whether it exists, the claim stays for the run's repetition.
        self._settled = False
        on_publishing()
        try:
            self._create(layout.CARD, card)
        except ClaimHeld:
            self._settled = True  # it exists, and is another run's
            raise
        self._settled = True

    def _upload(self, file: Written, content: Iterator[bytes]) -> None:
        self._lease.require()  # a run that was suspended may have lost its claim
        stores.upload(f"{self._output}/{file.path}", content)

    def _create(self, name: str, text: str) -> None:
        if not stores.create_exclusively(f"{self._output}/{name}", text.encode()):
            raise ClaimHeld(
                f"output: {self._output} appeared meanwhile; see whose it is, or name another place"
            )

    def end(self) -> None:
        """Tidy up; the claim stays while files at the output may be part of a release."""
        try:
            if self._settled or not storage.listed(f"{self._output}/**", 1):
                self._lease.drop()
            else:
                storage.delete_folder(self.staging)
        except Exception:  # the run's own error, if there is one, is what the operator must see
            uri = claims.claim_of(self._output)
            _LOGGER.warning("%s could not be deleted; run again, or delete it", uri)
        finally:
            self._lease.end()

    def _refuse_strangers(self, names: Sequence[str]) -> None:
        """Raise InputError for a file at the output that no run taken over may have published."""
        resumed = len(self._lease.claim.stagings) > 1
        allowed = {f"{self._output}/{name}" for name in names if resumed and name != layout.CARD}
        for path in storage.listed(f"{self._output}/**"):
            if path not in allowed:
                raise InputError(f"output: {path} appeared meanwhile; name another place")

    def _undo(self, names: Sequence[str]) -> None:
        """Delete what was published; if that fails, the claim stays for the run's repetition."""
        self._settled = False
        if self._lease.withdraw():
            storage.delete([name for name in names if name != layout.CARD], self._output)
            self._settled = True


def _place(
    files: Sequence[Written],
    place: Callable[[Written, Iterator[bytes]], None],
    key: ReleaseKey | None,
) -> None:
    """Write the content of staged files, several at once; if one fails, the others stop."""
    stopped = threading.Event()

    def until_stopped(chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            if stopped.is_set():
                raise StageError("publishing was cut short")
            yield chunk

    def put(file: Written) -> None:
        place(file, until_stopped(staged_content(file, key)))

    pool = ThreadPoolExecutor(_FILES_AT_ONCE)
    try:
        for _ in in_turn(pool, put, files):
            pass
    finally:
        stopped.set()
        pool.shutdown(cancel_futures=True)


def release_claim(output: str, reason: str) -> list[str]:
    """Delete the claim on an output, and all that its run has left; return what lies there still.

    Raises ClaimHeld while the run is alive, and InputError if there is nothing to release, or a
    release. The log keeps the reason.
    """
    if not reason.strip():
        raise InputError("reason: is empty; say why the claim may be released")
    if is_local(output):
        _release_local(output)
        _STORAGE_LOGGER.info("deleted what runs that died have left beside %s: %s", output, reason)
        return []
    if storage.exists(f"{output}/{layout.CARD}"):
        raise _complete(output)
    found = claims.read(output)
    if found is None:
        raise InputError(f"output: no run has a claim on {output}; there is nothing to release")
    claim, version = found
    _refuse_alive(claim, claims.silence(output, version), output)
    _release(claim, version, output)
    _STORAGE_LOGGER.info(
        "released the claim on %s, of release %s: %s", output, claim.run.release, reason
    )
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
