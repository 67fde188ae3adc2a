"""The head of a ledger, kept outside of it: a ledger that lost its last records is refused.

A ledger that is restored from a backup agrees with itself, signed or not. Only what is kept
elsewhere shows that records are missing. The head is kept after each record that a command adds,
so before the next step of a release: a release that may be published is in the records that the
kept head covers.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from quietcorpus.transforms.errors import InputError, Unavailable, client_errors

from ..storage import places, stores
from .records import HEAD, digest

LEDGER_HEAD = "QUIETCORPUS_LEDGER_HEAD_FILE"
_LONGEST = 256
_ATTEMPTS = 100
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)


def head_of(contents: Sequence[bytes]) -> str:
    """Return the number and the SHA-256 of the last of these records, with a colon between."""
    return f"{len(contents) - 1}:{digest(contents[-1])}"


def has(contents: Sequence[bytes], head: str) -> bool:
    """Return whether these records begin with those that a head covers."""
    number, _, expected = head.partition(":")
    return int(number) < len(contents) and digest(contents[int(number)]) == expected


@dataclass(frozen=True)
class KeptHead:
    """A file, or an object of a store, that holds a ledger's head and nothing else.

    Attributes:
        place: its path or URI.
    """

    place: str

    @classmethod
    def configured(cls) -> KeptHead | None:
        """Return the place that the environment names; None if it names none."""
        place = os.environ.get(LEDGER_HEAD)
        return cls(places.absolute(place)) if place else None

    def read(self) -> str | None:
        """Return the head; None if there is no file. Raises InputError for another content."""
        with client_errors(f"{LEDGER_HEAD}: {self.place}", "cannot be read; check the path"):
            content = self._content()
        return None if content is None else self._parsed(content)

    def require(self) -> str:
        """Return the head; raises InputError if there is no file."""
        head = self.read()
        if head is None:
            raise InputError(
                f"{LEDGER_HEAD}: expected a ledger's head at {self.place}, got no file; begin one "
                f"with `quietcorpus ledger verify PLACE --keep-head {self.place}`"
            )
        return head

    def require_none(self, uri: str) -> None:
        """Raise InputError if there is a file, so that a new ledger's head cannot be kept there."""
        if self.read() is not None:
            raise InputError(
                f"{LEDGER_HEAD}: expected no file for the new ledger {uri}, got the head of "
                f"another one at {self.place}; name another file"
            )

    def keep(self, uri: str, contents: Sequence[bytes], lost: str | None = None) -> None:
        """Keep the head of a ledger with these records, unless a later one is kept.

        Raises InputError if a head is kept that is not of this ledger.

        Args:
            uri: the ledger's place, for people.
            contents: the bytes of its records, at least one.
            lost: a head that the ledger lacks, and that may be replaced.
        """
        head = head_of(contents)

        def newer(kept: str | None) -> str | None:
            if kept is None or kept == lost:
                return head
            ahead = int(kept.partition(":")[0]) >= len(contents)
            if not ahead and not has(contents, kept):
                raise InputError(
                    f"{LEDGER_HEAD}: {self.place} holds the head of another ledger than {uri}; "
                    "name its own file"
                )
            return None if ahead or kept == head else head  # ahead: another run was faster

        with client_errors(f"{LEDGER_HEAD}: {self.place}", "cannot be written; check the path"):
            self._update(newer)

    def _update(self, newer: Callable[[str | None], str | None]) -> None:
        if not places.is_local(self.place):
            self._update_object(newer)
            return
        os.makedirs(os.path.dirname(self.place), exist_ok=True)
        with _locked(self.place) as descriptor:
            content = os.pread(descriptor, _LONGEST, 0)
            head = newer(self._parsed(content) if content else None)
            if head is not None:  # of one sector, so that a crash leaves the old or the new head
                written = f"{head}\n".encode()
                os.pwrite(descriptor, written, 0)
                os.ftruncate(descriptor, len(written))
                os.fsync(descriptor)

    def _update_object(self, newer: Callable[[str | None], str | None]) -> None:
        for _ in range(_ATTEMPTS):
            found = stores.read(self.place)
            head = newer(self._parsed(found[0]) if found else None)
            if head is None:
                return
            content = f"{head}\n".encode()
            if found is None and stores.create_exclusively(self.place, content):
                return
            if found is not None and stores.replace(self.place, content, found[1]):
                return
        raise Unavailable(f"{LEDGER_HEAD}: {self.place} changes again and again; run again later")

    def _content(self) -> bytes | None:
        if not places.is_local(self.place):
            found = stores.read(self.place)
            return None if found is None else found[0]
        try:
            with open(self.place, "rb") as stream:
                return stream.read(_LONGEST) or None  # empty: a run died as it began it
        except FileNotFoundError:
            return None

    def _parsed(self, content: bytes) -> str:
        head = content.decode("ascii", "replace").strip()
        if not re.fullmatch(HEAD, head):
            raise InputError(
                f"{LEDGER_HEAD}: expected a ledger's head at {self.place}, got another content; "
                "name the right file, or delete this one and begin another"
            )
        return head


@contextmanager
def head_at(place: str | None) -> Iterator[None]:
    """Let the environment name this place within the context; None leaves it as it is."""
    before = os.environ.get(LEDGER_HEAD)
    if place is not None:
        os.environ[LEDGER_HEAD] = places.absolute(place)
    try:
        yield
    finally:
        if place is not None:
            if before is None:
                os.environ.pop(LEDGER_HEAD, None)
            else:
                os.environ[LEDGER_HEAD] = before


@contextmanager
def _locked(path: str) -> Iterator[int]:
    """Open a file for reading and writing, which other runs cannot change meanwhile."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        yield descriptor
    finally:
        os.close(descriptor)
