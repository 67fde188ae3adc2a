"""Outages of stores and services, told from their refusals by what their clients raise.

Every client raises its own exceptions, and Beam wraps some of them. They are known by their HTTP
status and their names here, so that no client need be installed.
"""

from __future__ import annotations

from collections.abc import Iterator

_STATUSES = (408, 429, 500, 502, 503, 504, 507, 509)
_CODES = (
    "InternalError",
    "OperationTimedOut",
    "ProvisionedThroughputExceededException",
    "RequestThrottled",
    "RequestThrottledException",
    "RequestTimeout",  # S3 sends it with status 400
    "ServerBusy",
    "ServiceUnavailable",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequests",
    "TooManyRequestsException",
)
CLOCKS_DIFFER = "RequestTimeTooSkewed"
"""The answer of S3, with status 403, to a request that is dated a quarter of an hour off its own
clock. A machine's clock that jumped is usually soon set right."""
_NO_ANSWER = (
    "ChunkedEncodingError",  # requests
    "ConnectionError",  # Python, requests, botocore
    "HTTPClientError",  # botocore: all that happens before there is an answer
    "IncompleteRead",  # http.client
    "IncompleteReadError",  # botocore, azure-core
    "ProtocolError",  # urllib3
    "RetryError",  # google-api-core, urllib3
    "ServiceRequestError",  # azure-core
    "ServiceResponseError",  # azure-core
    "Timeout",  # requests
    "TimeoutError",  # Python, urllib3
    "TransportError",  # google-auth
)
_REJECTED = (
    "AuthenticationFailed",
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidToken",
    "NoAuthenticationInformation",
    "SignatureDoesNotMatch",
    "TokenRefreshRequired",
    "UnrecognizedClientException",
)
"""The names by which stores reject credentials, whatever these may do."""
_NOT_RENEWED = (
    "CredentialRetrievalError",  # botocore, as the next ones
    "SSOTokenLoadError",
    "TokenRetrievalError",
    "UnauthorizedSSOTokenError",
    "RefreshError",  # google-auth
)
"""Errors of clients whose own source of credentials gives no new ones."""
_NOT_SENT = ("credentials", "validation failed", "Invalid")
"""Parts of boto's messages on requests that it did not send."""
_LONGEST_CHAIN = 8


class Requests:
    """The number of requests to stores that this process has repeated."""

    repeated = 0


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status in an error of boto, google-cloud-storage or azure, or None."""
    answer = getattr(error, "response", None)
    if isinstance(answer, dict):
        return int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)) or None
    for one in (error, answer):
        for name in ("status_code", "code"):
            if isinstance(found := getattr(one, name, None), int):
                return int(found)
    return None


def code_of(error: BaseException) -> str:
    """Return the store's own name for an error, or the error's type."""
    answer = getattr(error, "response", None)
    if isinstance(answer, dict):
        return str(answer.get("Error", {}).get("Code", ""))
    for name in ("error_code", "code"):
        if isinstance(found := getattr(error, name, None), str):
            return found
    return type(error).__name__


def rejected(error: BaseException) -> str | None:
    """Return by what name credentials were rejected, or not renewed; None for other errors.

    They expired, were revoked or are wrong: the same run may go on once they are renewed.
    """
    for one in _chain(error):
        code = code_of(one)
        if code in _REJECTED:
            return code
        if _is_beams(one) and (found := next((c for c in _REJECTED if c in str(one)), None)):
            return found
        for kind in type(one).__mro__:
            if kind.__name__ in _NOT_RENEWED:
                return kind.__name__
        if status_of(one) == 401:
            return "401"
    return None


def outage(error: BaseException) -> str | None:
    """Return how a store or service fails in a way that may pass; None for any other error."""
    if any(_names_clocks(one) for one in _chain(error)):
        return f"its clock and this machine's differ too much (403 {CLOCKS_DIFFER})"
    unanswered = None
    for one in _chain(error):
        status, code = status_of(one), code_of(one)
        if code in _CODES or status in _STATUSES:
            named = "" if code in (type(one).__name__, str(status)) else f" {code}"
            return f"it answers {status or 'with'}{named}"
        if status is not None:
            return None
        if unanswered is None and _is_unanswered(one):
            named = "" if _is_beams(one) else f" ({type(one).__name__})"
            unanswered = f"it does not answer{named}"
    return unanswered


def _names_clocks(error: BaseException) -> bool:
    """Return whether an error, or Beam's for it, with a status and no code, is about clocks."""
    return code_of(error) == CLOCKS_DIFFER or (_is_beams(error) and CLOCKS_DIFFER in str(error))


def _is_unanswered(error: BaseException) -> bool:
    """Return whether an error's class, or Beam's record of it, means that no store answered."""
    if _is_beams(error):
        named = isinstance(getattr(error, "code", None), str)  # by the store, which answered
        return not named and not any(word in str(error) for word in _NOT_SENT)
    return any(kind.__name__ in _NO_ANSWER for kind in type(error).__mro__)


def _is_beams(error: BaseException) -> bool:
    """Return whether it is Beam's own for S3; its retries raise it again, and lose its context."""
    return type(error).__name__ == "S3ClientError"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, and those that led to it, which Beam's wrappers may say more than."""
    waiting, seen = [error], 0
    while waiting and seen < _LONGEST_CHAIN:
        one = waiting.pop(0)
        seen += 1
        yield one
        details = getattr(one, "exception_details", None)  # a BeamIOError's, a path each
        if isinstance(details, dict):
            waiting += [found for found in details.values() if isinstance(found, BaseException)]
        led = one.__cause__ or one.__context__
        if led is not None:
            waiting.append(led)
