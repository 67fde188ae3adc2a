"""The records of a ledger, and the partitions of a corpus that they name."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

import pydantic
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter

from quietcorpus.mechanisms.accounting.filters import Concentrated
from quietcorpus.transforms.errors import InputError

from ..card.parameters import Parameters, parameters
from ..schema.loading import first_line
from ..schema.values import Disjoint
from .caps import Cap, Charge, Cost


@dataclass(frozen=True)
class Sort:
    """The grounds, if any, on which partitions are known to be disjoint.

    Partitions of two sorts cannot be compared.

    Attributes:
        disjoint: `compared` if their ids are compared, `declared` if the publisher declares it,
            else `unknown`.
        column: the ids' column, where they are compared.
        key: a check value of the key under which the ids are digested, where they are compared.
    """

    disjoint: Disjoint = "unknown"
    column: str | None = None
    key: str | None = None

    def __str__(self) -> str:
        match self.disjoint:
            case "compared":
                return f"compared by the ids of the column {self.column!r}"
            case "declared":
                return "declared to share no document, and nothing checked it"
            case "unknown":
                return "added up, for want of ids or a declaration"


@dataclass(frozen=True)
class Partition:
    """The part of the corpus that a release's documents are.

    Attributes:
        name: the part's name.
        sort: the grounds on which it is known to be disjoint from the others.
    """

    name: str
    sort: Sort


def alone(partition: Partition | None) -> str | None:
    """Return a partition's name if others cost its documents nothing; None if they may."""
    return None if partition is None or partition.sort.disjoint == "unknown" else partition.name


def refuse_mixture(partition: Partition, others: Iterable[Sort]) -> None:
    """Raise InputError if a ledger's partitions are of another sort than this one."""
    mine = partition.sort
    for theirs in others:
        if (theirs.disjoint, theirs.column) != (mine.disjoint, mine.column):
            raise InputError(
                f"ledger.partition: other partitions are {theirs}, and {partition.name} is {mine}: "
                "documents in both would not be found; do the same, or leave ledger.partition "
                "out: the costs then add up"
            )
        if theirs != mine:
            raise InputError(
                "ledger.partition: the ids of other partitions were digested under another master "
                "key, so that none can be compared with them; use that key"
            )


SCHEMA_VERSION = 4
HEAD = r"^(0|[1-9][0-9]{0,7}):[0-9a-f]{64}$"
"""The pattern of the number of a record and its SHA-256, which tell of all records before it."""
_DIGEST = r"^[0-9a-f]{64}$"
_KEYED = r"^[0-9a-f]{32}$"
_RATIONAL = r"^[0-9]+(/[1-9][0-9]*)?$"
_SIGNATURE = r"^[0-9a-f]{128}$"
_PUBLIC_KEY = _DIGEST  # 32 bytes, too
_LATER = ("disjoint", "identifier", "documents", "noise", "key", "proof", "signature")
"""Fields that older records lack. Newer records omit them where they do not apply."""
# What precedes signed bytes, so that a signature of one kind is never one of another.
_OF_RECORD, _OF_KEY = b"quietcorpus ledger record\n", b"quietcorpus ledger key\n"
_RELEASE = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"


class Unreadable(Exception):
    """Content that is not a record; the message says why."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _utc(value: datetime) -> datetime:
    if value.utcoffset() != timedelta(0):
        raise ValueError("is not in UTC")
    return value


class _Record(_Part):
    schema_version: Literal[1] = 1
    number: int = Field(ge=0, description="its place in the ledger, which its name repeats")
    previous: str | None = Field(pattern=_DIGEST, description="SHA-256 of the record before")
    created: Annotated[AwareDatetime, AfterValidator(_utc)] = Field(description="UTC, ISO 8601")
    nonce: str = Field(pattern=r"^[0-9a-f]{32}$", description="which makes it its writer's own")
    signature: str | None = Field(
        None,
        pattern=_SIGNATURE,
        description="Ed25519, by the key in force, of the record without it; every record of a "
        "signed ledger has one",
    )

    def to_bytes(self) -> bytes:
        """Return the object's content."""
        later = {name for name in _LATER if getattr(self, name, None) is None}
        found = self.model_dump(mode="json", exclude=later)
        if self.signature is not None:
            found["signature"] = found.pop("signature")  # last, after all that it signs
        return (json.dumps(found, indent=1) + "\n").encode()

    @property
    def signed_content(self) -> bytes:
        """Return the bytes that its signature covers."""
        return _OF_RECORD + self.model_copy(update={"signature": None}).to_bytes()


class Opening(_Record):
    """The first record: the corpus whose releases are counted, and the caps on their cost."""

    schema_version: Literal[1, 2, 3] = 1  # type: ignore[assignment]
    record: Literal["opening"] = "opening"
    corpus: str = Field(description="the folder or prefix that every release's input lies in")
    caps: list[Cap] = Field(min_length=1)
    key: str | None = Field(
        None,
        pattern=_PUBLIC_KEY,
        description="the Ed25519 public key by which this record and all that follow are signed",
    )

    @pydantic.model_validator(mode="after")
    def _versioned(self) -> Self:
        """Check the version: older software stops at a filter, or at signatures."""
        if self.schema_version != version_of(self.caps, self.key):
            raise ValueError("schema_version: is not that of its caps and its key")
        return self


