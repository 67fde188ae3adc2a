"""The keys and the head of a ledger, as known from elsewhere than its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from ledger_requests import Refused, terms
from signed_ledgers import found, lay, signed
from signing_keys import KeyFiles, configured

from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.records import digest
from quietcorpus.pipelines.ledger.trust import Trust
from quietcorpus.transforms.errors import InputError


@pytest.mark.parametrize("name", ["next", "stranger"])
def test_another_key_is_not_the_ledgers(
    laid: Path, original: list[bytes], keys: dict[str, KeyFiles], name: str
) -> None:
    # Kills: a key of whoever checks that is not compared.
    lay(laid, original)
    said = found(laid, keys[name])
    assert said is not None
    assert f"and not by public key, which is {keys[name].key.public[:12]}" in said


def test_a_ledger_that_a_stranger_writes_anew_is_not_the_one_that_is_trusted(
    laid: Path, original: list[bytes], keys: dict[str, KeyFiles]
) -> None:
    """Replace all of it: not signed, signed by a stranger, and handed over to a trusted key.

    Kills: a key that is trusted because a record names it, though it has not signed that record.
    """
    stranger, trusted = keys["stranger"], keys["first"]
    bare = json.loads(original[0]) | {"schema_version": 1}
    del bare["key"], bare["signature"]
    unsigned = signed(bare, None)
    assert found(lay(laid, [unsigned])) is None  # it is in order: only who knows the key sees it
    said = found(laid, trusted)
    assert said is not None
    assert "is not signed, and public key says that it is" in said

    own = signed(json.loads(original[0]) | {"key": stranger.key.public}, stranger)
    assert found(lay(laid, [own])) is None
    said = found(laid, trusted)
    assert said is not None
    assert f"is signed by {stranger.key.public[:12]}, and not by public key" in said

    handed = {
        **{name: json.loads(original[6])[name] for name in ("created", "nonce")},
        "schema_version": 3,
        "number": 1,
        "previous": digest(own),
        "record": "key",
        "key": trusted.key.public,
    }
    proofs: list[str | None] = [None, "0" * 128, json.loads(original[6])["proof"]]
    proofs.append(json.loads(original[0])["signature"])
    for proof in proofs:
        fields = handed if proof is None else handed | {"proof": proof}
        said = found(lay(laid, [own, signed(fields, stranger)]))
        assert said is not None
        assert "record 1: " in said
        assert "proof" in said


def test_a_cut_shows_by_the_head_alone(
    laid: Path, original: list[bytes], keys: dict[str, KeyFiles]
) -> None:
    # Kills: a head that is not compared, or only if it is the last record's.
    lay(laid, original)
    heads = [f"{number}:{digest(content)}" for number, content in enumerate(original)]
    assert Ledger.open(str(laid), Trust()).head == heads[-1]
    for count in range(1, len(original) + 1):
        lay(laid, original[:count])
        pin = keys["first"]
        assert found(laid, pin) is None
        for number, head in enumerate(heads):
            said = found(laid, pin, head)
            if number < count:
                assert said is None
                continue
            assert said is not None
            assert f"ends with record {count - 1}, and had record {number}: what came" in said
    assert "record 3 of" in str(found(laid, None, heads[2].replace("2:", "3:")))
    for wrong in ("7", "7:abc", heads[0].upper() + "0", "-1:" + "0" * 64, "00:" + "0" * 64):
        assert "expected head: is not the number" in str(found(laid, None, wrong))


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (lambda k: {"ledger_public_key": k["first"].public}, "would not be signed, and QUIETCOR"),
        (
            lambda k: {"ledger_key": k["then"].private, "ledger_public_key": k["first"].public},
            "would be signed by .*, and QUIETCORPUS_LEDGER_PUBLIC_KEY_FILE is",
        ),
    ],
)
def test_no_ledger_is_opened_that_its_own_key_would_refuse(
    tmp_path: Path,
    keys: dict[str, KeyFiles],
    files: Callable[[dict[str, KeyFiles]], dict[str, str]],
    said: str,
) -> None:
    # Kills: a ledger that is not signed though its public key is known.
    (tmp_path / "ledger").mkdir()
    place = str(tmp_path / "ledger")
    with configured(**files(keys)), Refused(place, said):
        Ledger.init(place, terms(tmp_path / "corpus"))


def test_a_public_key_of_the_environment_is_compared(
    laid: Path, original: list[bytes], keys: dict[str, KeyFiles]
) -> None:
    # Kills: a reader who compares no key unless it is given one.
    lay(laid, original)
    with configured(ledger_public_key=keys["then"].public):
        Ledger.open(str(laid))
    with (
        configured(ledger_public_key=keys["stranger"].public),
        pytest.raises(InputError, match="and not by QUIETCORPUS_LEDGER_PUBLIC_KEY_FILE"),
    ):
        Ledger.open(str(laid))
