"""A Ray cluster for as long as it is needed: the one that RAY_ADDRESS names, or one of our own."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

from quietcorpus.transforms.errors import InputError

_CONNECT_SECONDS = 10.0


@contextlib.contextmanager
def ray_session(missing: str, count: int, *, private: bool = False) -> Iterator[Any]:
    """The module `ray`, connected; raises InputError where it or its cluster is not there.

    Args:
        missing: what to say where Ray is not installed.
        count: processors of a cluster of our own, which ends with the context.
        private: whether work on private text will be done in it: then the cluster is always our
            own. What is put into Ray's store must be encrypted all the same: that may be a file.
    """
    with _environment_of_ray():
        try:
            import ray
        except ImportError:
            raise InputError(missing) from None
        ours = not ray.is_initialized()
        if private and not ours:
            raise InputError(
                "--workers: this process uses a Ray cluster already; disconnect from it"
            )
        if ours:
            with _same_sigterm():
                _start(ray, count, private=private)
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()


@contextlib.contextmanager
def _environment_of_ray() -> Iterator[None]:
    """Keep Ray silent and its statistics at home while it starts; then restore the environment."""
    before = dict(os.environ)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # it warns of what it does itself
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


@contextlib.contextmanager
def _same_sigterm() -> Iterator[None]:
    """Ray takes SIGTERM for itself, and would end the process before it has tidied up."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def _start(ray: Any, count: int, *, private: bool) -> None:
    address = None if private else os.environ.get("RAY_ADDRESS")
    quietly = {"log_to_driver": False, "logging_level": logging.ERROR}
    if not address:
        try:
            ray.init(
                "local",
                num_cpus=count,
                include_dashboard=False,
                _node_ip_address="127.0.0.1",  # it asks for no password
                **quietly,
            )
        except OSError:  # sockets have paths of 107 bytes at most, where TMPDIR may be as long
            raise InputError(
                "RAY_TMPDIR: Ray cannot put its sockets into the temporary folder, whose path may "
                "be too long; set RAY_TMPDIR to a short one that can be written to"
            ) from None
        return
    try:
        if ":" in address:  # Ray itself would try for minutes
            host, port = address.rsplit("/", 1)[-1].rsplit(":", 1)
            socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
        ray.init(address, **quietly)
    except (OSError, ValueError, RuntimeError):
        raise InputError(
            f"RAY_ADDRESS: no Ray cluster answers at {address}; start it, or unset the variable"
        ) from None
