"""A server that forks the workers of one launcher or executor, so that they start at once.

Beam starts new worker processes for every pipeline, and on a cluster for every stage. Each would
import for seconds. The first one starts this server beside itself. It imports once, starts no
thread, and forks every worker from then on. It ends with the launcher or executor, or after a
minute without a worker.

A worker's own process stays: it is what Beam watches and ends. The fork ends with it, and it ends
as the fork does. The server serves processes of its own user, software, environment and namespaces
alone. Where it cannot be had, a worker imports by itself.

A fork draws no randomness from a state that it shares with others: keyed noise comes from its
release's key, and every other secret from the operating system.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import json
import logging
import os
import select
import selectors
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

PRELOADED = (
    "apache_beam.runners.worker.sdk_worker_main",
    "quietcorpus.transforms.privatizers.bags",
    "quietcorpus.transforms.privatizers.words",
    "quietcorpus.transforms.shards",
)
"""What most workers import."""

_IDLE_SECONDS = 60
_POLL_SECONDS = 1
_LOOK_SECONDS = 0.1
_REQUEST_SECONDS = 10
_REQUEST_BYTES = 1 << 20
_BEGUN = b"+"
_CREDENTIALS = struct.Struct("3i")  # pid, uid and gid of a socket's peer

Work = Callable[[Mapping[str, str]], None]
"""A worker: it is given the variables of its environment that no other worker has."""


def run(work: Work, own: Mapping[str, str], parent: int) -> int | None:
    """Run a worker in a fork; return its exit code, or None if there is no server to fork it.

    Args:
        work: the worker, the same for every caller of a server.
        own: the variables of the environment that are this worker's own.
        parent: the process id of the launcher or executor, this process's parent.
    """
    if sys.platform != "linux" or parent == 1:  # which need not reap a server that has ended
        return None
    address = _address(parent, own)
    _offer(address, work, parent)  # before there is a connection, which a server would hold open
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        try:
            connection.connect(address)
            if _user_of(connection) != os.getuid():
                return None
            socket.send_fds(connection, [json.dumps(dict(own)).encode()], [1, 2])
        except OSError:
            return None
        return _await(connection, parent)


def _await(connection: socket.socket, parent: int) -> int | None:
    """Wait for a fork's end; None if it never began."""
    connection.settimeout(_POLL_SECONDS)
    begun = False
    while os.getppid() == parent:
        try:
            answer = connection.recv(16)
        except TimeoutError:
            continue
        except OSError:
            answer = b""
        if answer == _BEGUN:
            begun = True
        elif answer:
            return int(answer)
        else:
            return 1 if begun else None
    return 1


def _address(parent: int, own: Mapping[str, str]) -> bytes:
    """Return the abstract address that processes of the same kind share, and no others."""
    shared = {name: value for name, value in os.environ.items() if name not in own}
    namespaces = [os.readlink(f"/proc/self/ns/{name}") for name in ("mnt", "pid", "user")]
    alike = [os.getuid(), parent, namespaces, os.getcwd(), sys.executable, sys.path, shared]
    return b"\0quietcorpus-" + hashlib.sha256(json.dumps(alike, sort_keys=True).encode()).digest()


