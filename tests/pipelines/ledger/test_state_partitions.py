"""The charges of partitions, their ids and their refusals, by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest
from ledger_states import (
    IDS,
    ONE,
    SORTS,
    A,
    B,
    C,
    bag,
    common,
    opened,
    reservation,
)

from quietcorpus.mechanisms.accounting.guarantees import LimitedPrecision, UserPrivacy
from quietcorpus.pipelines.ledger.caps import Charge, Cost
from quietcorpus.pipelines.ledger.records import (
    Cancellation,
    Commit,
    ComparedIds,
    Partition,
    Refusal,
    Sort,
)
from quietcorpus.pipelines.ledger.state import Impossible
from quietcorpus.transforms.errors import InputError


def test_partitions_by_hand() -> None:
    # Kills: sum for max over partitions, max over all releases, a partition that does not pay for
    # releases of all documents, delta and epsilon of one partition alone.
    state = opened(ONE)
    for number, (epsilon, part) in enumerate([(2, A), (3, A), (4, B), (1, None)], 1):
        state.add(reservation(state, number, bag(epsilon), part))
    assert state.used(0) == Charge(Fraction(6))  # 1 everywhere, and 2 + 3 of a
    assert state.used(0, Charge(Fraction(2)), B) == Charge(Fraction(7))  # 1, and 4 + 2 of b
    assert state.used(0, Charge(Fraction(2)), C) == Charge(Fraction(6))
    assert state.used(0, Charge(Fraction(2)), None) == Charge(Fraction(8))
    assert state.used(0) == Charge(Fraction(6))  # asking spends nothing
    state.charges(bag(4), A)
    with pytest.raises(InputError, match="would pass the cap of 10: 6 is used"):
        state.charges(bag(5), A)
    state.charges(bag(5), B)
    with pytest.raises(InputError, match="would pass the cap"):
        state.charges(bag(6), B)
    state.charges(bag(9), C)
    with pytest.raises(InputError, match="would pass the cap"):
        state.charges(bag(5), None)
    state.add(Cancellation(**common(5), reservation=2, reason="a trial"))
    assert state.used(0) == Charge(Fraction(5))  # now b is the most expensive


@pytest.mark.parametrize("sort", SORTS, ids=str)
def test_partitions_compose_in_parallel_on_a_ground_alone(sort: Sort) -> None:
    # Kills: a sum where the ids are compared or the publisher has declared, a maximum where neither
    # is so; a cancellation that gives back to another sum than it was charged to.
    state, sums = opened(ONE), sort.disjoint == "unknown"
    for number, (epsilon, name) in enumerate([(2, "a"), (4, "b"), (1, "a")], 1):
        state.add(reservation(state, number, bag(epsilon), Partition(name, sort)))
    assert state.used(0) == Charge(Fraction(7 if sums else 4))
    assert state.used(0, Charge(Fraction(2)), Partition("a", sort)) == Charge(
        Fraction(9 if sums else 5)
    )
    assert state.partitioned == [sort]
    for number in (1, 2, 3):
        state.add(Cancellation(**common(3 + number), reservation=number, reason="a trial"))
    assert state.used(0) == Charge(Fraction(0))
    assert state.partitioned == []


@pytest.mark.parametrize("sort", SORTS, ids=str)
@pytest.mark.parametrize("other", SORTS, ids=str)
def test_no_ledger_holds_partitions_of_two_sorts(sort: Sort, other: Sort) -> None:
    # Kills: a check that is made as a record is written and not as it is read.
    state = opened(ONE)
    state.add(reservation(state, 1, bag(1), Partition("a", sort)))
    second = reservation(state, 2, bag(1), Partition("b", other))
    if sort == other:
        state.add(second)
        return
    with pytest.raises(Impossible, match=r"^ledger\.partition: "):
        state.add(second)


def test_a_partition_with_ids_keeps_them() -> None:
    # Kills: a commit without digests, with which no later partition would be compared.
    state = opened(ONE)
    state.add(reservation(state, 1, bag(1), Partition("a", IDS)))
    fields = common(2) | {"reservation": 1, "identity": "0" * 32, "card_sha256": "0" * 64}
    with pytest.raises(Impossible, match="keeps no ids"):
        state.add(Commit(**fields, identifiers_sha256=None))
    assert state.commits == {}
    state.add(Commit(**fields, identifiers_sha256="0" * 64))


def test_ids_are_compared_once_and_stay_the_same() -> None:
    # Kills: each check of a comparison, and of the commit that follows it.
    state = opened(ONE)
    state.add(reservation(state, 1, bag(1), Partition("a", IDS)))
    state.add(reservation(state, 2, bag(1), Partition("b", IDS)))
    state.add(reservation(state, 3, bag(1)))

    def compared(of: int) -> ComparedIds:
        return ComparedIds(**common(4), reservation=of, identifiers_sha256="0" * 64)

    state.add(compared(1))
    state.add(Refusal(**common(5), reservation=2, identity="0" * 32))
    for bad, said in [(1, "compared already"), (2, "open"), (3, "has no ids"), (4, "open")]:
        with pytest.raises(Impossible, match=said):
            state.add(compared(bad))
    assert state.used(0) == Charge(Fraction(3))  # 1 + 1 of the ones of any document, and 1 of a
    fields = common(6) | {"reservation": 1, "identity": "0" * 32, "card_sha256": "0" * 64}
    for other in ("1" * 64, None):
        with pytest.raises(Impossible, match="ids"):
            state.add(Commit(**fields, identifiers_sha256=other))
    assert state.documents == {1: "0" * 64}
    state.add(Commit(**fields, identifiers_sha256="0" * 64))


def test_a_refusal_may_tell_of_other_documents_than_those_compared() -> None:
    # Kills: a comparison that covers documents which came after it, and a commit that takes back
    # what they were charged.
    state = opened(ONE)
    for number, name in enumerate("ab", 1):
        state.add(reservation(state, number, bag(2), Partition(name, IDS)))
        ids = ComparedIds(**common(4), reservation=number, identifiers_sha256=f"{number}" * 64)
        state.add(ids)
        state.add(
            Refusal(
                **common(5),
                reservation=number,
                identity="0" * 32,
                documents="unknown" if name == "a" else None,
            )
        )
    assert state.used(0) == Charge(Fraction(4))
    assert {part: one.epsilon for part, one in state.spent[0].items()} == {None: 2, "a": 0, "b": 2}
    fields = common(6) | {"identity": "0" * 32, "card_sha256": "0" * 64}
    state.add(Commit(**fields, reservation=1, identifiers_sha256="1" * 64))
    assert {part: one.epsilon for part, one in state.spent[0].items()} == {None: 2, "a": 0, "b": 2}
    for number, documents in [(3, "unknown"), (4, None)]:  # by runs that compared nothing before
        state.add(reservation(state, number, bag(1), Partition("c", IDS)))
        told = Refusal(**common(7), reservation=number, identity="0" * 32, documents=documents)
        state.add(told)
    assert state.spent[0][None].epsilon == 4
    for number in (3, 4):
        state.add(Commit(**fields, reservation=number, identifiers_sha256="3" * 64))
    assert (state.spent[0][None].epsilon, state.spent[0]["c"].epsilon) == (3, 1)


def test_delta_has_a_maximum_of_its_own() -> None:
    # Kills: the delta of the partition whose epsilon is largest.
    state = opened(ONE)
    small = Cost(LimitedPrecision(1, Fraction(1), Fraction(1, 20)))
    state.add(reservation(state, 1, bag(5), A))
    state.add(reservation(state, 2, small, B))
    assert state.used(0) == Charge(Fraction(5), Fraction(1, 20))
    state.charges(small, B)
    state.add(reservation(state, 3, small, B))
    with pytest.raises(InputError, match=r"delta 0\.05 would pass the cap of 0\.1: 0\.1 is used"):
        state.charges(small, B)
    state.charges(small, A)


def test_users_have_no_partitions() -> None:
    # Kills: a user who pays in one partition alone.
    state = opened([{"definition": "user", "epsilon": 10, "delta": "1/10"}])
    with pytest.raises(
        InputError, match=r"ledger\.partition: a user may have documents in several"
    ):
        state.charges(Cost(UserPrivacy(Fraction(1), Fraction(1, 100)), "u"), A)