def version_of(caps: Sequence[Cap], key: str | None) -> int:
    """Return the version of an opening with these caps, and with this public key if it has one."""
    if key is not None:
        return 3
    return 2 if any(cap.rule for cap in caps) else 1


class Noise(_Part):
    """The cost of a release's Gaussian noise under a filter."""

    rho: str = Field(pattern=_RATIONAL, description="1 / (2 sigma^2), summed over its stages")
    delta: str = Field(pattern=_RATIONAL, description="the chance of what the noise does not cover")

    @classmethod
    def of(cls, noise: Concentrated) -> Noise:
        """Return the noise as it is recorded."""
        return cls(rho=str(noise.rho), delta=str(noise.delta))

    @property
    def cost(self) -> Concentrated:
        """Return the cost as a value."""
        return Concentrated(Fraction(self.rho), Fraction(self.delta))


class Charged(_Part):
    """The charge to one account."""

    account: int = Field(ge=0, description="the number of the cap, from 0")
    epsilon: str = Field(pattern=_RATIONAL)
    delta: str = Field(pattern=_RATIONAL)
    theorem: str = Field(description="by what it was converted, if it was")
    rho: str | None = Field(
        None, pattern=_RATIONAL, description="to an account under a filter, in place of epsilon"
    )

    @pydantic.model_serializer(mode="wrap")
    def _without_rho(self, plain: pydantic.SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out a rho that there is not, as earlier versions do."""
        found: dict[str, Any] = plain(self)
        return {name: value for name, value in found.items() if (name, value) != ("rho", None)}

    @classmethod
    def of(cls, account: int, charge: Charge) -> Charged:
        """Return the charge as it is recorded."""
        return cls(
            account=account,
            epsilon=str(charge.epsilon),
            delta=str(charge.delta),
            theorem=charge.theorem,
            rho=str(charge.rho) if charge.rho else None,
        )

    @property
    def charge(self) -> Charge:
        """Return the charge as a value."""
        rho = Fraction(self.rho or 0)
        return Charge(Fraction(self.epsilon), Fraction(self.delta), self.theorem, rho)


class Reservation(_Record):
    """A budget that a release may spend."""

    record: Literal["reservation"] = "reservation"
    release: str = Field(pattern=_RELEASE)
    run: str = Field(
        pattern=_KEYED, description="keyed digest of the spec: who resumes it has both"
    )
    output: str = Field(description="where the release will be")
    partition: str | None = Field(description="the part of the corpus that its documents are")
    guarantee: Parameters = Field(description="of the release, as its card states it")
    whose: str = Field(description="what its unit depends on: an index, a splitter, a column")
    compared: str | None = Field(
        None,
        pattern=r"^[0-9a-f]{16}$",
        description="of a partition with ids: tells the key under which they are digested",
    )
    charges: list[Charged] = Field(min_length=1)
    disjoint: Disjoint | None = Field(
        None,
        description="of a partition: how it is known that no other one has its documents; an older "
        "record does not say, and counts as unknown: it adds to what all others cost",
    )
    identifier: str | None = Field(
        None, description="of a partition with ids: the column that they are of"
    )
    noise: Noise | None = Field(
        None, description="what its Gaussian noise costs, where an account is under a filter"
    )

    @property
    def is_older(self) -> bool:
        """Return whether the record belongs to a partition, but does not say of which sort."""
        return self.partition is not None and self.disjoint is None

    @property
    def part(self) -> Partition | None:
        """Return the partition of the record, if it belongs to one."""
        if self.partition is None:
            return None
        if self.disjoint is None:
            return Partition(self.partition, Sort())
        return Partition(self.partition, Sort(self.disjoint, self.identifier, self.compared))

    @property
    def cost(self) -> Cost:
        """Return the cost of the release."""
        noise = self.noise.cost if self.noise else None
        return Cost(self.guarantee.guarantee, self.whose, noise)


class Commit(_Record):
    """The spending of a reservation, just before its release is published."""

    record: Literal["commit"] = "commit"
    reservation: int = Field(ge=1)
    identity: str = Field(pattern=_KEYED, description="keyed digest of all that its bytes are of")
    card_sha256: str = Field(pattern=_DIGEST, description="of release.json")
    identifiers_sha256: str | None = Field(
        pattern=_DIGEST, description="of the documents' ids, as keyed digests, of a partition"
    )


class ComparedIds(_Record):
    """The ids of a partition, found in no other one, before its noise is drawn."""

    record: Literal["comparison"] = "comparison"
    reservation: int = Field(ge=1)
    identifiers_sha256: str = Field(
        pattern=_DIGEST, description="of the documents' ids, as keyed digests"
    )


class Cancellation(_Record):
    """The cancellation of a reservation: nothing was published under it, and nothing can be."""

    record: Literal["cancellation"] = "cancellation"
    reservation: int = Field(ge=1)
    reason: str = Field(min_length=1)


class Refusal(_Record):
    """The spending of a reservation by a refusal that told its noisy outcome: it has no release."""

    record: Literal["refusal"] = "refusal"
    reservation: int = Field(ge=1)
    identity: str = Field(pattern=_KEYED, description="keyed digest of all that its noise is of")
    documents: Literal["unknown"] | None = Field(
        None, description="whether it may tell of other documents than those that were compared"
    )


class NewKey(_Record):
    """The key by which all that follow are signed: a ledger's first one, or the next one.

    A ledger's first one signs this record alone. The key before names the next one and signs this
    record, and the next one signs it as well: a reader who trusts the new key alone can trust the
    whole chain.
    """

    schema_version: Literal[3] = 3  # type: ignore[assignment]
    record: Literal["key"] = "key"
    key: str = Field(pattern=_PUBLIC_KEY, description="the Ed25519 public key")
    proof: str | None = Field(
        None,
        pattern=_SIGNATURE,
        description="of a key that follows another one: Ed25519, by the new key, of the record "
        "without it and without the signature",
    )

    @property
    def proven_content(self) -> bytes:
        """Return the bytes that the proof covers, which no signature covers."""
        return _OF_KEY + self.model_copy(update={"signature": None, "proof": None}).to_bytes()


class NewCaps(_Record):
    """A change of caps, which applies to what is reserved from here on; only if it is signed."""

    schema_version: Literal[3] = 3  # type: ignore[assignment]
    record: Literal["caps"] = "caps"
    caps: list[Cap] = Field(min_length=1, description="of the same accounts, in the same order")
    reason: str = Field(min_length=1)


class Adoption(Reservation):
    """A release that was published, and whose records the ledger has lost: its cost, spent.

    Its caps may be passed: what was published was spent.
    """

    schema_version: Literal[4] = 4  # type: ignore[assignment]
    record: Literal["adoption"] = "adoption"  # type: ignore[assignment]
    lost: str = Field(
        pattern=HEAD, description="the number and the SHA-256 of the record that its card names"
    )
    card_sha256: str = Field(pattern=_DIGEST, description="of release.json")
    reason: str = Field(min_length=1)

    @property
    def identity(self) -> str:
        """Return no run's identity: what was adopted cannot be made again."""
        return ""


class Restoration(_Record):
    """The acceptance of a ledger that has lost records, by a person who has counted what was lost.

    A head was kept elsewhere that the ledger lacks.
    """

    schema_version: Literal[4] = 4  # type: ignore[assignment]
    record: Literal["restoration"] = "restoration"
    lost: str = Field(pattern=HEAD, description="the head that was kept elsewhere")
    reason: str = Field(min_length=1)


class ClockReset(_Record):
    """The one record that may be dated before the last: a clock that was ahead dated that one."""

    schema_version: Literal[4] = 4  # type: ignore[assignment]
    record: Literal["clock"] = "clock"
    reason: str = Field(min_length=1)


AnyRecord = (
    Opening
    | Reservation
    | ComparedIds
    | Commit
    | Cancellation
    | Refusal
    | NewKey
    | NewCaps
    | Adoption
    | Restoration
    | ClockReset
)
_RECORD: TypeAdapter[AnyRecord] = TypeAdapter(Annotated[AnyRecord, Field(discriminator="record")])


def parse(content: bytes) -> AnyRecord:
    """Parse a record from its bytes; raises Unreadable for anything else."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise Unreadable("it is not JSON, or only half of it") from None
    version = found.get("schema_version") if isinstance(found, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise Unreadable(f"it was written by a newer version (schema {version})")
    try:
        record = _RECORD.validate_python(found)
    except pydantic.ValidationError as error:
        raise Unreadable(first_line(error)) from None
    if record.to_bytes() != content:  # digests are of bytes, so a record has one form alone
        raise Unreadable("it is not written as records are")
    if isinstance(record, Reservation):
        _check_numbers(record)
        _check_partition(record)
    return record


def _check_numbers(record: Reservation) -> None:
    """Check that the decimals of a guarantee agree with its rationals."""
    try:
        agree = parameters(record.guarantee.guarantee) == record.guarantee
    except (ValueError, ZeroDivisionError):
        agree = False
    if not agree:
        raise Unreadable("guarantee: its numbers do not agree")


def _check_partition(record: Reservation) -> None:
    """Check that a reservation's fields on its partition agree; an older record has fewer."""
    named = record.partition is not None
    ids = {record.identifier is not None, record.compared is not None}
    if record.disjoint is None:
        agree = record.identifier is None and (named or record.compared is None)
    else:
        agree = named and ids == {record.disjoint == "compared"}
    if not agree:
        raise Unreadable("disjoint: is not as its partition, ids and key are")


def drafted(fields: Mapping[str, Any]) -> AnyRecord:
    """Return the record with these fields."""
    return _RECORD.validate_python(dict(fields))


def digest(content: bytes) -> str:
    """Return the SHA-256 of a record's bytes, hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def new_nonce() -> str:
    """Draw a random nonce: two writers' records are never the same."""
    return secrets.token_hex(16)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a record."""
    content = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return content | _RECORD.json_schema()
