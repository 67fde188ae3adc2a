"""A release whose corpus and output lie in a store, where its run has a claim."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from s3_server import BUCKET

if TYPE_CHECKING:
    from conftest import Workspace
    from s3_server import S3Server

OUTPUT = f"s3://{BUCKET}/claimed/out"
PREFIX = "claimed/out/"
CLAIM = "claimed/.out.claim"
SPEC: dict[str, Any] = {
    "input": {"path": f"s3://{BUCKET}/in/*.parquet"},
    "output": OUTPUT,
    "mechanism.vocabulary": {"public": f"s3://{BUCKET}/vocabulary.txt"},
}


def moved_to_store(workspace: Workspace, s3: S3Server) -> Workspace:
    """Give a workspace a corpus of two shards in the store, and nothing else there."""
    s3.empty()
    client = s3.client()
    workspace.environment |= s3.environment
    path = workspace.parquet({"text": ["quiet world"] * 6000}, row_group_size=3000)
    client.upload_file(str(path), BUCKET, "in/corpus.parquet")
    client.upload_file(str(workspace.folder / "vocabulary.txt"), BUCKET, "vocabulary.txt")
    workspace.spec(SPEC)
    return workspace
