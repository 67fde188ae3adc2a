"""The fold of the records against a model of its own, in any order of operations; and the sums."""

from __future__ import annotations

import hashlib
import json
import operator
import shutil
import tempfile
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from ledger_states import (
    CAPS,
    IDS,
    INDEX,
    LIMITS,
    ONE,
    SORTS,
    A,
    B,
    Cancelled,
    Committed,
    Compared,
    Event,
    Refused,
    Reserved,
    admitted,
    alone,
    bag,
    committed,
    common,
    compared,
    held,
    known,
    numbers,
    opened,
    price,
    refused,
    reservation,
    total,
)

from quietcorpus.mechanisms.accounting.filters import Concentrated
from quietcorpus.mechanisms.accounting.guarantees import (
    DocumentPrivacy,
    Guarantee,
    LimitedPrecision,
    MetricPrivacy,
    SentencePrivacy,
    UserPrivacy,
)
from quietcorpus.mechanisms.words.madlib import Madlib
from quietcorpus.pipelines.ledger import views
from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.caps import Charge, Cost, Terms
from quietcorpus.pipelines.ledger.plans import plan
from quietcorpus.pipelines.ledger.records import (
    Cancellation,
    Charged,
    Commit,
    Opening,
    Partition,
    Refusal,
    Reservation,
    new_nonce,
)
from quietcorpus.pipelines.ledger.refusals import Request
from quietcorpus.pipelines.ledger.state import Impossible, State
from quietcorpus.transforms.errors import InputError


def ledger_of(state: State) -> Ledger:
    ledger = Ledger("/nowhere")
    ledger._chain.state = state
    return ledger


def assert_not_less(state: State, exact: Fraction, cap: Fraction) -> None:
    """Assert that a reported sum, as number and text, errs against the publisher and by little."""
    (content,) = views.accounts(ledger_of(state))["accounts"]
    assert Fraction(content["used"]["epsilon_exact"]) == exact
    assert Fraction(content["left"]["epsilon_exact"]) == cap - exact
    assert exact <= Fraction(content["used"]["epsilon"]) <= exact * (1 + Fraction(1, 10**15))
    lines = views.account_lines(views.accounts(ledger_of(state)))
    (line,) = (one for one in lines if one.startswith(state.caps[0].title))
    said = [part.split()[0].rstrip(",") for part in line.split("epsilon ")[1:]]
    cap_text, used_text, left_text = (Fraction(Decimal(number)) for number in said)
    assert exact <= used_text <= exact * (1 + Fraction(1, 10**4))
    assert left_text <= cap - exact
    assert left_text >= (cap - exact) * (1 - Fraction(1, 10**4))
    assert cap_text >= cap


SCALES = st.integers(-12, 6).map(lambda power: Fraction(10) ** power)
EPSILONS = st.one_of(
    st.builds(lambda scale, digits: scale * digits, SCALES, st.integers(1, 9999)),
    st.fractions(Fraction(1, 10**12), 10**6),
)


@settings(deadline=None, max_examples=150)
@given(st.lists(EPSILONS, min_size=1, max_size=30), EPSILONS)
def test_sums_are_exact_at_any_scale(epsilons: list[Fraction], room: Fraction) -> None:
    # Kills: floats, a report that is rounded to the nearest or down, `left` rounded up.
    exact = sum(epsilons, Fraction(0))
    cap = exact + room
    state = opened([{"definition": "sentence", "epsilon": str(cap)}])
    for number, epsilon in enumerate(epsilons, 1):
        state.add(reservation(state, number, Cost(SentencePrivacy(epsilon), "s")))
    assert_not_less(state, exact, cap)


@pytest.mark.parametrize("power", [-12, -3, 0, 6])
def test_ten_thousand_releases_add_up_exactly(power: int) -> None:
    # Kills: an error that is too small to be seen in one release, a limit on the number of
    # releases; and a cap that is passed by less than a float can tell.
    count, unit = 10_000, Fraction(10) ** power
    cap = 10**6 + count * unit
    caps = [{"definition": "limited-precision", "precision": 1, "epsilon": str(cap)}]
    state = opened(caps)
    large, small = (Cost(LimitedPrecision(1, e)) for e in (Fraction(10**6), unit))
    state.add(reservation(state, 1, large))
    for _ in range(count):
        state.spend(state.charges(small, None), None)
    assert_not_less(state, cap, cap)
    with pytest.raises(InputError, match="would pass the cap"):
        state.charges(Cost(LimitedPrecision(1, Fraction(1, 10**30))), None)


