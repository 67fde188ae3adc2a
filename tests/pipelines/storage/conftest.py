"""An output in a real object store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from s3_server import BUCKET, S3Server

from quietcorpus.places import process_restored

OUTPUT = f"s3://{BUCKET}/claims/out"


@pytest.fixture
def output(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Its URI; nothing is there, or beside it."""
    s3.empty()
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    with process_restored():  # as a call of the API has it
        yield OUTPUT
