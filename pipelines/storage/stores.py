"""Objects of object stores, through the clients and credentials of Beam's file systems.

Conditional writes on object stores, by the clients and credentials of Beam's file systems.

If the answer to a write is lost, reading back settles whether it happened. So the content of a
write must be its caller's own, for instance by a random part.
"""

from __future__ import annotations

import functools
import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import NOT_FOUND
from typing import Any, Protocol

from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.outages import status_of

_LOGGER = logging.getLogger("quietcorpus.storage")

Versioned = tuple[bytes, str]
"""An object's content, and the version that a conditional write names."""
Aged = tuple[str, float]
"""The version of an object, and the seconds since it was written, by the store's own clock."""


class Stream(Protocol):
    """A source from which an object is written."""

    def read(self, size: int = -1) -> bytes: ...

    def tell(self) -> int: ...


class StoredObject(Protocol):
    """One object, which may not exist. Failures raise what the store's client raises."""

    @property
    def host(self) -> str:
        """Return the URL of the endpoint."""

    def read(self) -> Versioned | None:
        """Read the object, or return None if there is none."""

    def age(self) -> Aged | None:
        """Return the version and its age, or None if there is none; no clock of ours is asked."""

    def peek(self) -> None:
        """Read the object's first byte."""

    def put(self, content: bytes, replacing: str | None) -> None:
        """Write the object over version `replacing` alone; None requires that there is none."""

    def delete(self, version: str) -> None:
        """Delete the object if this version is there."""

    def upload(self, content: Stream) -> None:
        """Write the object from a stream, whatever lies there; if that fails, none is written."""

    def list_one(self) -> None:
        """List at most one object whose name begins with this one's."""

    def names(self) -> list[str]:
        """Return the names of the objects and folders in a folder, relative to it.

        This object's name is the folder's, with its slash. Names of folders end with a slash.
        """

    def abort_uploads(self, chosen: Callable[[str], bool]) -> None:
        """Discard the parts of chosen objects whose upload was not completed.

        Looks at the objects whose names begin with this one's, and asks about the URI of each.
        """


@functools.cache
def _s3_client(options: PipelineOptions) -> Any:
    """Make the client once: that takes longer than most requests, and threads may share it."""
    from apache_beam.io.aws.clients.s3.boto3_client import Client

    return Client(options).client


class _S3:
    def __init__(self, uri: str, options: PipelineOptions) -> None:
        from apache_beam.io.aws.s3io import parse_s3_path

        bucket, key = parse_s3_path(uri, object_optional=True)
        self._name = {"Bucket": bucket, "Key": key}
        self._options = options
        self._client = _s3_client(options)

    @property
    def host(self) -> str:
        return str(self._client.meta.endpoint_url)

    def read(self) -> Versioned | None:
        try:
            found = self._client.get_object(**self._name)
        except self._client.exceptions.NoSuchKey:
            return None
        return found["Body"].read(), found["ETag"]

    def age(self) -> Aged | None:
        try:
            found = self._client.get_object(**self._name)
        except self._client.exceptions.NoSuchKey:
            return None
        found["Body"].close()
        headers = found["ResponseMetadata"]["HTTPHeaders"]
        return found["ETag"], _seconds(found["LastModified"], headers)

    def peek(self) -> None:
        self._client.get_object(**self._name, Range="bytes=0-0")["Body"].read()

    def put(self, content: bytes, replacing: str | None) -> None:
        condition = {"IfNoneMatch": "*"} if replacing is None else {"IfMatch": replacing}
        self._client.put_object(**self._name, Body=content, **condition)

    def delete(self, version: str) -> None:
        self._client.delete_object(**self._name, IfMatch=version)

    def upload(self, content: Stream) -> None:
        from boto3.s3.transfer import TransferConfig

        # The caller uploads several files at once, in its own threads.
        self._client.upload_fileobj(content, **self._name, Config=TransferConfig(use_threads=False))

    def list_one(self) -> None:
        bucket, prefix = self._name.values()
        self._client.list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=1)

    def names(self) -> list[str]:
        bucket, prefix = self._name.values()
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=bucket, Prefix=prefix, Delimiter="/"
        )
        found: list[str] = []
        for page in pages:
            found += [one["Key"] for one in page.get("Contents", ())]
            found += [one["Prefix"] for one in page.get("CommonPrefixes", ())]
        return [name.removeprefix(prefix) for name in found]

    def abort_uploads(self, chosen: Callable[[str], bool]) -> None:
        bucket, prefix = self._name.values()
        pages = self._client.get_paginator("list_multipart_uploads").paginate(
            Bucket=bucket, Prefix=prefix
        )
        found = [(one["Key"], one["UploadId"]) for page in pages for one in page.get("Uploads", ())]
        for key, upload in found:
            if chosen(f"s3://{bucket}/{key}"):
                with suppress(self._client.exceptions.NoSuchUpload):  # it has ended meanwhile
                    self._client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload)