@pytest.mark.slow
def test_ten_thousand_records_are_folded() -> None:
    # Kills: a fold whose sum drifts from that of its records.
    caps = [{"definition": "limited-precision", "precision": 1, "epsilon": 100}]
    state, exact = opened(caps), Fraction(0)
    for number in range(1, 10_001):
        epsilon = Fraction(number % 97 + 1, 10**4)
        exact += epsilon
        state.add(reservation(state, number, Cost(LimitedPrecision(1, epsilon))))
    assert len(state.reservations) == 10_000
    assert_not_less(state, exact, Fraction(100))


@pytest.mark.parametrize(
    ("definition", "guarantee"),
    [
        ("sentence", SentencePrivacy(Fraction(1))),
        ("user", UserPrivacy(Fraction(1), Fraction(1, 100))),
    ],
)
def test_another_unit_does_not_add(definition: str, guarantee: Guarantee) -> None:
    # Kills: releases of several splitters or columns in one sum; a unit that stays fixed once all
    # of its releases were given back, or that is forgotten as soon as one of them was.
    state = opened([{"definition": definition, "epsilon": 10, "delta": "1/10"}])
    state.add(reservation(state, 1, Cost(guarantee, "one")))
    state.charges(Cost(guarantee, "one"), None)
    with pytest.raises(InputError, match="are about one, and this one is about other; these do"):
        state.charges(Cost(guarantee, "other"), None)
    with pytest.raises(Impossible):
        state.add(reservation(state, 2, Cost(guarantee, "other")))
    state.add(reservation(state, 2, Cost(guarantee, "one")))
    state.add(Cancellation(**common(3), reservation=1, reason="a trial"))
    with pytest.raises(InputError, match="are about one, and this one is about other; these do"):
        state.charges(Cost(guarantee, "other"), None)
    state.add(Cancellation(**common(4), reservation=2, reason="a trial"))
    state.charges(Cost(guarantee, "other"), None)


def test_a_plan_refuses_what_would_be_refused(tmp_path: Path) -> None:
    # Kills: planned releases whose cost is added up, and whose unit is not looked at.
    (tmp_path / "words.txt").write_text("alpha\nbeta\ngamma\n")
    caps = [{"definition": "user", "epsilon": 1000, "delta": "1/10"}]
    terms = Terms.model_validate({"corpus": str(tmp_path / "corpus"), "caps": caps})
    ledger = Ledger.init(str(tmp_path / "ledger"), terms)
    paths = []
    for number, column in enumerate(["author", "author", "team"]):
        spec = {
            "release": f"r{number}",
            "input": {"path": str(tmp_path / "corpus" / "a.parquet")},
            "output": str(tmp_path / "out" / f"r{number}"),
            "ledger": ledger.uri,
            "mechanism": {
                "kind": "word-embeddings",
                "method": "cooccurrence",
                "user": column,
                "users": 300,
                "epsilon": 60,
                "delta": 1e-5,
                "vocabulary": {"public": str(tmp_path / "words.txt")},
                "dimensions": 3,
            },
        }
        paths.append(tmp_path / f"r{number}.yaml")
        paths[-1].write_text(json.dumps(spec))
    planned = plan([str(path) for path in paths])
    assert [one["refused"] is None for one in planned] == [True, True, False]
    assert "these do not add" in planned[2]["refused"]
    assert len(Ledger.open(ledger.uri).records) == 1


@pytest.mark.parametrize("tight", [0, 1, 2])
def test_every_account_must_bear_it(tight: int) -> None:
    # Kills: a check of the first account alone, or of the cheapest.
    caps = [
        {"definition": "limited-precision", "precision": n, "epsilon": 3 if place == tight else 99}
        for place, n in enumerate([2, 3, 4])
    ]
    state = opened(caps)
    state.add(reservation(state, 1, Cost(LimitedPrecision(4, Fraction(2)))))
    assert [state.used(account).epsilon for account in range(3)] == [2, 2, 2]
    with pytest.raises(
        InputError, match=rf"at N = {tight + 2}: epsilon 2 .*would pass the cap of 3"
    ):
        state.charges(Cost(LimitedPrecision(4, Fraction(2))), None)
    state.charges(Cost(LimitedPrecision(4, Fraction(1))), None)


