"""Beam's file system shares its clients of S3, as long as the context lasts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from threading import Thread
from typing import Any

import boto3
import pytest
from apache_beam.io.aws.clients.s3.boto3_client import Client
from apache_beam.options.pipeline_options import PipelineOptions
from botocore.exceptions import ClientError
from s3_proxy import Proxy
from s3_server import BUCKET, S3Server
from wrong_clock import WrongClock

from quietcorpus.pipelines.environment.store_clients import clients_shared, patience
from quietcorpus.transforms.store_clock import StoreClock


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


# Requests to S3 are dated by its clock, once it has refused this machine's.


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[WrongClock]:
    """A clock that can be wrong, in a process that is patient."""
    clock = WrongClock(monkeypatch)
    with patience():
        yield clock
    assert not StoreClock.ahead


def client_of(server: S3Server, identity: str, endpoint: str) -> Any:
    given = server.environment_of(identity)
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=given["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=given["AWS_SECRET_ACCESS_KEY"],
        region_name="us-east-1",
    )


def test_a_clock_that_jumps_and_is_set_right_again(
    s3: S3Server, clock: WrongClock, caplog: pytest.LogCaptureFixture
) -> None:
    # Kills: a refusal that is known by its error's name, which an answer to HEAD has not; a
    # difference in one direction alone; one that stays when the clock is right again; one that is
    # asked for at each request; a body that is sent from its end; a log that says nothing.
    client = client_of(s3, "full", s3.endpoint)
    client.put_object(Bucket=BUCKET, Key="dated", Body=b"first")
    for hours, minutes in ((1.0, 60), (-9.5, 570), (0.0, 0)):
        clock.hours = hours
        caplog.clear()
        assert client.head_object(Bucket=BUCKET, Key="dated")["ContentLength"] == 5
        client.put_object(Bucket=BUCKET, Key="dated", Body=f"{hours:05.1f}".encode())
        assert s3_content(client) == f"{hours:05.1f}".encode()
        (line,) = [one.getMessage() for one in caplog.records if "clock" in one.getMessage()]
        assert line.startswith(f"this machine's clock and a store's now differ by {minutes} min")
    clock.hours = 1.0
    client.put_object(Bucket=BUCKET, Key="dated", Body=b"again")
    clock.hours = 0.0
    assert s3_content(client) == b"again"


def s3_content(client: Any) -> bytes:
    content: bytes = client.get_object(Bucket=BUCKET, Key="dated")["Body"].read()
    return content


@pytest.mark.usefixtures("clock")
def test_another_refusal_is_asked_for_once(s3: S3Server) -> None:
    # Kills: a permission that is missing, for which a store is asked ten times.
    with Proxy(s3.endpoint) as proxy:
        Thread(target=proxy.serve_forever, daemon=True).start()
        client = client_of(s3, "reader", proxy.url)
        with pytest.raises(ClientError, match="AccessDenied"):
            client.put_object(Bucket=BUCKET, Key="never", Body=b"x")
        assert len(proxy.seen) == 1
        proxy.refused = re.compile("never")  # without a date
        proxy.status = (403, "RequestTimeTooSkewed")
        with pytest.raises(ClientError, match="RequestTimeTooSkewed"):
            client.put_object(Bucket=BUCKET, Key="never", Body=b"x")
        assert len(proxy.seen) == 2
        proxy.shutdown()


@pytest.mark.usefixtures("clock")
def test_a_clock_that_never_agrees_ends(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: a request that is repeated for ever, by a clock that always jumps.
    with Proxy(s3.endpoint) as proxy:
        monkeypatch.setattr(StoreClock, "learn", lambda *_: len(proxy.seen) < 30)
        Thread(target=proxy.serve_forever, daemon=True).start()
        client = client_of(s3, "reader", proxy.url)
        with pytest.raises(ClientError, match="AccessDenied"):
            client.put_object(Bucket=BUCKET, Key="never", Body=b"x")
        assert len(proxy.seen) == 10
        proxy.shutdown()