class _GoogleCloud:
    def __init__(self, uri: str, options: PipelineOptions) -> None:
        from apache_beam.io.gcp.gcsio import GcsIO, parse_gcs_path

        bucket, self._name = parse_gcs_path(uri, object_optional=True)
        self._options = options
        self._client = GcsIO(pipeline_options=options).client
        self._bucket = self._client.bucket(bucket)

    @property
    def host(self) -> str:
        # The client has no public name for its endpoint.
        return str(self._client._connection.API_BASE_URL)

    def read(self) -> Versioned | None:
        blob = self._bucket.get_blob(self._name)
        if blob is None:
            return None
        content = blob.download_as_bytes(if_generation_match=blob.generation)
        return content, str(blob.generation)

    def age(self) -> Aged | None:
        # No public call of the client returns a response's headers.
        url = self._client._connection.build_api_url(self._bucket.blob(self._name).path)
        response = self._client._http.request("GET", url)
        if response.status_code == NOT_FOUND:
            return None
        response.raise_for_status()
        found = response.json()
        written = datetime.fromisoformat(found["updated"])
        return str(found["generation"]), _seconds(written, response.headers)

    def peek(self) -> None:
        self._bucket.blob(self._name).download_as_bytes(start=0, end=0)

    def put(self, content: bytes, replacing: str | None) -> None:
        generation = int(replacing or 0)  # 0 requires that there is none
        blob = self._bucket.blob(self._name)
        blob.upload_from_string(
            content, content_type="application/octet-stream", if_generation_match=generation
        )

    def delete(self, version: str) -> None:
        self._bucket.blob(self._name).delete(if_generation_match=int(version))

    def upload(self, content: Stream) -> None:
        self._bucket.blob(self._name).upload_from_file(content)

    def list_one(self) -> None:
        list(self._client.list_blobs(self._bucket, prefix=self._name, max_results=1))

    def names(self) -> list[str]:
        found = self._client.list_blobs(self._bucket, prefix=self._name, delimiter="/")
        names = [blob.name for blob in found]  # the folders are known once this is done
        return [name.removeprefix(self._name) for name in (*names, *found.prefixes)]

    def abort_uploads(self, chosen: Callable[[str], bool]) -> None:
        """Do nothing: the store discards a resumable upload after a week."""


class _Azure:
    def __init__(self, uri: str, options: PipelineOptions) -> None:
        from apache_beam.io.azure.blobstorageio import BlobStorageIO, parse_azfs_path

        container, self._name = parse_azfs_path(uri, blob_optional=True)
        self._options = options
        service = BlobStorageIO(pipeline_options=options).client
        self._container = service.get_container_client(container)
        # Azure refuses an empty name, which stands for the whole container here.
        self._blob = service.get_blob_client(container, self._name or "-")

    @property
    def host(self) -> str:
        return str(self._blob.url)

    def read(self) -> Versioned | None:
        from azure.core.exceptions import ResourceNotFoundError

        try:
            found = self._blob.download_blob()
            return found.readall(), found.properties.etag
        except ResourceNotFoundError as error:
            if error.error_code == "BlobNotFound":
                return None
            raise

    def age(self) -> Aged | None:
        from azure.core.exceptions import ResourceNotFoundError

        headers: dict[str, str] = {}
        try:
            found = self._blob.get_blob_properties(
                raw_response_hook=lambda answer: headers.update(answer.http_response.headers)
            )
        except ResourceNotFoundError as error:
            if error.error_code == "BlobNotFound":
                return None
            raise
        return found.etag, _seconds(found.last_modified, headers)

    def peek(self) -> None:
        self._blob.download_blob(offset=0, length=1).readall()

    def put(self, content: bytes, replacing: str | None) -> None:
        from azure.core import MatchConditions

        condition: dict[str, Any] = {"overwrite": False}
        if replacing is not None:
            condition = {"overwrite": True} | {
                "etag": replacing,
                "match_condition": MatchConditions.IfNotModified,
            }
        self._blob.upload_blob(content, **condition)

    def delete(self, version: str) -> None:
        from azure.core import MatchConditions

        self._blob.delete_blob(etag=version, match_condition=MatchConditions.IfNotModified)

    def upload(self, content: Stream) -> None:
        self._blob.upload_blob(content, overwrite=True)

    def list_one(self) -> None:
        found = self._container.list_blobs(name_starts_with=self._name, results_per_page=1)
        next(iter(found), None)

    def names(self) -> list[str]:
        found = self._container.walk_blobs(name_starts_with=self._name, delimiter="/")
        return [one.name.removeprefix(self._name) for one in found]

    def abort_uploads(self, chosen: Callable[[str], bool]) -> None:
        """Do nothing: the store discards uncommitted blocks after a week."""


