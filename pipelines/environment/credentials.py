"""Secrets where others would see them: in an option, which goes into the job, or in a spec.

A machine shows its commands to all its users, a cluster shows its jobs' options on its pages and in
its logs, and a spec is kept and handed on. Secrets belong in the environment instead, or in files
that it names. The secrets that are recognised are the master key, the values that this environment
holds under a credential's name, any value that is given to such a name, and private keys.
"""

from __future__ import annotations

import base64
import datetime
import html
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from urllib.parse import unquote, unquote_plus

from quietcorpus.transforms.errors import InputError, key_shown

from .keys import VARIABLE, configured_master_key

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
    r"|encryptionkey$|clientprovidedkey$|oauth2credential$|fernetkey$"  # Hadoop's stores; Airflow
    r"|secretkeybase$|openaikey$|anthropickey$"
    r"|^sig$|signature$|apikey$|secret$|authorization$"  # signed addresses of Azure, AWS; others
)
# Short names that other things have, too (a pass of a loop, the shell's PWD), and such values.
_PERHAPS = re.compile(r"(?:(?:^|[._-])(?i:pass)|[a-z]Pass|(?i:pwd))$")
_HARMLESS = re.compile(r"[/~$.].*|[0-9]{1,2}|true|false|yes|no|on|off|none|null", re.I | re.S)
# A name, what separates it from its value, and the beginning of the value. Possessive quantifiers
# and a name's beginning keep the search linear.
_NAME = r"(?<![\w.-])([\w.-]++)"
_QUOTES = r"""["'\\\s]*+"""
_VALUE = r"([^\s\"'\\,;&}\]]{1,6})"
_TAG = r"<[^<>]{1,200}+>\s*+"
_NAMED = [
    re.compile(form)
    for form in (
        # NAME=V, NAME: V, {"name": NAME, "value": V}, <property name="NAME" value="V"/>
        rf"{_NAME}(?={_QUOTES}(?:,{_QUOTES})?(?:value{_QUOTES})?[=:]{_QUOTES}{_VALUE})",
        # <NAME>V</NAME>, and not a word in angle brackets
        rf"(?<=<){_NAME}(?=(?:\s[^<>]*+)?>\s*+([^\s<]{{1,6}})[^<]*+</)",
        # <entry key="NAME">V</entry>, <name>NAME</name><value>V</value>
        rf"{_NAME}(?=\s*+(?:[\"'\\]++\s*+>|(?:{_TAG}){{2,4}}+)\s*+([^\s<]{{1,6}}))",
        # ("NAME", "V")
        rf"{_NAME}(?=\\?[\"']\s*+,\s*+\\?[\"']{_VALUE})",
        # NAME V, of names that are no word of a sentence, and not $NAME or a file
        r"(?<![\w.$/{-])((?=-|\w*[._]|\w*[a-z][A-Z])[\w.-]++)"
        r"(?=[\"'\\]*+[ \t]++[\"'\\]*+([^\s\"'\\,;&}\])(|<>=:$-][^\s\"'\\,;&}\]]{0,5}))",
    )
]
# RFC 3986, 3.2.1: userinfo. In a web address a name alone may be a token; in others it is a
# container's.
_PASSWORD = re.compile(r"://[^/?#\s:@]*:[^/?#\s@]+@|https?://[^/?#\s@]+@", re.IGNORECASE)
# JSON's, C's and XML's
_ESCAPE = re.compile(
    r"\\x([0-9a-f]{2})|\\(?:u|U0000)([0-9a-f]{4})|(?:\\u\{|&#x)0*+([0-9a-f]{1,5})[;}]?"
    r"|&#0*+([0-9]{1,6});?|(&[a-z][a-z0-9]{1,31};)|\\([0-7]{1,3})|\\(.)",
    re.DOTALL | re.IGNORECASE,
)
# Private keys in PEM (RFC 7468), OpenSSH's, OpenPGP's, PuTTY's and age's forms, and the headers of
# an encrypted one (RFC 1421), whose content looks like any other random bytes.
_PRIVATE_KEY = re.compile(
    r"BEGIN[\s_]+(?:[A-Z0-9]+[\s_]+)*PRIVATE[\s_]+KEY|PuTTY-User-Key-File-\d|AGE-SECRET-KEY-1"
    r"|Proc-Type\W{1,8}4\W{1,8}ENCRYPTED|DEK-Info\W{1,8}[A-Z0-9]",
    re.IGNORECASE,
)
# Their content without the lines around it, in DER: PKCS#8 (RFC 5958), plain by its algorithms and
# encrypted by PKCS#5 or #12; PKCS#1's RSA keys; SEC 1's of curves (RFC 5915); OpenSSH's own.
_LENGTH = r"(?:[\x00-\x7f]|\x81.|\x82..)"
_ALGORITHM = (
    r"(?:\x09\x2a\x86\x48\x86\xf7\x0d\x01[\x01\x03][\x01\x0a]|\x07\x2a\x86\x48\xce|\x03\x2b\x65)"
)
_PRIVATE_KEY_BYTES = re.compile(
    rf"\x30{_LENGTH}(?:\x02\x01[\x00\x01]\x30{_LENGTH}\x06{_ALGORITHM}"
    rf"|\x30{_LENGTH}\x06[\x09\x0a]\x2a\x86\x48\x86\xf7\x0d\x01(?:\x05|\x0c\x01)"
    r"|\x02\x01\x00\x02(?:\x81[\x41-\xff]|\x82[\x01-\x08].)\x00|\x02\x01\x01\x04[\x1c-\x42])"
    r"|openssh-key-v1\x00",
    re.DOTALL,
)
# The shortest runs hold the shortest secret.
_HEXADECIMAL = re.compile(r"[0-9A-Fa-f]{16,}")
_BASE32 = re.compile(r"[A-Za-z2-7]{13,}")
_BASE64 = re.compile(r"[A-Za-z0-9_-]{11,}")
_LEGIBLE = re.compile(r"[^\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd]{8,}")
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


