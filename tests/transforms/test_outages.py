"""Outages and refusals, told apart by the exceptions that stores' clients raise."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest
from apache_beam.io.aws.clients.s3.messages import S3ClientError
from apache_beam.io.filesystem import BeamIOError
from azure.core.exceptions import HttpResponseError, ServiceRequestError
from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)
from google.api_core.exceptions import Forbidden, NotFound, ServiceUnavailable, TooManyRequests

from quietcorpus.transforms.errors import (
    InputError,
    StageError,
    StoreUnavailable,
    client_errors,
    redacted,
)
from quietcorpus.transforms.outages import outage


def of_boto(status: int, code: str) -> ClientError:
    answer = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "GetObject")


def by_beam(error: Exception, status: int | None) -> Exception:
    """The error as Beam's S3 client passes it on: a status, and what led to it as its context."""
    try:
        try:
            raise error
        except Exception as caught:
            raise S3ClientError(str(caught), status)  # noqa: B904 - as Beam does
    except S3ClientError as wrapped:
        return wrapped


def of_azure(status: int) -> HttpResponseError:
    error = HttpResponseError("said")
    error.status_code = status
    return error


PASSING: list[tuple[Callable[[], Exception], str]] = [
    (lambda: of_boto(503, "SlowDown"), "it answers 503 SlowDown"),
    (lambda: of_boto(400, "RequestTimeout"), "it answers 400 RequestTimeout"),
    (lambda: by_beam(of_boto(503, "503"), 503), "it answers 503"),
    (lambda: of_boto(403, "RequestTimeTooSkewed"), "its clock and this machine's differ"),
    (
        lambda: by_beam(of_boto(403, "RequestTimeTooSkewed"), 403),
        "its clock and this machine's differ",
    ),
    (
        lambda: S3ClientError("An error occurred (RequestTimeTooSkewed)", 403),
        "its clock and this machine's differ",
    ),
    (
        lambda: by_beam(EndpointConnectionError(endpoint_url="x"), None),
        "it does not answer",
    ),
    (
        lambda: BeamIOError(
            "listing", {"s3://a/b": by_beam(ReadTimeoutError(endpoint_url="x"), None)}
        ),
        "it does not answer",
    ),
    (lambda: BeamIOError("deleting", {"a": S3ClientError("slow", "SlowDown")}), "it answers with"),
    (lambda: ServiceUnavailable("said"), "it answers 503"),
    (lambda: TooManyRequests("said"), "it answers 429"),
    (lambda: of_azure(500), "it answers 500"),
    (lambda: ServiceRequestError("said"), "it does not answer (ServiceRequestError)"),
    (lambda: ConnectionResetError(errno.ECONNRESET, "said"), "it does not answer (ConnectionReset"),
    (TimeoutError, "it does not answer (TimeoutError)"),
]
LASTING: list[Callable[[], Exception]] = [
    # Kills: a deletion that is refused, taken for no answer.
    lambda: BeamIOError("deleting", {"a": S3ClientError("no", "AccessDenied")}),
    lambda: of_boto(403, "AccessDenied"),
    lambda: of_boto(404, "NoSuchKey"),
    lambda: of_boto(501, "NotImplemented"),
    lambda: by_beam(of_boto(403, "403"), 403),
    lambda: by_beam(NoCredentialsError(), None),
    lambda: BeamIOError("listing", {"s3://a/b": by_beam(of_boto(404, "404"), 404)}),
    lambda: BeamIOError("listing", {}),
    lambda: Forbidden("said"),
    lambda: NotFound("said"),
    lambda: of_azure(404),
    lambda: FileNotFoundError(errno.ENOENT, "said"),
    lambda: PermissionError(errno.EACCES, "said"),
    lambda: ValueError("said"),
]


@pytest.mark.parametrize(("make", "said"), PASSING)
def test_an_outage_is_unavailable(make: Callable[[], Exception], said: str) -> None:
    # Kills: a status that is not looked for in what Beam wraps, a throttling by its name alone, a
    # clock that is off and taken for a permission that is missing.
    assert (outage(make()) or "").startswith(said)
    with (
        pytest.raises(StoreUnavailable) as raised,
        client_errors("key: uri", "is missing; mend it"),
    ):
        raise make()
    assert str(raised.value).startswith(f"key: uri cannot be used now: {said}")
    assert str(raised.value).endswith("; run again later")


@pytest.mark.parametrize("make", LASTING)
def test_a_refusal_is_bad_input(make: Callable[[], Exception]) -> None:
    # Kills: a 403, a 404 or missing credentials that are retried for ever.
    assert outage(make()) is None
    with pytest.raises(InputError) as raised, client_errors("key: uri", "is missing; mend it"):
        raise make()
    assert str(raised.value) == "key: uri is missing; mend it"


def test_our_own_error_passes_whatever_led_to_it() -> None:
    # Kills: bad input that is taken for an outage, since one was being handled when it was raised.
    ours = InputError("mine")
    ours.__context__ = TimeoutError()
    with pytest.raises(InputError) as raised, client_errors("key: uri", "is missing"):
        raise ours
    assert raised.value is ours


def test_an_outage_in_a_worker_is_unavailable_there() -> None:
    # Kills: a worker's failure that the launcher cannot tell from a fault of the code.
    @redacted
    def process(secret: str):  # type: ignore[no-untyped-def]
        yield 1
        raise by_beam(of_boto(503, secret), 503)

    with pytest.raises(StageError) as raised:
        list(process("the patient's name"))
    assert type(raised.value) is StoreUnavailable
    assert "it answers 503; run again later" in str(raised.value)
    assert "patient" not in str(raised.value)