def _seconds(written: datetime, headers: Mapping[str, str]) -> float:
    """Return the age of an object at the time of a response; 0 if the response does not say it."""
    said = {name.lower(): value for name, value in headers.items()}.get("date")
    if said is None:
        return 0.0
    now = parsedate_to_datetime(said)
    if written.tzinfo is None:  # an emulator leaves out that it is UTC
        written = written.replace(tzinfo=UTC)
    return (now - written).total_seconds()


STORES: dict[str, Callable[[str, PipelineOptions], StoredObject]] = {
    "s3": _S3,
    "gs": _GoogleCloud,
    "azfs": _Azure,
}


_NO_OPTIONS = PipelineOptions([])
_ATTEMPTS = 8
_LONGEST_PAUSE_SECONDS = 0.5
_CONFLICTS = (409, 412)
_REFUSALS = (401, 403, 405, 501)


def is_supported(uri: str) -> bool:
    """Return whether a location is in a store with conditional writes."""
    return uri.split("://", maxsplit=1)[0] in STORES and "://" in uri


def stored(uri: str) -> StoredObject:
    """Return the object that a URI names; raises InputError without conditional writes."""
    # `FileSystems.set_options` (filesystems.py) has no public counterpart that reads the options.
    options = FileSystems._pipeline_options or _NO_OPTIONS
    scheme = uri.split("://", maxsplit=1)[0]
    if scheme not in STORES:
        raise InputError(
            f"{uri}: a store of this kind offers no conditional write, by which one run excludes "
            f"the others; use a local path, or one of {', '.join(STORES)}"
        )
    return STORES[scheme](uri, options)


def create_exclusively(uri: str, content: bytes) -> bool:
    """Create an object; False if another writer has created it with other content.

    Raises InputError for a store without conditional writes, and what the store's client raises
    where it fails: the object may then appear nevertheless, even later.
    """
    return _write(stored(uri), content, None)


def read(uri: str) -> Versioned | None:
    """Read an object's content and version, or return None if there is none."""
    return stored(uri).read()


def age(uri: str) -> Aged | None:
    """Return an object's version and its age in seconds, by the store's clock; None without one."""
    return stored(uri).age()


def names(folder: str) -> list[str]:
    """Return the names of the objects in a folder, without those of its subfolders."""
    # Some stores list the folder as well.
    return [name for name in stored(f"{folder}/").names() if name and not name.endswith("/")]


def folders(folder: str) -> list[str]:
    """Return the names of the folders in a folder, in order; what they hold is not listed."""
    found = (name.removesuffix("/") for name in stored(f"{folder}/").names() if name.endswith("/"))
    return sorted(name for name in found if name)


def replace(uri: str, content: bytes, version: str) -> bool:
    """Overwrite one version of an object; False if it has since changed, or is gone."""
    return _write(stored(uri), content, version)


def delete(uri: str, version: str) -> bool:
    """Delete one version of an object; False if it has since changed, or is gone."""
    target = stored(uri)
    try:
        target.delete(version)
    except Exception as error:
        if status_of(error) in (*_CONFLICTS, 404):
            return False
        raise
    return True


def upload(uri: str, chunks: Iterable[bytes]) -> None:
    """Write an object of any size, whatever lies there: all of it, or nothing if that fails."""
    stored(uri).upload(_Stream(chunks))


def abort_uploads(prefix: str, chosen: Callable[[str], bool] = lambda uri: True) -> None:
    """Discard the parts of chosen objects under a prefix whose upload was not completed.

    A process that is killed leaves them: no listing of objects shows them, and they are billed.
    """
    try:
        stored(prefix).abort_uploads(chosen)
    except Exception:  # not every store lists them, and not every key may do that
        _LOGGER.warning(
            "parts of uploads may be left at %s; let a lifecycle rule of the bucket discard them",
            prefix,
        )


class _Stream:
    """A stream of chunks for the stores' clients: reads are of full size, except at the end."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._held = bytearray()
        self._place = 0

    def read(self, size: int = -1) -> bytes:
        """Read `size` bytes, or what is left."""
        while size < 0 or len(self._held) < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._held += chunk
        content = bytes(self._held if size < 0 else self._held[:size])
        del self._held[: len(content)]
        self._place += len(content)
        return content

    def tell(self) -> int:
        """Return the number of bytes that were read."""
        return self._place


def _write(target: StoredObject, content: bytes, replacing: str | None) -> bool:
    for attempt in range(_ATTEMPTS):
        try:
            target.put(content, replacing)
        except Exception as error:
            if status_of(error) in _REFUSALS:
                raise
            found = target.read()
            if found is not None and found[0] == content:
                return True  # an earlier attempt succeeded, and its answer was lost
            if (found and found[1]) != replacing:
                return False
            # The object is unchanged: the conflicting write failed or was deleted, or the cause of
            # the error is unknown.
            if status_of(error) not in _CONFLICTS or attempt == _ATTEMPTS - 1:
                raise
            time.sleep(random.uniform(0, _LONGEST_PAUSE_SECONDS))  # noqa: S311
        else:
            return True
    raise AssertionError