def test_no_account_is_told_with_those_that_there_are() -> None:
    # Kills: a release that nothing bounds and is let through.
    state = opened([*ONE, {"definition": "sentence", "epsilon": 1}])
    with pytest.raises(InputError, match="no account for metric differential") as caught:
        state.charges(Cost(MetricPrivacy(Madlib.metric, Fraction(1)), INDEX), None)
    said = str(caught.value)
    assert "limited-precision privacy at N = 1; sentence-level privacy" in said
    assert INDEX in said


def test_a_cancellation_gives_back_exactly_what_was_charged() -> None:
    # Kills: a delta that stays, an account that is left out, another partition's charge.
    both: list[dict[str, Any]] = [
        {"definition": "limited-precision", "precision": n, "epsilon": 100, "delta": "1/10"}
        for n in (3, 7)
    ]
    state = opened(both)
    kept = Cost(LimitedPrecision(4, Fraction(1, 3), Fraction(1, 10**7)))
    state.add(reservation(state, 1, kept, A))
    before = [state.used(account) for account in range(2)]
    other = Cost(LimitedPrecision(3, Fraction(2, 7), Fraction(1, 10**6)))
    for number, part in enumerate([None, A, B], 2):
        state.add(reservation(state, 2 * number, other, part))
        assert [state.used(account) for account in range(2)] != before
        state.add(Cancellation(**common(2 * number + 1), reservation=2 * number, reason="trial"))
        assert [state.used(account) for account in range(2)] == before
        assert 2 * number not in state.reservations


def test_the_refusal_names_the_cap_what_is_used_and_by_which_releases() -> None:
    # Kills: numbers rounded down, the wrong account's, releases of another account, a list without
    # an end.
    caps = [{"definition": "limited-precision", "precision": 6, "epsilon": 10}]
    state = opened([*caps, {"definition": "sentence", "epsilon": 10}])
    state.add(reservation(state, 1, Cost(SentencePrivacy(Fraction(1)), "s")))
    with pytest.raises(InputError, match=r"the cap of 10: 0 is used; ask for less"):
        state.charges(Cost(LimitedPrecision(6, Fraction(11))), None)
    for number in range(2, 9):
        state.add(reservation(state, number, Cost(LimitedPrecision(6, Fraction(4, 3)))))
    with pytest.raises(InputError) as caught:
        state.charges(Cost(LimitedPrecision(4, Fraction(34, 100) + Fraction(1, 10**9))), None)
    assert str(caught.value) == (
        "ledger: limited-precision privacy at N = 6: epsilon 0.680001 (by group privacy, from "
        "N = 4) would pass the cap of 10: 9.33334 is used, by r4, r5, r6, r7, r8 and 2 more; ask "
        "for less, or end the schedule"
    )
    state.charges(Cost(LimitedPrecision(4, Fraction(1, 3))), None)  # which is all that is left


def test_records_that_no_ledger_can_hold() -> None:
    # Kills: each check of the fold.
    state = opened(ONE)
    good = reservation(state, 1, bag(4))
    with pytest.raises(Impossible):
        State().add(good)
    with pytest.raises(Impossible):
        state.add(Opening.model_validate(common(1) | {"corpus": "/c", "caps": ONE}))
    state.add(good)
    cheaper = Charged(account=0, epsilon="1", delta="0", theorem="")
    commit = Commit(
        **common(3), reservation=1, identity="0" * 32, card_sha256="0" * 64, identifiers_sha256=None
    )
    cancelled = Cancellation(**common(3), reservation=1, reason="a trial")
    impossible: list[Reservation | Commit | Cancellation] = [
        good,
        reservation(state, 2, bag(7)),
        reservation(state, 2, bag(3)).model_copy(update={"charges": [cheaper]}),
        reservation(state, 2, bag(3)).model_copy(update={"charges": [*good.charges] * 2}),
        commit.model_copy(update={"reservation": 2}),
        cancelled.model_copy(update={"reservation": 7}),
    ]
    for bad in impossible:
        before = (dict(state.reservations), dict(state.commits), state.used(0))
        with pytest.raises(Impossible):
            state.add(bad)
        assert (dict(state.reservations), dict(state.commits), state.used(0)) == before
    refusal = Refusal(**common(3), reservation=1, identity="0" * 32)
    other, third = opened(ONE), opened(ONE)
    for begun in (other, third):
        begun.add(good)
    other.add(cancelled)
    third.add(refusal)
    assert third.used(0) == Charge(Fraction(4))
    state.add(commit)
    each: list[Commit | Cancellation | Refusal] = [commit, cancelled, refusal]
    others = commit.model_copy(update={"identity": "1" * 32})
    for closed in (state, other, third):
        for late in [others, cancelled, refusal] if closed is third else each:
            with pytest.raises(Impossible, match="record 1 is not an open reservation"):
                closed.add(late)
    third.add(commit)  # of the run that was refused
    with pytest.raises(Impossible, match="record 1 is not an open reservation"):
        third.add(commit)
    other.add(replace_number(good, 4))