def refuse_in_spec(content: object, what: str = "spec") -> None:
    """Raise InputError if a spec's key or value holds a secret; the error repeats no value."""
    secrets = _Secrets()
    for place, key, text in _texts(content, "", set()):
        if found := secrets.found_in(key, text):
            raise InputError(
                f"{place or f'the {what}'}: a secret in a {what} is seen by all who read it; take "
                f"it out, and {_REMEDY} (it {found})"
            )


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without credentials, and without what quietcorpus reads a key from."""
    return {
        name: value
        for name, value in environment.items()
        if not (name.startswith("QUIETCORPUS_") or _gives_a_secret(name, value))
    }


class _Secrets:
    """The secrets of this environment: the master key, and values under credentials' names."""

    def __init__(self) -> None:
        self._key = None
        with suppress(InputError):  # a bad key is refused where it is needed
            self._key = configured_master_key()
        self._held = {
            name: _encoded(value)
            for name, value in os.environ.items()
            if _names_a_secret(name) and len(value) >= _SHORTEST
        }

    def found_in(self, name: str, value: str) -> str | None:
        """Describe the secret in a value or its name, without repeating it; None without one."""
        texts, decoded = _readings(f"{name}={value}")
        if self._key:
            raw = self._key.decode("latin-1")
            if any(_holds_key(text, self._key) for text in texts) or any(
                raw in data for data in decoded
            ):
                return "holds the master key"
        for variable, writings in self._held.items():
            if any(writing in one for one in texts | decoded for writing in writings):
                return f"holds what {variable} is set to"
        named = {(name, value)} if value else set()
        for text in texts:
            named.update(pair for form in _NAMED for pair in form.findall(text))
            named.update(_paired(_json(text)))
        if any(_gives_a_secret(*pair) for pair in named):
            return "gives a value to a name that credentials have"
        if any(map(_PRIVATE_KEY.search, texts)) or any(map(_PRIVATE_KEY_BYTES.search, decoded)):
            return "holds a private key"
        if any(_PASSWORD.search(text) for text in texts):
            return "has a password in an address"
        return None


def _encoded(secret: str) -> set[str]:
    """Return a secret and its bytes in common encodings, each byte as a letter of Latin-1."""
    writings = {secret}
    for encoding in ("utf-8", "utf-16-le", "utf-16-be", "latin-1"):
        errors = "surrogatepass" if "16" in encoding else "surrogateescape"
        with suppress(UnicodeEncodeError):
            writings.add(secret.encode(encoding, errors).decode("latin-1"))
    return writings


