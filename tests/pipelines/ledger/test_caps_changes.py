"""Caps that change: by a signed record, from then on, never below what is used, or of a filter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from ledger_requests import CARD, RUN, Refused, request, terms
from signed_ledgers import chained, contents, lay
from signing_keys import KeyFiles, configured

from quietcorpus.pipelines.ledger import chain
from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.caps import Terms
from quietcorpus.pipelines.ledger.chain import Journal
from quietcorpus.pipelines.ledger.views import accounts, history
from quietcorpus.transforms.errors import CapReached, InputError

FILTERED = {"definition": "user", "composition": "zcdp", "epsilon": 4, "delta": 1e-6}
SENTENCES = {"definition": "sentence", "epsilon": 3}
INDEX = "0123456789abcdef" * 4
WORDS = {"definition": "metric", "metric": "euclidean", "index": INDEX, "epsilon": 9}


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> KeyFiles:
    return KeyFiles(tmp_path_factory.mktemp("key"), "key")


@pytest.fixture
def place(tmp_path: Path, key: KeyFiles) -> Iterator[str]:
    """A signed ledger with a cap of 10, of which 4 are used."""
    with configured(ledger_key=key.private):
        made = str(tmp_path / "ledger")
        Ledger.init(made, terms(tmp_path / "corpus")).reserve(request(made, "a"))
        yield made


def corpus(place: str) -> Path:
    return Path(place).parent / "corpus"


def several(place: str, *caps: dict[str, Any]) -> Terms:
    return Terms.model_validate({"corpus": str(corpus(place)), "caps": list(caps)})


def test_a_raised_cap_applies_from_then_on(place: str) -> None:
    # Kills: a cap that stays, that is read from the opening, or that applies to what was before.
    with Refused(place, "would pass the cap of 10"):
        Ledger.open(place).reserve(request(place, "b", 8))
    chain.change_caps(place, terms(corpus(place), 12), "more is asked for")
    Ledger.open(place).reserve(request(place, "b", 8))
    found = accounts(Ledger.open(place))["accounts"][0]
    assert (found["cap"]["epsilon_exact"], found["used"]["epsilon_exact"]) == ("12", "12")
    assert [event["says"] for event in history(Ledger.open(place))][2] == (
        "limited-precision privacy at N = 2: epsilon 12; more is asked for"
    )
    with pytest.raises(CapReached, match="would pass the cap of 12"):
        Ledger.open(place).reserve(request(place, "c", 1))


def test_what_was_reserved_before_a_cap_is_no_damage_once_it_is_lowered(place: str) -> None:
    # Kills: a check of every reservation against the last caps.
    ledger = Ledger.open(place)
    ledger.reserve(request(place, "b", 5))
    ledger.cancel("b", "a trial")
    chain.change_caps(place, terms(corpus(place), 4), "no more")
    assert Ledger.open(place).state.used(0).epsilon == 4
    with pytest.raises(CapReached, match="would pass the cap of 4"):
        Ledger.open(place).reserve(request(place, "c", 1))


@pytest.mark.parametrize("committed", [False, True])
def test_no_cap_goes_below_what_is_used(place: str, committed: bool) -> None:
    # Kills: a cap that is compared with what is committed alone, or not at all.
    ledger = Ledger.open(place)
    if committed:
        ledger.commit(ledger.state.reservations[1], RUN, CARD)
    with Refused(place, "N = 2: epsilon 4 is used or reserved, and a cap cannot be below that"):
        chain.change_caps(place, terms(corpus(place), 3), "less")
    chain.change_caps(place, terms(corpus(place), 4), "less")


def test_who_reserves_without_knowing_of_a_lower_cap_is_refused(place: str) -> None:
    # Kills: a decision by what was read before the race was lost.
    late = Ledger.open(place)
    chain.change_caps(place, terms(corpus(place), 6), "less")
    with pytest.raises(CapReached, match="would pass the cap of 6"):
        late.reserve(request(place, "b", 5))
    assert Ledger.open(place).state.used(0).epsilon == 4


def test_a_change_that_loses_a_race_is_decided_anew(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a cap below what another writer has reserved meanwhile.
    create = Journal.append

    def late(journal: Journal, content: bytes) -> bool:
        if b'"record": "caps"' in content and len(Ledger.open(place).records) == 2:
            Ledger.open(place).reserve(request(place, "b", 5))
        return create(journal, content)

    monkeypatch.setattr(Journal, "append", late)
    with pytest.raises(InputError, match="epsilon 9 is used or reserved"):
        chain.change_caps(place, terms(corpus(place), 6), "less")
    assert [one.record for one in Ledger.open(place).records][1:] == ["reservation"] * 2


def test_a_cap_under_a_filter_never_changes(tmp_path: Path, key: KeyFiles) -> None:
    # Kills: a filter that is raised, lowered, left, or entered on the way.
    place = str(tmp_path / "filtered")
    with configured(ledger_key=key.private):
        Ledger.init(place, several(place, FILTERED, SENTENCES))
        plain = {name: FILTERED[name] for name in ("definition", "epsilon", "delta")}
        for other in (
            FILTERED | {"epsilon": 5},
            FILTERED | {"epsilon": 3},
            FILTERED | {"delta": 1e-5},
            FILTERED | {"approximate_delta": 1e-8},
            FILTERED | {"composition": "gaussian"},
            plain,
        ):
            with Refused(place, "user-level privacy: a filter's theorem needs a cap and a compos"):
                chain.change_caps(place, several(place, other, SENTENCES), "another")
        entered = SENTENCES | {"composition": "zcdp", "delta": 1e-6}
        with Refused(place, "sentence-level privacy: a filter's theorem needs a cap and a compos"):
            chain.change_caps(place, several(place, FILTERED, entered), "another")
        chain.change_caps(place, several(place, FILTERED, SENTENCES | {"epsilon": 5}), "more")
        caps = Ledger.open(place).state.caps
        assert (caps[0].target.epsilon, caps[1].target.epsilon) == (4, 5)
        assert caps[0].most.rho == several(place, FILTERED).caps[0].most.rho


def test_the_accounts_are_final(tmp_path: Path, key: KeyFiles) -> None:
    # Kills: an account that is dropped, added, put elsewhere, or becomes another's; a change that
    # changes nothing; another corpus.
    place = str(tmp_path / "final")
    with configured(ledger_key=key.private):
        Ledger.init(place, several(place, SENTENCES, WORDS))
        more, user = SENTENCES | {"epsilon": 5}, {"definition": "user", "epsilon": 1}
        alike = WORDS | {"index": INDEX[:-1] + "0"}
        for caps in (
            [more],
            [WORDS, more],
            [more, WORDS, user],
            [more, WORDS | {"per": "document"}],
            [more, WORDS | {"metric": "hamming"}],
            [more, alike],  # its beginning, by which people know it, is the same
        ):
            with Refused(place, "its accounts are final: repeat each one, in the order of"):
                chain.change_caps(place, several(place, *caps), "another")
        with Refused(place, "the caps are in force already"):
            chain.change_caps(place, several(place, SENTENCES, WORDS), "none")
        with Refused(place, "is of the corpus .*; open another ledger for /other"):
            chain.change_caps(
                place, Terms.model_validate({"corpus": "/other", "caps": [more]}), "x"
            )
        with Refused(place, "^reason: is empty"):
            chain.change_caps(place, several(place, more, WORDS), " ")


def test_the_caps_of_a_ledger_that_is_not_signed_are_final(tmp_path: Path) -> None:
    # Kills: an act that anybody with access could have made.
    place = str(tmp_path / "ledger")
    with configured():
        Ledger.init(place, terms(tmp_path / "corpus"))
        with Refused(place, "is not signed, and the caps of such a ledger are final"):
            chain.change_caps(place, terms(tmp_path / "corpus", 12), "more")
        common = json.loads(contents(Path(place))[0])
        forged = {name: common[name] for name in ("created", "nonce", "caps")}
        fields = forged | {"schema_version": 3, "record": "caps", "reason": "more"}
        fields["caps"] = terms(tmp_path / "corpus", 12).model_dump()["caps"]
        laid = (json.dumps(fields | {"number": 1, "previous": "0" * 64}, indent=1) + "\n").encode()
        lay(Path(place), chained([*contents(Path(place)), laid], 1, None))
        with pytest.raises(InputError, match="record 1: it is for a signed ledger, and no record"):
            Ledger.open(place)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epsilon": "3"}, "epsilon 4 is used or reserved"),
        ({"precision": 3}, "its accounts are final"),
        ({}, "the caps are in force already"),
    ],
)
def test_a_signed_record_of_caps_that_may_not_follow_is_damage(
    place: str, key: KeyFiles, changes: dict[str, Any], said: str
) -> None:
    # Kills: rules that hold where a record is written, and not where it is read.
    chain.change_caps(place, terms(corpus(place), 12), "more")
    records = contents(Path(place))
    fields = json.loads(records[2])
    before = {"epsilon": "10"} if not changes else {}
    fields["caps"][0] |= before | changes
    laid = (json.dumps(fields, indent=1) + "\n").encode()
    lay(Path(place), chained([*records[:2], laid], 2, key))
    with pytest.raises(InputError, match=f"is damaged: record 2: ledger: .*{said}"):
        Ledger.open(place)


def test_what_is_used_is_exact(place: str) -> None:
    # Kills: a cap that is compared with a rounded sum.
    ledger = Ledger.open(place)
    third = Fraction(1, 3)
    cost = request(place, "b").cost
    guarantee = replace(cost.guarantee, epsilon=third)
    ledger.reserve(replace(request(place, "b"), cost=replace(cost, guarantee=guarantee)))
    for epsilon, kept in (("4.3333", False), ("13/3", True)):
        own = {"definition": "limited-precision", "precision": 2, "epsilon": epsilon}
        wanted = several(place, own)
        if kept:
            chain.change_caps(place, wanted, "exact")
        else:
            with Refused(place, "is used or reserved"):
                chain.change_caps(place, wanted, "too low")