def replace_number(record: Reservation, number: int) -> Reservation:
    return record.model_copy(update={"number": number})


def test_a_released_request_is_a_value() -> None:
    # Kills: requests that are compared by identity, so that a run could never be resumed.
    asked = Request("r", "0" * 32, "/corpus/a", "/out/r", None, bag(1))
    assert replace(asked) == asked
    assert replace(asked, cost=bag(1)) == asked
    assert replace(asked, cost=bag(2)) != asked


# Any order of operations on a ledger, held against a model that finds out everything anew.


MEMORY = next((place for place in ("/dev/shm",) if Path(place).is_dir()), None)


AMOUNTS = st.builds(Fraction, st.integers(1, 9), st.sampled_from([1, 2, 3, 10**12]))
COSTS = st.one_of(
    st.builds(lambda n, e: Cost(LimitedPrecision(n, e)), st.sampled_from([1, 2, 5, 6, 9]), AMOUNTS),
    st.builds(
        lambda e, d: Cost(LimitedPrecision(6, e, d)),
        AMOUNTS,
        st.sampled_from([Fraction(1, 1000), Fraction(1, 3000)]),
    ),
    st.builds(
        lambda e, i: Cost(MetricPrivacy(Madlib.metric, e), i),
        AMOUNTS,
        st.sampled_from([INDEX, INDEX, INDEX[::-1]]),
    ),
    st.builds(lambda e, w: Cost(SentencePrivacy(e), w), AMOUNTS, st.sampled_from(["s", "t"])),
    st.builds(
        lambda e, w: Cost(UserPrivacy(e, Fraction(1, 4000)), w),
        AMOUNTS,
        st.sampled_from(["u", "v"]),
    ),
    st.builds(
        lambda e, d, noise: Cost(DocumentPrivacy(e, d), "", noise),
        st.builds(Fraction, st.integers(1, 9), st.just(10)),
        st.sampled_from([Fraction(1, 5000), Fraction(1, 9000)]),
        st.none()
        | st.builds(
            Concentrated,
            st.fractions(0, Fraction(1, 5), max_denominator=10**12),
            st.sampled_from([Fraction(0), Fraction(1, 8000)]),
        ),
    ),
)
NAMES = st.sampled_from([f"r{number}" for number in range(9)])
PARTITIONS = st.one_of(
    st.none(),
    st.builds(Partition, st.sampled_from(["a", "b"]), st.just(IDS)),
    st.builds(Partition, st.sampled_from(["a", "b"]), st.sampled_from(SORTS)),
)
HANDLES = st.integers(0, 2)
SHORT = st.sampled_from(["0", "1"])


