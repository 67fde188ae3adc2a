"""Beam's file system shares its clients of S3, as long as the context lasts."""

from __future__ import annotations

import os

import pytest
from apache_beam.io.aws.clients.s3.boto3_client import Client
from apache_beam.options.pipeline_options import PipelineOptions

from quietcorpus.pipelines.environment.store_clients import clients_shared


def client(place: str = "here") -> object:
    given = ["--s3_access_key_id=a", "--s3_secret_access_key=b", f"--s3_region_name={place}"]
    return Client(PipelineOptions(given)).client


@pytest.mark.slow
def test_files_share_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: a client, and a connection, for every file that is opened; one client for two places or
    # two credentials; a fork that speaks through its parent's connections; a client that outlives
    # the run; a caller's boto that is left changed.
    with clients_shared():
        first = client()
        assert client() is first
        assert client("there") is not first
        with clients_shared():
            assert client() is first
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: 1)
            assert client() is not first
    assert client() is not client()
    with clients_shared():
        assert client() is not first
