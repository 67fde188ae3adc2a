"""A cluster by its engine's name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from running_clusters import LAUNCHER, START, Cluster, stop
from s3_server import S3Server

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.fixture(scope="session")
def clusters(
    tmp_path_factory: pytest.TempPathFactory, s3_server: S3Server
) -> Iterator[Callable[[str], Cluster]]:
    """Starts each cluster once for a process, with the credentials of the S3 server."""
    started: list[Cluster] = []

    @functools.cache
    def start(name: str) -> Cluster:
        started.append(START[name](tmp_path_factory.mktemp(name), s3_server.environment))
        return started[-1]

    yield start
    for cluster in started:
        stop(cluster)


@pytest.fixture
def loopback(workspace: Workspace) -> Workspace:
    """A workspace whose commands bind to the loopback, and have a folder for what Beam leaves."""
    workspace.environment |= LAUNCHER
    # Beam leaves what it would ship to workers, none of it ours, in the temporary folder.
    spool = workspace.folder / "spool"
    spool.mkdir()
    workspace.environment["TMPDIR"] = str(spool)
    return workspace


@pytest.fixture
def cluster(request: pytest.FixtureRequest, clusters: Callable[[str], Cluster]) -> Cluster:
    """A cluster that runs, and goes on after the test."""
    return clusters(request.param)


@pytest.fixture
def mortal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of a test's own, which may kill it."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    cluster = START[request.param](folder, {})
    yield cluster
    stop(cluster)
