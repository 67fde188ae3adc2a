"""The first check of a run: the stores that its spec names must answer, and permit what it needs.

Beam's file systems retry for minutes and report little. Here each place is asked once, by the same
clients, and its answer becomes one line.
"""

from __future__ import annotations

import posixpath
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from quietcorpus.transforms.errors import (
    InputError,
    StoreUnavailable,
    Unavailable,
    credentials_rejected,
)
from quietcorpus.transforms.outages import CLOCKS_DIFFER, code_of, outage, rejected, status_of
from quietcorpus.transforms.store_clock import StoreClock

from . import stores
from .stores import StoredObject, stored

DEADLINE_SECONDS = 20
_PEEKED_AT_NOTHING = (404, 416)  # missing or empty: the reader reports these
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")


@dataclass(frozen=True)
class Need:
    """An operation that a run needs at a place: `list`, `read` or `write`."""

    key: str
    uri: str
    verb: str

    @property
    def object(self) -> StoredObject:
        """Return the object that is asked for; a listing asks for a folder, or a whole bucket."""
        return stored(f"{self.uri}/" if self.verb == "list" else self.uri)

    def ask(self) -> None:
        """Try it once, without lasting effects; raises what the store's client raises."""
        if self.verb == "list":
            self.object.list_one()
        elif self.verb == "read":
            _peek(self.uri)
        else:
            _probe(self)


def require(needs: list[Need]) -> None:
    """Raise InputError for the first need that is not met within the deadline.

    Raises CredentialsRejected if a store rejects the credentials, and StoreUnavailable if it is out
    of order, or this machine's clock differs from its.
    """
    for need in needs:  # before the clock starts: a client's import may take seconds
        with suppress(Exception):  # the question meets the same error
            _ = need.object
    questions = [_Question(need) for need in needs]
    deadline = time.monotonic() + DEADLINE_SECONDS
    for question in questions:
        question.join(max(0, deadline - time.monotonic()))
        failure = TimeoutError() if question.is_alive() else question.failure
        if isinstance(failure, InputError):
            raise failure
        if failure is not None:
            raise _error(question.need, failure, question.host)
    if needs:
        StoreClock.require_agreement()


class _Question(threading.Thread):
    """A question in the background: clients wait for longer than people do."""

    def __init__(self, need: Need) -> None:
        super().__init__(daemon=True)
        self.need = need
        self.host = "the store"
        self.failure: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self.host = urlsplit(self.need.object.host).netloc.rpartition("@")[2]
            self.need.ask()
        except Exception as error:
            self.failure = error


def _peek(uri: str) -> None:
    try:
        stored(uri).peek()
    except Exception as error:
        if status_of(error) not in _PEEKED_AT_NOTHING or code_of(error) in _NO_BUCKET:
            raise


def _probe(need: Need) -> None:
    """Write a file beside the place, check that a second cannot take its name, and delete it."""
    folder, name = posixpath.split(need.uri)
    uri = f"{folder}/.{name}.probe-{uuid.uuid4().hex[:12]}"
    stores.create_exclusively(uri, b"first")
    try:
        exclusive = not stores.create_exclusively(uri, b"second")
    finally:
        found = stores.read(uri)
        if found is not None:
            stores.delete(uri, found[1])
    if not exclusive:
        raise InputError(
            f"{need.key}: the store of {need.uri} ignores conditional writes (If-None-Match), by "
            "which one run excludes the others; name a place on another store"
        )


def _error(need: Need, failure: BaseException, host: str) -> InputError | Unavailable:
    status, code = status_of(failure), code_of(failure)
    if name := rejected(failure):
        return credentials_rejected(f"{need.key}: {need.uri}", name, host)
    kind: type[InputError | StoreUnavailable] = InputError
    problem = f"{host} refuses it ({code or status}); check the endpoint and the region"
    if isinstance(failure, ImportError | AssertionError):
        problem = "an extra is not installed; install quietcorpus with [aws], [gcp] or [azure]"
    elif status is None and "Credential" in code:
        problem = f"no credentials are found ({code}); set them in the environment"
    elif code == CLOCKS_DIFFER:
        kind, problem = StoreUnavailable, f"{outage(failure)}; set this one, and run again"
    elif status == 403:
        problem = f"the credentials do not permit to {need.verb} there; have that granted"
    elif status == 404:
        problem = "the bucket does not exist; create it, or check the spelling"
    elif status is None and not outage(failure):  # nothing was sent
        wanted = "azfs://account/container" if need.uri.startswith("azfs") else "a valid bucket"
        problem = f"no request can be made ({code}); name {wanted}, and check the endpoint"
    elif status is None:
        kind, problem = (
            StoreUnavailable,
            f"{host} does not answer; check the endpoint and the network",
        )
    elif outage(failure):
        kind, problem = StoreUnavailable, f"{host} fails ({code or status}); run again later"
    return kind(f"{need.key}: {need.uri} cannot be used: {problem}")
