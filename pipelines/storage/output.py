"""The place where a run publishes its files, whole or not at all."""

from __future__ import annotations

import logging
import os
import posixpath
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from apache_beam.io.filesystem import BeamIOError

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.errors import InputError, blamed

from . import claims, places, publishing, stores
from . import files as storage
from .layout import CARD
from .staging import abandoned_areas, has_records, staging_area

_LOGGER = logging.getLogger("quietcorpus.storage")
_BLOCK = 1 << 22


@dataclass(frozen=True)
class Output:
    """A folder on this machine, or a prefix of an object store.

    Attributes:
        uri: its absolute path or URI.
    """

    uri: str

    @property
    def is_local(self) -> bool:
        """Return whether it is a folder on this machine."""
        return places.is_local(self.uri)

    @property
    def card(self) -> str:
        """Return the URI of a release's card."""
        return f"{self.uri}/{CARD}"

    @property
    def files(self) -> set[str]:
        """Return the URIs of the files that lie there."""
        return set(storage.listed(f"{self.uri}/**"))

    @property
    def occupied(self) -> bool:
        """Return whether anything lies there."""
        if not self.is_local:
            return bool(storage.listed(f"{self.uri}/**", 1))
        folder = os.path.isdir(self.uri)
        return os.path.lexists(self.uri) and not (folder and not os.listdir(self.uri))

    @property
    def claimed(self) -> bool:
        """Return whether a run has a claim on it; raises InputError if none can have one."""
        if self.is_local:
            return False
        if not stores.is_supported(self.uri):
            self.require_free()  # its error for an unknown scheme is the better one
        return claims.read(self.uri) is not None

    def require_free(self) -> None:
        """Raise InputError if something is there already, or it is a whole bucket."""
        if not self.is_local and "/" not in self.uri.split("://")[1]:
            raise InputError(f"output: {self.uri} is a whole bucket; name a path inside it")
        try:
            released, occupied = storage.exists(self.card), self.occupied
        except ValueError:
            raise InputError(
                f"output: {self.uri} is on a file system that is not known here; check the "
                "scheme, and that the extra for it ([aws], [gcp] or [azure]) is installed"
            ) from None
        except (OSError, BeamIOError) as error:
            problem = "cannot be listed; check the path and the credentials"
            raise blamed(error, f"output: {self.uri}", problem) from None
        if released:
            raise InputError(f"output: {self.uri} holds a release already; name another place")
        if occupied:
            raise InputError(
                f"output: {self.uri} exists already and is not empty; name another place"
            )

    @contextmanager
    def staging(
        self, run: claims.Run, key: ReleaseKey | None = None
    ) -> Iterator[publishing.Staging]:
        """Open a staging area for a run's release, and delete it afterwards.

        `key` unseals what is staged there, if anything is sealed. Raises Unavailable if another run
        has the output's claim, and InputError if the claim cannot be read.
        """
        if self.is_local:
            with (
                abandoned_areas(self.uri, lambda area: has_records(area, run.identity)) as earlier,
                staging_area(self.uri) as staging,
            ):
                yield publishing.Folder(self.uri, staging, key, earlier)
            return
        claimed = publishing.Claimed(self.uri, claims.take(self.uri, run), key)
        try:
            claimed.begin()
            yield claimed
        except Exception:
            claimed.blame_takeover()
            raise
        finally:
            claimed.end()

    def tidy(self, release: str) -> None:
        """Delete the claim of a run that was cut short after it had published this release."""
        if self.is_local:
            return
        try:
            found = claims.read(self.uri)
            if found is not None and found[0].run.release == release:
                claims.drop(self.uri, found[0])
                _LOGGER.info(
                    "deleted the claim of the run that was cut short after it had published"
                )
        except Exception:  # the release is complete all the same
            _LOGGER.warning("%s could not be deleted; delete it", claims.claim_of(self.uri))


@contextmanager
def result_folder(output: str, last: str) -> Iterator[str]:
    """Yield a local folder whose files become the output: all at once, or in a store in turn.

    There, the file `last` appears last: without it, readers do not take the others for complete.
    Raises InputError at once if something is there already, or a store refuses to write there.
    """
    place = Output(output)
    place.require_free()
    if place.is_local:
        with staging_area(output) as staging:
            os.mkdir(whole := f"{staging}/whole")
            yield whole
            storage.move(whole, output)
        return
    storage.probe("output", posixpath.dirname(output))
    with tempfile.TemporaryDirectory() as folder:
        yield folder
        names = sorted(os.listdir(folder), key=lambda name: name == last)
        try:
            for name in names:
                storage.write_chunks(f"{output}/{name}", _blocks(f"{folder}/{name}"))
        except BaseException as error:
            storage.delete(names, output)
            if isinstance(error, Exception):  # every object store's client has its own
                problem = "cannot be written to; check the path and the permissions"
                raise blamed(error, f"output: {output}", problem) from None
            raise


@contextmanager
def result_files(output: str | None, last: str) -> Iterator[dict[str, bytes]]:
    """Yield a mapping whose contents, by file name, become the output; None for no output.

    It is as `result_folder`, and refuses a place in a release.
    """
    made: dict[str, bytes] = {}
    if output is None:
        yield made
        return
    refuse_in_release("output", output)
    with result_folder(output, last) as folder:
        yield made
        for name, content in made.items():
            storage.write_bytes(f"{folder}/{name}", content)


def refuse_in_release(key: str, place: str) -> None:
    """Raise InputError for a place in a release, which a file unknown to its card would alter."""
    folder = os.path.dirname(place)
    while "/" in folder.partition("://")[2] or (places.is_local(folder) and folder != "/"):
        if storage.exists(f"{folder}/{CARD}"):
            raise InputError(f"{key}: {place} lies in a release; name a place of its own")
        folder = os.path.dirname(folder)


def _blocks(path: str) -> Iterator[bytes]:
    with open(path, "rb") as content:
        while block := content.read(_BLOCK):
            yield block
