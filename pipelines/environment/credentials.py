"""Secrets where others would see them: in an option, which goes into the job, or in a spec.

A machine shows its commands to all its users, a cluster shows its jobs' options on its pages and in
its logs, and a spec is kept and handed on. Secrets belong in the environment instead, or in files
that it names. The secrets that are recognised are the master key, the values that this environment
holds under a credential's name, and any value that is given to such a name.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from urllib.parse import unquote

from quietcorpus.pipelines.environment.keys import VARIABLE, configured_master_key
from quietcorpus.transforms.errors import InputError

_REMEDY = "set it in the environment of the launcher and of every worker"

# The names of credentials, in lower case and without separators, so that one pattern serves
# variables, Beam's options, and the properties of Spark, Flink, Hadoop and Java. Paths of files
# with secrets (GOOGLE_APPLICATION_CREDENTIALS) and mere identities (AWS_ACCESS_KEY_ID) are not
# secrets, and `spark.kubernetes.executor.secrets.NAME` is a place.
_CREDENTIAL = re.compile(
    r"secretaccesskey$|secretkey$|token$"  # AWS, S3 by Beam, by Hadoop (fs.s3a) and by Flink
    r"|connectionstring$|accountkey|storagekey$|storageaccesskey$|clientsecret"  # Azure; where
    r"|sharedaccess(?:key|signature)$|fsazuresas"  # there is no `$`, Hadoop adds the account
    r"|privatekey$|passw(?:or)?d$|passphrase$|authenticatesecret$"  # Google; Java; Spark
    r"|^sig$|signature$|apikey$|secret$|authorization$"  # signed addresses of Azure, AWS; others
)
_QUOTES = r"""["'\\\s]*"""
# A name, its separator, and the beginning of a value; also as {"name": N, "value": V}.
_NAMED = re.compile(
    rf"[\w.-]++(?={_QUOTES}(?:,{_QUOTES}value{_QUOTES})?[=:]{_QUOTES}[^\s\"'\\,;&}}\]])"
)
# RFC 3986, 3.2.1: userinfo. In a web address a name alone may be a token; in others it is a
# container's.
_PASSWORD = re.compile(r"://[^/?#\s:@]*:[^/?#\s@]+@|https?://[^/?#\s@]+@", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}")
_LONGEST_DECIMAL = 1 << 12  # bits
_NESTED = 3  # encodings within encodings: JSON in a URL's parameter in base64
_SHORTEST = 8  # a shorter value occurs by chance in many texts


def refuse_in_options(arguments: Sequence[str]) -> None:
    """Raise InputError if an argument for Beam holds a secret; the error repeats no value."""
    if not arguments:
        return
    secrets = _Secrets()
    option = ""
    for argument in arguments:
        value = argument
        if argument.startswith("--"):
            option, _, value = argument.partition("=")
        if found := secrets.found_in(option, value):
            named = option if option and not secrets.found_in("", option) else "an argument"
            raise InputError(
                f"{named}: a secret in a command is seen on the machine and logged with the job; "
                f"{_REMEDY} (it {found})"
            )


def refuse_in_spec(content: object) -> None:
    """Raise InputError if a spec's key or value holds a secret; the error repeats no value."""
    secrets = _Secrets()
    for place, key, text in _texts(content, "", set()):
        if found := secrets.found_in(key, text):
            raise InputError(
                f"{place or 'the spec'}: a secret in a spec is seen by all who read it; take it "
                f"out, and {_REMEDY} (it {found})"
            )


class _Secrets:
    """The secrets of this environment: the master key, and values under credentials' names."""

    def __init__(self) -> None:
        self._key = None
        with suppress(InputError):  # a bad key is refused where it is needed
            self._key = configured_master_key()
        self._held = {
            name: value
            for name, value in os.environ.items()
            if _names_a_secret(name) and len(value) >= _SHORTEST
        }

    def found_in(self, name: str, value: str) -> str | None:
        """Describe the secret in a value or its name, without repeating it; None without one."""
        readings = _readings(f"{name}={value}")
        if self._key and any(_holds_key(reading, self._key) for reading in readings):
            return "holds the master key"
        for variable, secret in self._held.items():
            if any(secret in reading for reading in readings):
                return f"holds what {variable} is set to"
        names = {found for reading in readings for found in _NAMED.findall(reading)}
        names |= {found for reading in readings for found in _paired(_json(reading))}
        if any(_names_a_secret(found) for found in names | ({name} if value else set())):
            return "gives a value to a name that credentials have"
        if any(_PASSWORD.search(reading) for reading in readings):
            return "has a password in an address"
        return None


def _holds_key(text: str, key: bytes) -> bool:
    lower = text.lower()
    digits = re.sub(r"[^0-9a-f]", "", lower.replace("0x", ""))  # whatever is between the digits
    numbers = re.sub(r"[^0-9]+", ",", text)
    return (
        key.hex() in digits
        or ",".join(map(str, key)) in numbers
        or str(int.from_bytes(key)) in numbers
        or base64.b32encode(key).decode().rstrip("=").lower() in lower
        or key.decode("latin-1") in text
        or os.fsdecode(key) in text
    )


def _json(text: str) -> object:
    """Parse the JSON object or list that a text holds; return None if it holds none."""
    starts = [place for place in (text.find("{"), text.find("[")) if place >= 0]
    if not starts:
        return None
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, min(starts))[0]
    except (ValueError, RecursionError):
        return None


