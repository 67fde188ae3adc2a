"""A cluster by its engine's name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from running_clusters import START, Cluster, stop
from s3_server import S3Server


@pytest.fixture(scope="module")
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, s3: S3Server
) -> Iterator[Cluster]:
    """A cluster that runs, with the credentials of the S3 server."""
    started = START[request.param](tmp_path_factory.mktemp(request.param), s3.environment)
    yield started
    stop(started)
