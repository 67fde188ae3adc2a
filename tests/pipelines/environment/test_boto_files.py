"""Sessions of boto's share what they read, as long as the context lasts."""

from __future__ import annotations

import boto3
import pytest
from botocore.loaders import JSONFileLoader

from quietcorpus.pipelines.environment.boto_files import boto_files_shared


def test_a_second_session_reads_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: a megabyte of JSON for every file that is opened; a caller's boto that is left changed.
    read: list[str] = []
    usual = JSONFileLoader.load_file

    def noted(self: JSONFileLoader, path: str) -> object:
        read.append(path)
        return usual(self, path)

    monkeypatch.setattr(JSONFileLoader, "load_file", noted)

    def client() -> object:
        given = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "here"}
        return boto3.session.Session().client("s3", **given)

    with boto_files_shared():
        first = client()
        once = [*read]
        second = client()
    assert "endpoints" in " ".join(once)
    assert read == once
    assert first is not second
    assert JSONFileLoader.load_file is noted
    client()
    assert len(read) >= 2 * len(once)