def _paired(content: object) -> Iterator[str]:
    """Yield names that have a value beside them: in an object's fields, or next in a list."""
    if isinstance(content, dict):
        given = {str(key).lower(): value for key, value in content.items()}
        if given.get("value"):
            yield from (one for one in given.values() if isinstance(one, str))
    inner = list(content.values()) if isinstance(content, dict) else content
    if isinstance(inner, list):
        yield from (one for one in inner[:-1] if isinstance(one, str) and isinstance(content, list))
        for one in inner:
            yield from _paired(one)


def _names_a_secret(name: str) -> bool:
    return (
        name.upper().endswith(VARIABLE)
        or _CREDENTIAL.search(re.sub(r"[._-]", "", name.lower())) is not None
    )


def _readings(text: str) -> set[str]:
    """Return a text, and its readings once escapes, percent signs and base64 are undone."""
    found = new = {text}
    for _ in range(_NESTED):
        new = {reading for text in new for reading in _undone(text)} - found
        found = found | new
    return found


def _undone(text: str) -> Iterator[str]:
    yield unquote(text, encoding="latin-1")
    yield _ESCAPE.sub(lambda m: m[3] or chr(int(m[1] or m[2], 16)), text)
    # Tools that encode wrap their lines.
    unwrapped = re.sub(r"(?:\s|\\n)+", "", text)
    for run in {
        found
        for form in (text, unwrapped)
        for found in _BASE64.findall(form.replace("+", "-").replace("/", "_"))
    }:
        for start in range(4):  # base64 may begin after a path, whose letters look the same
            part = run[start:]
            part = part[: len(part) - (len(part) % 4 == 1)]
            yield base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode("latin-1")


def _texts(content: object, place: str, seen: set[int]) -> Iterator[tuple[str, str, str]]:
    """Yield the place, name and value of all that a spec holds; names first, without a value."""
    if isinstance(content, dict | list):
        if id(content) in seen:  # an alias of YAML's, which may even contain itself
            return
        seen.add(id(content))
    if isinstance(content, dict):
        for key, value in content.items():
            name = f"{key:x}" if isinstance(key, int) else str(key)
            yield place, name, ""
            yield from _texts(value, f"{place}.{name}" if place else name, seen)
    elif isinstance(content, list):
        for value in content:
            yield from _texts(value, place, seen)
    elif isinstance(content, int):
        yield place, place, f"{content:x}"  # hexadecimal, which Python writes at any length
        if content.bit_length() < _LONGEST_DECIMAL:
            yield place, place, str(content)
    else:
        yield place, place, str(content)