class Operations(RuleBasedStateMachine):
    """Three processes on one ledger, each of which knows what it last read."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=MEMORY))
        self.place = str(self.folder / "ledger")
        terms = Terms.model_validate({"corpus": "/corpus", "caps": CAPS})
        self.handles = [Ledger.init(self.place, terms)]
        self.handles += [Ledger.open(self.place) for _ in range(2)]
        self.events: list[Event] = []

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.agree(Ledger.open(self.place))
            shutil.rmtree(self.folder)

    def seen(self, ledger: Ledger) -> list[Event]:
        return self.events[: len(ledger.records) - 1]

    @property
    def following(self) -> int:
        return len(self.events) + 1

    def views(self, ledger: Ledger) -> list[list[Event]]:
        """The events that a process decides by: those it knows, or all once it lost the race."""
        view = self.seen(ledger)
        return [view] if len(view) == len(self.events) else [view, self.events]

    @rule(at=HANDLES, name=NAMES, cost=COSTS, partition=PARTITIONS, run=SHORT)
    def reserve(
        self, at: int, name: str, cost: Cost, partition: Partition | None, run: str
    ) -> None:
        self.request(at, Request(name, run * 32, "/corpus/a", f"/out/{name}", partition, cost))

    @precondition(lambda self: bool(self.events))
    @rule(at=HANDLES, which=st.integers(0, 30))
    def resume(self, at: int, which: int) -> None:
        asked = [event.request for event in self.events if isinstance(event, Reserved)]
        self.request(at, asked[which % len(asked)])

    def request(self, at: int, request: Request) -> None:
        ledger = self.handles[at]
        for view in self.views(ledger):
            same = [e for e in held(view) if e.request.release == request.release]
            if same and same[0].request == request:
                assert ledger.reserve(request).number == same[0].number
                return
            if same or not admitted(view, request):
                with pytest.raises(InputError):
                    ledger.reserve(request)
                return
        number = self.following
        assert ledger.reserve(request).number == number
        self.events.append(Reserved(number, request))

    def reserved(self, ledger: Ledger, which: int) -> Reservation | None:
        """Return one of the reservations that a process knows."""
        asked = [event for event in self.seen(ledger) if isinstance(event, Reserved)]
        if not asked:
            return None
        record = ledger.records[asked[which % len(asked)].number]
        assert isinstance(record, Reservation)
        return record

    @precondition(lambda self: bool(self.events))
    @rule(at=HANDLES, which=st.integers(0, 30), identity=SHORT, card=SHORT)
    def commit(self, at: int, which: int, identity: str, card: str) -> None:
        ledger = self.handles[at]
        record = self.reserved(ledger, which)
        if record is None:
            return
        number = record.number
        own = hashlib.sha256(record.release.encode()).digest()[:16]
        made = (identity * 32, card * 64, own if record.disjoint == "compared" else None)
        for view in self.views(ledger):
            before = committed(view).get(number)
            if before == Committed(number, identity, card):
                assert ledger.commit(record, *made).reservation == number
                return
            other = refused(view).get(number, Refused(number, identity)).identity != identity
            if before or other or number not in numbers(view):
                with pytest.raises(InputError):
                    ledger.commit(record, *made)
                return
        assert ledger.commit(record, *made).number == self.following
        self.events.append(Committed(number, identity, card))

    @precondition(lambda self: bool(self.events))
    @rule(at=HANDLES, which=st.integers(0, 30))
    def compare(self, at: int, which: int) -> None:
        ledger = self.handles[at]
        record = self.reserved(ledger, which)
        if record is None or record.disjoint != "compared":
            return
        number = record.number
        own = hashlib.sha256(record.release.encode()).digest()[:16]
        for view in self.views(ledger):
            if number not in numbers(view):
                with pytest.raises(InputError):
                    ledger.compare(record, own)
                return
            if number in {*committed(view), *refused(view), *compared(view)}:
                ledger.compare(record, own)
                return
        ledger.compare(record, own)
        assert len(ledger.records) == self.following + 1
        self.events.append(Compared(number))

    @precondition(lambda self: bool(self.events))
    @rule(at=HANDLES, which=st.integers(0, 30), identity=SHORT, compared=st.booleans())
    def refuse(self, at: int, which: int, identity: str, compared: bool) -> None:
        ledger = self.handles[at]
        record = self.reserved(ledger, which)
        if record is None:
            return
        number = record.number
        for view in self.views(ledger):
            before = committed(view).get(number) or refused(view).get(number)
            if before and before.identity == identity:
                made = ledger.refuse(record, identity * 32, compared=compared)
                assert (made.reservation, type(made).__name__) == (
                    number,
                    "Commit" if number in committed(view) else "Refusal",
                )
                return
            if before or number not in numbers(view):
                with pytest.raises(InputError):
                    ledger.refuse(record, identity * 32)
                return
        made = ledger.refuse(record, identity * 32, compared=compared)
        assert made.number == self.following
        self.events.append(Refused(number, identity, compared))

    @precondition(lambda self: bool(self.events))
    @rule(at=HANDLES, name=NAMES)
    def cancel(self, at: int, name: str) -> None:
        ledger = self.handles[at]
        for view in self.views(ledger):
            now = [e for e in held(view) if e.request.release == name]
            if not now or now[0].number in {**committed(view), **refused(view)}:
                with pytest.raises(InputError):
                    ledger.cancel(name, "a run that died")
                return
        assert ledger.cancel(name, "a run that died").number == self.following
        self.events.append(Cancelled(now[0].number))

    @rule(at=HANDLES, rest=st.binary(max_size=9))
    def crash(self, at: int, rest: bytes) -> None:
        """A process dies, with a record half-written, and is started again."""
        path = Path(self.place, f".{self.following:08d}.json.{new_nonce()}")
        path.write_bytes(rest)
        self.handles[at] = Ledger.open(self.place)
        assert len(self.handles[at].records) == self.following

    @rule()
    def crash_before_the_seal(self) -> None:
        """The last writer dies between its record and the seal; nobody has seen the record yet."""
        Path(self.place, f"{self.following - 1:08d}.sha256").unlink(missing_ok=True)
        self.handles = [Ledger.open(self.place) for _ in self.handles]

    @rule(which=st.integers(0, 30), at=HANDLES)
    def doubled(self, which: int, at: int) -> None:
        """A record once more, at the end: it is told, by whoever opens and by whoever follows."""
        last = Path(self.place, f"{self.following:08d}.json")
        shutil.copy(Path(self.place, f"{which % self.following:08d}.json"), last)
        with pytest.raises(InputError, match=r"is damaged: (record|the seal)"):
            Ledger.open(self.place)
        fresh = Cost(LimitedPrecision(6, Fraction(1, 10**15)))
        asked = Request("fresh", "0" * 32, "/corpus/a", "/out/fresh", None, fresh)
        if all(admitted(view, asked) for view in self.views(self.handles[at])):
            with pytest.raises(InputError, match="is damaged: record"):
                self.handles[at].reserve(asked)
        last.unlink()
        last.with_suffix(".sha256").unlink(missing_ok=True)
        self.handles[at] = Ledger.open(self.place)

    @invariant()
    def all_agree(self) -> None:
        for ledger in getattr(self, "handles", []):
            self.agree(ledger)

    def agree(self, ledger: Ledger) -> None:
        """A state is what the model makes of as many events."""
        events, state = self.seen(ledger), ledger.state
        now, spent = held(events), committed(events)
        assert list(state.reservations) == [e.number for e in now]
        assert {n: (c.identity[0], c.card_sha256[0]) for n, c in state.commits.items()} == {
            n: (c.identity, c.card) for n, c in spent.items()
        }
        identities = {n: record.identity[0] for n, record in state.refusals.items()}
        assert identities == {n: one.identity for n, one in refused(events).items()}
        flags = {n: record.documents is None for n, record in state.refusals.items()}
        assert flags == {n: one.compared for n, one in refused(events).items()}
        ids = {n for n in spent if state.reservations[n].disjoint == "compared"}
        assert set(state.documents) == ids | (compared(events) & set(state.reservations))
        for account in range(len(CAPS)):
            used = state.used(account)
            assert (used.epsilon, used.delta, used.rho) == total(events, account)
            if all(known(e.request.partition) == alone(events, e) for e in now):
                assert not any(map(operator.gt, total(events, account), LIMITS[account]))
                stated = state.stated(account)
                assert stated.epsilon <= Fraction(CAPS[account]["epsilon"])
                assert stated.delta <= Fraction(CAPS[account].get("delta", 0))
            for part in ("a", "b"):
                parts = [e for e in now if alone(events, e) == part]
                charges = [price(account, e.request.cost) for e in parts]
                own = state.spent[account][part]
                assert own.epsilon == sum(charge[0] for charge in charges if charge)


TestOperations = pytest.mark.slow(Operations.TestCase)
# Kills: a charge forgotten, doubled or kept after a cancellation; a refused partition that is not
# charged to all, or still is once it is committed, or is though its ids were compared; a cap of one
# account alone; max for sum of partitions and the other way round; a decision by what was read long
# ago; a commit, a refusal or a cancellation twice; a seal that is not made up for; a record that is
# taken twice.
TestOperations.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
