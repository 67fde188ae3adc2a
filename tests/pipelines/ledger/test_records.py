"""Records: their bytes, what is refused as one, and their schema."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from quietcorpus.mechanisms.accounting.guarantees import (
    DocumentPrivacy,
    LimitedPrecision,
    MetricPrivacy,
    SentencePrivacy,
    UserPrivacy,
)
from quietcorpus.mechanisms.words.brr import BinaryRandomizedResponse
from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.caps import Cost, Terms
from quietcorpus.pipelines.ledger.records import (
    Cancellation,
    Commit,
    ComparedIds,
    Opening,
    Partition,
    Refusal,
    Reservation,
    Sort,
    Unreadable,
    digest,
    drafted,
    new_nonce,
    parse,
    schema,
)
from quietcorpus.pipelines.ledger.refusals import Request

INDEX = "0123456789abcdef" * 4
CAPS: list[dict[str, Any]] = [
    {"definition": "limited-precision", "precision": 4, "epsilon": "20/3", "delta": 0.5},
    {"definition": "metric", "metric": "hamming", "index": INDEX, "epsilon": 50},
    {"definition": "sentence", "epsilon": 30},
    {"definition": "document", "epsilon": 6, "delta": 1e-5},
    {"definition": "user", "epsilon": 8, "delta": 1e-5},
]
COSTS = [
    Cost(LimitedPrecision(3, Fraction(1, 3), Fraction(1, 10**7))),
    Cost(MetricPrivacy(BinaryRandomizedResponse.metric, Fraction(5, 7)), INDEX),
    Cost(SentencePrivacy(Fraction(10)), "sentences of one"),
    Cost(DocumentPrivacy(Fraction(2), Fraction(1, 10**6))),
    Cost(UserPrivacy(Fraction(2), Fraction(1, 10**6), (("gold", Fraction(1)),)), "users of who"),
]


def request(release: str, cost: Cost) -> Request:
    return Request(release, "0" * 32, "/corpus/a.csv", f"/released/{release}", None, cost)


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Records of every kind, and of every guarantee, as a ledger wrote them."""
    folder = tmp_path_factory.mktemp("records") / "ledger"
    ledger = Ledger.init(str(folder), Terms.model_validate({"corpus": "/corpus", "caps": CAPS}))
    for number, cost in enumerate(COSTS):
        ledger.reserve(request(f"r{number}", cost))
    first = ledger.reserve(request("r0", COSTS[0]))
    ledger.commit(first, "a" * 32, "b" * 64)
    ledger.cancel("r1", "a trial, \u00fc\u4e2d")
    ledger.refuse(ledger.reserve(request("r2", COSTS[2])), "c" * 32)
    part = Partition("jan", Sort("compared", "case", "0" * 16))
    ledger.compare(ledger.reserve(replace(request("r5", COSTS[0]), partition=part)), b"\0" * 16)
    return [path.read_bytes() for path in sorted(folder.glob("*.json"))]


def edited(content: bytes, **fields: Any) -> bytes:
    """A record with other fields, written as records are."""
    return (json.dumps(json.loads(content) | fields, indent=1) + "\n").encode()


def test_a_record_is_its_bytes(contents: list[bytes]) -> None:
    # Kills: a field that is lost, rounded or rewritten on the way, another order of fields.
    kinds = [Opening, *[Reservation] * 5, Commit, Cancellation, Refusal, Reservation, ComparedIds]
    assert [type(parse(content)) for content in contents] == kinds
    for number, content in enumerate(contents):
        record = parse(content)
        assert record.to_bytes() == content
        assert record.number == number
        assert record.previous == (digest(contents[number - 1]) if number else None)
        assert record.created.utcoffset() is not None
    for content, cost in zip(contents[1:], COSTS, strict=False):
        found = parse(content)
        assert isinstance(found, Reservation)
        assert found.cost == cost
    cancelled, refused, _, compared = (parse(content) for content in contents[-4:])
    assert isinstance(cancelled, Cancellation)
    assert cancelled.reason == "a trial, \u00fc\u4e2d"
    assert isinstance(refused, Refusal)
    assert (refused.reservation, refused.identity) == (3, "c" * 32)
    assert isinstance(compared, ComparedIds)
    assert compared.identifiers_sha256 == hashlib.sha256(b"\0" * 16).hexdigest()


def test_a_record_with_whole_seconds_is_its_bytes(contents: list[bytes]) -> None:
    # Kills: a time that is written with six digits and read with none.
    content = edited(contents[0], created="2026-11-23T00:51:30Z")
    assert parse(content).to_bytes() == content


