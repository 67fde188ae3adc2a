"""Where a release is put together, and how it appears at its output: on a disk or in a store."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Protocol

from apache_beam.io.filesystems import FileSystems

from pipelines import claims, object_stores, storage
from transforms.errors import InputError, Unavailable
from transforms.shards import Written

_LOGGER = logging.getLogger("quietcorpus.publishing")
_COPIES_AT_ONCE = 16


class Area(Protocol):
    """A place beside the output.

    Attributes:
        staging: the folder in which files are put together.
        created: when the run began, as the card says it.
    """

    @property
    def staging(self) -> str: ...

    @property
    def created(self) -> str: ...

    def publish(
        self, files: Sequence[Written], texts: dict[str, str], begins: Callable[[], None]
    ) -> None:
        """Make the release appear; raises InputError or Unavailable if another got there first.

        `begins` is called when the release may exist from then on.
        """


@contextmanager
def area(output: str, release: str, run: str) -> Iterator[Area]:
    """An area for this output; it is gone afterwards. Raises InputError if another run has it."""
    if storage.is_local(output):
        with storage.staging_area(output) as staging:
            yield _Folder(output, staging)
        return
    claim = claims.take(output, release, run)
    claimed = _Claimed(output, claim)
    try:
        claimed.begin()
        yield claimed
    except Exception:
        claimed.blame_takeover()
        raise
    finally:
        claimed.end()


class _Folder:
    """A folder on this machine, which appears at once."""

    def __init__(self, output: str, staging: str) -> None:
        self._output = output
        self.staging = staging
        self.created = datetime.now(UTC).isoformat(timespec="seconds")

    def publish(
        self, files: Sequence[Written], texts: dict[str, str], begins: Callable[[], None]
    ) -> None:
        storage.publish(self._output, self.staging, files, texts, begins)


class _Claimed:
    """A prefix of an object store, which exists as a release once `release.json` does."""

    def __init__(self, output: str, claim: claims.Claim) -> None:
        self._output = output
        self._claim = claim
        # What a run that was taken over has published lies there until this one does.
        self._settled = len(claim.stagings) == 1
        self.staging = claim.stagings[-1]
        self.created = claim.created

    def begin(self) -> None:
        """Tidy up after the runs that this one takes over."""
        if self._claim.stagings[:-1]:
            _LOGGER.info("taking over an earlier run of this release, which was cut short")
        for staging in self._claim.stagings[:-1]:
            storage.delete_folder(staging)

    def require(self) -> None:
        """Raise Unavailable unless the claim still stands."""
        if claims.version_of(self._output, self._claim) is None:
            raise Unavailable(
                f"output: the claim on {self._output} was taken over by another run of this "
                "release, or deleted; wait for the other run, or run again"
            )

    def blame_takeover(self) -> None:
        """Raise Unavailable if the claim is lost: what a run then trips over is no failure."""
        if self._claim.run == claims.WITHDRAWN:
            return
        try:
            self.require()
        except Unavailable:
            raise
        except Exception:  # the store is gone too; the run's own error says more
            _LOGGER.debug("the claim could not be read")

    def publish(
        self, files: Sequence[Written], texts: dict[str, str], begins: Callable[[], None]
    ) -> None:
        self.require()
        names = [*(file.path for file in files), *texts]
        self._refuse_strangers(names)
        card = texts[storage.CARD]
        try:
            _copy(files, self._output)
            for name, text in texts.items():
                if name != storage.CARD:
                    self._create(name, text)
            self.require()
        except BaseException:
            self._undo(names)
            raise
        # From here on the release may exist: nothing of it is deleted, and if it is not known
        # whether it does, the claim stays for the run's repetition.
        self._settled = False
        begins()
        try:
            self._create(storage.CARD, card)
        except Unavailable:
            self._settled = True  # it exists, and is another run's
            raise
        self._settled = True

    def _create(self, name: str, text: str) -> None:
        if not object_stores.create_exclusively(f"{self._output}/{name}", text.encode()):
            raise Unavailable(
                f"output: {self._output} appeared meanwhile; see whose it is, or name another place"
            )

    def end(self) -> None:
        """Leave nothing behind but a release; the claim stays with what may be part of one."""
        try:
            if self._settled or not storage.is_occupied(self._output):
                claims.drop(self._output, self._claim)
            else:
                storage.delete_folder(self.staging)
        except Exception:  # the run's own error, if there is one, is what the operator must see
            uri = claims.claim_of(self._output)
            _LOGGER.warning("%s could not be deleted; run again, or delete it", uri)

    def _refuse_strangers(self, names: Sequence[str]) -> None:
        """Nothing but what a run that was taken over may have published lies at the output."""
        resumed = len(self._claim.stagings) > 1
        allowed = {f"{self._output}/{name}" for name in names if resumed and name != storage.CARD}
        (found,) = FileSystems.match([f"{self._output}/**"])
        for metadata in found.metadata_list:
            if metadata.path not in allowed:
                raise InputError(f"output: {metadata.path} appeared meanwhile; name another place")

    def _undo(self, names: Sequence[str]) -> None:
        """Delete what was published; if that fails, the claim stays for the run's repetition."""
        self._settled = False
        withdrawn = claims.withdraw(self._output, self._claim)
        if withdrawn is not None:
            self._claim = withdrawn
            storage.delete([name for name in names if name != storage.CARD], self._output)
            self._settled = True


def _copy(files: Sequence[Written], output: str) -> None:
    """Copy staged files, several at once; the staging area's deletion makes it a move."""
    with ThreadPoolExecutor(_COPIES_AT_ONCE) as pool:
        copies = (
            pool.submit(object_stores.copy, file.staged, f"{output}/{file.path}") for file in files
        )
        for copy in list(copies):
            copy.result()
