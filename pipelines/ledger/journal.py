"""The storage of records: numbered objects, each created once and by one writer alone.

Record n is `<n>.json`, and `<n>.sha256` is its seal: the digest, as `sha256sum` writes it. A record
is sealed before the next one is begun: in an intact ledger only the last record may lack a seal.
Nothing is ever changed or deleted.
"""

from __future__ import annotations

import errno
import os
import re
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from quietcorpus.transforms.errors import InputError, Unavailable, blamed, client_errors
from quietcorpus.transforms.outages import outage, status_of

from ..storage import places, stores
from .records import digest

FOLDER = "identifiers"
_NAME = re.compile(r"([0-9]{8})\.(json|sha256)")
_AT_ONCE = 16
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_UNREADABLE = "cannot be read; check the path and the permissions"
_REFUSED = (errno.EACCES, errno.EROFS, errno.EPERM)


class Damaged(Exception):
    """A ledger that is not as its writers left it; the message says where."""


class Journal:
    """The objects of one ledger, read once and then as they are added.

    Attributes:
        uri: the folder.
        contents: the bytes of the records that are read so far, in order.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.contents: list[bytes] = []
        self._sealed = 0

    def load(self) -> None:
        """Read all records; raises Damaged for a gap, an unknown object, or a broken seal."""
        records, seals = self._listed()
        count = max([*records, *seals], default=-1) + 1
        for number in range(count):  # a listing may lack what was written meanwhile
            if number not in records and self._record(number) is None:
                raise Damaged(f"record {number} is missing")
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            contents = list(pool.map(self._record, range(count)))
            found = list(pool.map(self._seal, range(count)))
        for number, content in enumerate(contents):
            if content is None:
                raise Damaged(f"record {number} is missing")
            self._check_seal(number, content, found[number], last=number == count - 1)
        self.contents = [content for content in contents if content is not None]
        self._sealed = sum(seal is not None for seal in found)

    def follow(self) -> Sequence[bytes]:
        """Read the records added since; each was begun after those before it were sealed."""
        added = []
        while (content := self._record(len(self.contents))) is not None:
            self.contents.append(content)
            added.append(content)
        return added

    def append(self, content: bytes) -> bool:
        """Add the next record; return False if another writer was first."""
        self._seal_last()
        if not create(self.uri, f"{len(self.contents):08d}.json", content):
            return False
        self.contents.append(content)
        self._seal_last()
        return True

    def _seal_last(self) -> None:
        """Seal the last record, or check its seal."""
        number = len(self.contents) - 1
        if number < self._sealed:
            return
        content, seal = self.contents[number], self._seal(number)
        if seal is None and not create(self.uri, f"{number:08d}.sha256", _sealing(number, content)):
            seal = self._seal(number)  # another writer was first
        self._check_seal(number, content, seal, last=seal is None)
        self._sealed = number + 1

    def _check_seal(self, number: int, content: bytes, seal: bytes | None, *, last: bool) -> None:
        if seal is None and not last:
            raise Damaged(f"the seal of record {number} is missing")
        if seal is not None and seal != _sealing(number, content):
            raise Damaged(f"record {number} is not the one that its seal is of")

    def _listed(self) -> tuple[set[int], set[int]]:
        """Return the numbers of the records, and of the seals."""
        found: dict[str, set[int]] = {"json": set(), "sha256": set()}
        for name in self._names():
            match = _NAME.fullmatch(name)
            if match:
                found[match[2]].add(int(match[1]))
            elif not (name.startswith(".") or name == FOLDER):  # a dot: a dead writer's file
                raise Damaged(f"{name} is not a record")
        return found["json"], found["sha256"]

    def _names(self) -> list[str]:
        if places.is_local(self.uri):
            try:
                return os.listdir(self.uri)
            except FileNotFoundError:
                return []
            except OSError as error:
                raise self._unreadable(error) from None
        with client_errors(f"ledger: {self.uri}", _UNREADABLE):
            return stores.names(self.uri)

    def _record(self, number: int) -> bytes | None:
        return self._read(f"{number:08d}.json")

    def _seal(self, number: int) -> bytes | None:
        return self._read(f"{number:08d}.sha256")

    def _read(self, name: str) -> bytes | None:
        if not places.is_local(self.uri):
            with client_errors(f"ledger: {self.uri}", _UNREADABLE):
                found = stores.read(f"{self.uri}/{name}")
            return None if found is None else found[0]
        try:
            with open(f"{self.uri}/{name}", "rb") as stream:
                return stream.read()
        except FileNotFoundError:
            return None
        except IsADirectoryError:
            raise Damaged(f"{name} is a folder") from None
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: OSError) -> InputError:
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        return InputError(f"ledger: {self.uri} cannot be read ({reason}); check the path")


def _sealing(number: int, content: bytes) -> bytes:
    return f"{digest(content)}  {number:08d}.json\n".encode()


def create(folder: str, name: str, content: bytes) -> bool:
    """Create an object of a ledger; return False if it exists.

    Raises InputError without write access, and StoreUnavailable where the store is out of order:
    the object may then appear nevertheless.
    """
    try:
        if places.is_local(folder):
            return create_file(folder, name, content)
        return stores.create_exclusively(f"{folder}/{name}", content)
    except OSError as error:
        if error.errno in _REFUSED:
            raise InputError(
                f"ledger: {folder} cannot be written to; check the permissions"
            ) from None
        raise
    except (InputError, Unavailable):
        raise
    except Exception as error:  # every object store's client raises its own exceptions
        if status_of(error) in (401, 403):
            raise InputError(
                f"ledger: the credentials do not permit to write to {folder}"
            ) from None
        if outage(error):
            raise blamed(error, f"ledger: {folder}", "cannot be written to") from None
        raise


def create_file(folder: str, name: str, content: bytes) -> bool:
    """Create a file, which appears whole; return False if its name is taken."""
    temporary = f"{folder}/.{name}.{uuid.uuid4().hex}"
    try:
        with open(temporary, "xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        try:  # a link, unlike a rename, fails where the name is taken
            os.link(temporary, f"{folder}/{name}")
        except FileExistsError:
            # The reply to a successful link may be lost, as on NFS: the file then has two names.
            if os.stat(temporary).st_nlink != 2:
                return False
        except OSError as error:
            if error.errno in _NO_LINKS:
                raise InputError(
                    f"ledger: the file system of {folder} has no hard links, by which one writer "
                    "excludes the others; name a place on another one, or in an object store"
                ) from None
            raise
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
    _sync(folder)
    return True


def _sync(folder: str) -> None:
    """Write a folder to disk: only then does a new name in it survive a crash."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