def _offer(address: bytes, work: Work, parent: int) -> None:
    """Start a server at an address, unless there is one."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, suppress(OSError):
        listener.bind(address)
        listener.listen()
        ended = os.pidfd_open(parent)
        if os.getppid() == parent and os.fork() == 0:
            _serve(listener, ended, work)
        os.close(ended)


def _serve(listener: socket.socket, ended: int, work: Work) -> None:
    """Import what workers need, and fork them until their parent has ended."""
    try:
        _call_oneself("qc-fork-server")
        interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)
        logging.basicConfig(handlers=[logging.NullHandler()])  # before a library sets one up
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):  # a pipe would stay open for as long as this process lives
            os.dup2(nowhere, stream)
        _preload(ended)
        gc.freeze()  # or every fork would copy what its collector walks through
        _Server(listener, ended, work, interrupted).serve()
    finally:
        os._exit(0)


def _call_oneself(name: str) -> None:
    """Set the name that `ps` and `top` show: a fork has the command line of another process."""
    with open("/proc/self/comm", "w", encoding="ascii") as stream:
        stream.write(name)


def _preload(ended: int) -> None:
    """Import what workers need; this process ends where its parent ends meanwhile."""

    def look(*_: object) -> None:
        if select.select([ended], [], [], 0)[0]:
            os._exit(0)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _LOOK_SECONDS, _LOOK_SECONDS)
    for name in PRELOADED:
        importlib.import_module(name)
    _load_kernels()
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _load_kernels() -> None:
    """Have numba load what every compiled kernel needs, half a second's work."""
    import pyarrow as pa

    from quietcorpus.indexes.tokenizer import tokenize

    tokenize(pa.array(["a word"]))


@dataclass(frozen=True, eq=False)
class _Fork:
    """A worker: its process id and a descriptor of it, and who asked for it."""

    pid: int
    process: int
    connection: socket.socket

    def close(self) -> None:
        os.close(self.process)
        self.connection.close()


class _Server:
    """The forks of a server, each with the connection of the process that it stands for."""

    def __init__(self, listener: socket.socket, ended: int, work: Work, interrupted: Any) -> None:
        self._listener, self._ended, self._work = listener, ended, work
        self._interrupted = interrupted  # a worker's handler of SIGINT
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(ended, selectors.EVENT_READ)
        self._forks: set[_Fork] = set()

    def serve(self) -> None:
        """Fork workers until the parent has ended, or nobody has asked for a while."""
        while events := self._selector.select(None if self._forks else _IDLE_SECONDS):
            for key, _ in events:
                if key.fd == self._ended:
                    for fork in self._forks:
                        os.kill(fork.pid, signal.SIGKILL)
                    return
                if key.fileobj is self._listener:
                    with suppress(OSError, ValueError):
                        self._accept()
                elif key.data in self._forks:
                    self._finish(key.data)

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.settimeout(_REQUEST_SECONDS)
        if _user_of(connection) != os.getuid():
            connection.close()
            return
        request, streams, _, _ = socket.recv_fds(connection, _REQUEST_BYTES, 2)
        own = json.loads(request)
        pid = os.fork()
        if pid == 0:
            connection.close()
            self._become(own, streams)
        for stream in streams:
            os.close(stream)
        fork = _Fork(pid, os.pidfd_open(pid), connection)
        self._forks.add(fork)
        for source in (fork.process, connection):
            self._selector.register(source, selectors.EVENT_READ, fork)
        connection.send(_BEGUN)

    def _finish(self, fork: _Fork) -> None:
        """End a fork with the process that it stands for, or tell this how the fork ended."""
        self._forks.remove(fork)
        for source in (fork.process, fork.connection):
            self._selector.unregister(source)
        os.kill(fork.pid, signal.SIGKILL)  # nothing happens to one that has ended
        code = os.waitstatus_to_exitcode(os.waitpid(fork.pid, 0)[1])
        with suppress(OSError):
            fork.connection.send(b"%d" % (code if code >= 0 else 128 - code))
        fork.close()

    def _become(self, own: Mapping[str, str], streams: list[int]) -> None:
        """Become a worker, with the streams of the process that asked for it."""
        try:
            _call_oneself("qc-worker")
            signal.signal(signal.SIGINT, self._interrupted)
            self._selector.close()
            self._listener.close()
            os.close(self._ended)
            for fork in self._forks:
                fork.close()
            for number, stream in enumerate(streams, start=1):
                os.dup2(stream, number)
                os.close(stream)
            self._work(own)
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(1)


def _user_of(connection: socket.socket) -> int:
    """Return the user id of a socket's peer."""
    size = _CREDENTIALS.size
    _, user, _ = _CREDENTIALS.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    )
    return int(user)