def test_exact_numbers_are_kept(contents: list[bytes]) -> None:
    # Kills: charges as floats, a converted charge without its theorem.
    found = parse(contents[1])
    assert isinstance(found, Reservation)
    (charged,) = found.charges
    assert (charged.account, charged.epsilon) == (0, "2/3")
    assert charged.charge.theorem == "group privacy, from N = 3"
    assert charged.charge.delta == Fraction(charged.delta) > Fraction(2, 10**7)
    opening = parse(contents[0])
    assert isinstance(opening, Opening)
    assert [cap.most.epsilon for cap in opening.caps] == [Fraction(20, 3), 50, 30, 6, 8]


@pytest.mark.parametrize("version", [5, 17, 10**30])
def test_a_newer_version_is_told_as_such(contents: list[bytes], version: int) -> None:
    # Kills: unknown keys of a newer version that are told first, or a version that is ignored.
    for content in contents:
        newer = edited(content, schema_version=version, weather="fair")
        with pytest.raises(Unreadable, match=rf"a newer version \(schema {version}\)"):
            parse(newer)


def test_a_record_is_all_of_its_bytes(contents: list[bytes]) -> None:
    # Kills: a parser that takes the beginning of a record, or one without its last byte, or that
    # stops at the end of the first object.
    for content in contents:
        parts = [content[:length] for length in range(len(content))]
        for other in (*parts, *(content + more for more in (content, b" ", b"\n", b"\0", b"{}"))):
            with pytest.raises(Unreadable):
                parse(other)


def test_unknown_and_missing_keys_are_refused(contents: list[bytes]) -> None:
    # Kills: `extra` that is ignored or allowed, in a record or in its parts; a default for what
    # each record must say.
    for content in contents:
        with pytest.raises(Unreadable, match="weather"):
            parse(edited(content, weather="fair"))
        fields = json.loads(content)
        for key in fields:
            without = {name: value for name, value in fields.items() if name != key}
            with pytest.raises(Unreadable):
                parse((json.dumps(without, indent=1) + "\n").encode())
    deeper = json.loads(contents[1])
    for part in (deeper["guarantee"], deeper["charges"][0]):
        part["weather"] = "fair"
        with pytest.raises(Unreadable):
            parse((json.dumps(deeper, indent=1) + "\n").encode())
        del part["weather"]


def test_the_same_values_in_other_bytes_are_refused(contents: list[bytes]) -> None:
    # Kills: a comparison of values for one of bytes, by which one record has many digests.
    for content in contents:
        fields = json.loads(content)
        turned = dict(reversed(fields.items()))
        others = [
            json.dumps(fields).encode(),
            json.dumps(fields, indent=1).encode(),
            json.dumps(fields, indent=2).encode() + b"\n",
            (json.dumps(turned, indent=1) + "\n").encode(),
            content.replace(b"\n", b"\r\n"),
            b"\xef\xbb\xbf" + content,
            content.decode().encode("utf-16"),
            content.replace(b'"nonce"', b'"nonce": "", "nonce"'),
            content.replace(b'"number"', b'"numbe\\u0072"'),
        ]
        for other in others:
            assert other != content
            with pytest.raises(Unreadable):
                parse(other)


@pytest.mark.parametrize(
    ("number", "fields"),
    [
        (0, {"caps": []}),
        (0, {"number": -1}),
        (0, {"number": "0"}),
        (0, {"created": "yesterday"}),
        (0, {"created": 0}),
        (0, {"nonce": "0" * 31}),
        (0, {"nonce": "G" * 32}),
        (0, {"previous": "0" * 63}),
        (0, {"record": "closing"}),
        (1, {"record": "commit"}),
        (1, {"release": "../../elsewhere"}),
        (1, {"release": ""}),
        (1, {"run": "0"}),
        (1, {"charges": []}),
        (1, {"guarantee": {"epsilon": 1.0}}),
        (6, {"reservation": 0}),
        (6, {"card_sha256": ""}),
        (6, {"identifiers_sha256": ""}),
        (7, {"reason": ""}),
        (7, {"reservation": "2"}),
        (8, {"reservation": 0}),
        (8, {"identity": ""}),
    ],
)
def test_bad_fields_are_refused(contents: list[bytes], number: int, fields: dict[str, Any]) -> None:
    # Kills: each check of a field.
    with pytest.raises(Unreadable):
        parse(edited(contents[number], **fields))