def _holds_key(text: str, key: bytes) -> bool:
    digits = re.sub(r"[^0-9a-f]", "", text.lower().replace("0x", ""))  # whatever is between them
    # Java's bytes have a sign; elsewhere "-" is between them.
    signed = re.sub(r"-([0-9]{1,3})(?![0-9])", lambda m: f",{-int(m[1]) % 256}", text)
    numbers = {re.sub(r"[^0-9]+", ",", form) for form in (text, signed)}
    return (
        key.hex() in digits
        or any(",".join(map(str, key)) in form for form in numbers)
        or any(str(int.from_bytes(key)) in form for form in numbers)
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


def _paired(content: object) -> Iterator[tuple[str, str]]:
    """Yield names with the value beside them: in an object's fields, or next in a list."""
    waiting = [content]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            value = {str(key).lower(): value for key, value in one.items()}.get("value")
            pairs = [(field, value) for field in one.values()] if value else []
            waiting.extend(one.values())
        elif isinstance(one, list):
            pairs = list(pairwise(one))
            waiting.extend(one)
        else:
            continue
        yield from (
            (name, "..." if isinstance(value, dict | list) else str(value))
            for name, value in pairs
            if isinstance(name, str)
        )


def _gives_a_secret(name: str, value: str) -> bool:
    if _PERHAPS.search(name):
        return _HARMLESS.fullmatch(value) is None
    return _names_a_secret(name)


def _names_a_secret(name: str) -> bool:
    return (
        name.upper().endswith(VARIABLE)
        or _CREDENTIAL.search(re.sub(r"[._-]", "", name.lower())) is not None
    )


def _readings(text: str) -> tuple[set[str], set[str]]:
    """Return a text and what it says once encodings are undone, and all bytes that were decoded.

    Bytes are given as Latin-1. Only what is legible in them is a text, which may hold names and
    further encodings, so that the work is in proportion to the text.
    """
    texts = new = {text}
    decoded: set[str] = set()
    for _ in range(_NESTED):
        data = {data for text in new for data in _decoded(text)}
        decoded |= {one.decode("latin-1") for one in data}
        found = {reading for text in new for reading in _unescaped(text)}
        for one in data:  # without the zeros of UTF-16
            found.update(_LEGIBLE.findall(one.replace(b"\0", b"").decode("utf-8", "replace")))
        new = found - texts
        texts = texts | new
    return texts, decoded


def _unescaped(text: str) -> Iterator[str]:
    yield unquote(text, encoding="latin-1")
    yield unquote_plus(text, encoding="latin-1")
    plain = _ESCAPE.sub(_character, text)
    yield plain.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")  # joins pairs


def _character(escape: re.Match[str]) -> str:
    if digits := escape[1] or escape[2] or escape[3]:
        return chr(int(digits, 16))
    if escape[4]:
        return chr(int(escape[4]))
    if escape[5]:
        return html.unescape(escape[5])
    return chr(int(escape[6], 8)) if escape[6] else escape[7]


def _decoded(text: str) -> Iterator[bytes]:
    """Yield what a text's runs of hexadecimal, base32 and base64 digits stand for."""
    # Tools that encode wrap their lines.
    forms = {text, re.sub(r"(?:\s|\\n)+", "", text)}
    forms = {form.replace("+", "-").replace("/", "_") for form in forms}
    # A run may begin after a path, whose letters look the same.
    for run in {run for form in forms for run in _HEXADECIMAL.findall(form)}:
        for part in (run, run[1:]):
            yield bytes.fromhex(part[: len(part) // 2 * 2])
    for run in {run for form in forms for run in _BASE32.findall(form)}:
        for start in range(8):
            part = run[start:].upper()
            part = part[: len(part) - (len(part) % 8 in (1, 3, 6))]
            yield base64.b32decode(part + "=" * (-len(part) % 8))
    for run in {run for form in forms for run in _BASE64.findall(form)}:
        for start in range(4):
            part = run[start:]
            part = part[: len(part) - (len(part) % 4 == 1)]
            yield base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _texts(content: object, place: str, seen: set[int]) -> Iterator[tuple[str, str, str]]:
    """Yield the place, name and value of all that a spec holds; names first, without a value."""
    if isinstance(content, dict | list):
        if id(content) in seen:  # an alias of YAML's, which may even contain itself
            return
        seen.add(id(content))
    if isinstance(content, dict):
        for key, value in content.items():
            name = (
                f"{key:x}"
                if isinstance(key, int)
                else str(key)
                if isinstance(key, str | float)
                else ""
            )
            yield place, name, ""
            at = key_shown(name)
            yield from _texts(value, f"{place}.{at}" if place else at, seen)
    elif isinstance(content, list):
        for value in content:
            yield from _texts(value, place, seen)
    elif isinstance(content, int):
        yield place, place, f"{content:x}"  # hexadecimal, which Python writes at any length
        if content.bit_length() < _LONGEST_DECIMAL:
            yield place, place, str(content)
    elif isinstance(content, str | float | bytes | datetime.date | None):
        yield place, place, str(content)  # of all that YAML gives; nothing else is read