def test_versions_numbers_and_times_that_are_none_are_refused(contents: list[bytes]) -> None:
    # Kills: an older version, or text, that is taken for this one; a negative charge, by which
    # budget would come back, and text that is no number; a time without a zone, which cannot be
    # compared with the next one's; an exact epsilon that is not the one that is shown.
    reserved = json.loads(contents[1])
    (charged,), guarantee = reserved["charges"], reserved["guarantee"]
    versions = (0, -1, "1", "2", 1.0, 2.5, None, [1])
    bad = [edited(one, schema_version=version) for one in contents for version in versions]
    wrong: list[dict[str, Any]] = [
        *(
            {"charges": [charged | {key: number}]}
            for number in ("-1", "1/0", "0.5", "1e3", "+1", " 1", "nan", "", "1/")
            for key in ("epsilon", "delta")
        ),
        *({"created": f"2026-11-23T00:51:30{zone}"} for zone in ("", "+09:00")),
        *(
            {"guarantee": guarantee | {"epsilon_exact": exact}}
            for exact in ("-5", "1/0", "x", "", "5")
        ),
    ]
    for content in (*bad, *(edited(contents[1], **fields) for fields in wrong)):
        with pytest.raises(Unreadable):
            parse(content)


@pytest.mark.parametrize(
    "content",
    [b"", b"null", b"[]", b"1", b'"text"', b"{}", b"\xff\xfe", b"NaN", b"[" * 100_000, b"9" * 5000],
)
def test_other_content_is_refused(content: bytes) -> None:
    # Kills: an error of another kind for what is no object, no text, or too deep.
    with pytest.raises(Unreadable):
        parse(content)


def test_two_records_of_equal_fields_differ(contents: list[bytes]) -> None:
    # Kills: a nonce that repeats, or is left out: two writers' records would be one.
    fields = json.loads(contents[1])
    one, other = (drafted(fields | {"nonce": new_nonce()}).to_bytes() for _ in range(2))
    assert digest(one) != digest(other)
    assert drafted(json.loads(one)).to_bytes() == one
    assert len({new_nonce() for _ in range(1000)}) == 1000


PARTS = [
    (
        {"compared": "0" * 16, "disjoint": "compared", "identifier": "case"},
        Sort("compared", "case", "0" * 16),
    ),
    ({"disjoint": "declared"}, Sort("declared")),
    ({"disjoint": "unknown"}, Sort()),
    ({"compared": "0" * 16}, Sort()),  # an older one, as is the next
    ({}, Sort()),
]


def partitioned(content: bytes, part: dict[str, str], name: str | None = "jan") -> bytes:
    """A reservation of a partition: what is None is left out."""
    later = {key: value for key, value in part.items() if key != "compared"}
    return edited(content, partition=name, compared=part.get("compared"), **later)


@pytest.mark.parametrize(("part", "sort"), PARTS, ids=str)
def test_a_partition_says_of_which_sort_it_is(
    contents: list[bytes], part: dict[str, str], sort: Sort
) -> None:
    # Kills: an older record that cannot be read, or is taken for one of a sort that adds nothing;
    # a field that is read and not written, or the other way round.
    content = partitioned(contents[1], part)
    found = parse(content)
    assert isinstance(found, Reservation)
    assert found.to_bytes() == content
    assert found.part == Partition("jan", sort)
    assert found.is_older == ("disjoint" not in part)
    jsonschema.Draft202012Validator(schema()).validate(json.loads(content))


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("jan", {"disjoint": "compared"}),
        ("jan", {"disjoint": "compared", "identifier": "case"}),
        ("jan", {"disjoint": "compared", "compared": "0" * 16}),
        ("jan", {"disjoint": "declared", "compared": "0" * 16}),
        ("jan", {"disjoint": "unknown", "identifier": "case"}),
        ("jan", {"identifier": "case", "compared": "0" * 16}),
        ("jan", {"disjoint": "trusted"}),
        (None, {"disjoint": "declared"}),
        (None, {"compared": "0" * 16}),
    ],
    ids=str,
)
def test_a_partition_without_its_ground_is_refused(
    contents: list[bytes], name: str | None, part: dict[str, str]
) -> None:
    # Kills: each check of what a partition's fields say together.
    with pytest.raises(Unreadable, match="disjoint"):
        parse(partitioned(contents[1], part, name))


def test_the_schema_is_the_documented_one() -> None:
    # Kills: a schema that was not written again after a change.
    path = Path(__file__).parents[3] / "docs" / "reference" / "ledger.schema.json"
    assert path.read_text() == json.dumps(schema(), indent=2) + "\n"


def test_the_schema_accepts_what_is_written_and_nothing_else(contents: list[bytes]) -> None:
    # Kills: a schema of other types than those that are written, and one that accepts anything.
    jsonschema.Draft202012Validator.check_schema(schema())
    validator = jsonschema.Draft202012Validator(schema())
    for content in contents:
        fields = json.loads(content)
        validator.validate(fields)
        for bad in (
            fields | {"weather": "fair"},
            fields | {"number": -1},
            fields | {"schema_version": 4},
            fields | {"record": "closing"},
            {name: value for name, value in fields.items() if name != "previous"},
        ):
            assert not validator.is_valid(bad)
