"""Reserve, commit, give back: what a run is granted, and what it is refused."""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from ledger_requests import (
    CARD,
    CHANGED,
    DECLARED,
    OTHER,
    RUN,
    TOLD,
    Refused,
    files,
    request,
    terms,
)

from quietcorpus.mechanisms.accounting.guarantees import LimitedPrecision, SentencePrivacy
from quietcorpus.pipelines.ledger import chain
from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.caps import Charge, Cost
from quietcorpus.pipelines.ledger.records import Partition
from quietcorpus.transforms.errors import InputError


def test_what_is_reserved_is_used_by_all_who_open(place: str) -> None:
    # Kills: a reservation that counts in its own process alone, or once it is committed.
    found = Ledger.open(place).reserve(request(place, "a"))
    assert Ledger.open(place).state.used(0) == Charge(Fraction(4))
    assert (found.number, found.release, found.cost) == (1, "a", request(place, "a").cost)
    Ledger.open(place).commit(found, RUN, CARD)
    ledger = Ledger.open(place)
    assert ledger.state.used(0) == Charge(Fraction(4))
    ledger.reserve(request(place, "b", 6))
    with Refused(place, r"epsilon 1 would pass the cap of 10: 10 is used, by a, b"):
        Ledger.open(place).reserve(request(place, "c", 1))


def test_the_same_run_goes_on_with_its_reservation(place: str) -> None:
    # Kills: a second charge, a resumed run that is refused at a full cap, a second record.
    first = Ledger.open(place).reserve(request(place, "a", 10))
    before = files(place)
    for _ in range(3):
        assert Ledger.open(place).reserve(request(place, "a", 10)) == first
    Ledger.open(place).commit(first, RUN, CARD)
    assert Ledger.open(place).reserve(request(place, "a", 10)) == first
    assert {name: files(place)[name] for name in before} == before
    assert Ledger.open(place).state.used(0) == Charge(Fraction(10))


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"run": OTHER}, "by another spec or under another master key, or"),
        # Its spec is another one as well, of course.
        ({"output": "/elsewhere", "run": OTHER}, "for another output, .*/out/a; name that output"),
        ({"partition": Partition("2026", DECLARED), "run": OTHER}, "of another partition, or"),
        ({"cost": Cost(LimitedPrecision(2, Fraction(3))), "run": OTHER}, "at another cost;"),
        ({"cost": Cost(LimitedPrecision(1, Fraction(4)))}, "at another cost;"),
        ({"cost": Cost(LimitedPrecision(2, Fraction(4), Fraction(1, 10**9)))}, "at another cost;"),
        ({"cost": Cost(LimitedPrecision(2, Fraction(4)), "whose")}, "at another cost;"),
        ({"cost": Cost(SentencePrivacy(Fraction(4)))}, "at another cost;"),
    ],
    ids=str,
)
@pytest.mark.parametrize("committed", [False, True])
def test_another_run_of_the_same_id_is_refused(
    place: str, changes: dict[str, Any], difference: str, committed: bool
) -> None:
    # Kills: each part of what makes a run the same; a difference that is told as another one; the
    # advice to give back what is spent, which would be refused.
    ledger = Ledger.open(place)
    found = ledger.reserve(request(place, "a"))
    if committed:
        ledger.commit(found, RUN, CARD)
    before = "is committed, and was" if committed else "was"
    back = "" if committed else ", or give the reservation back with `quietcorpus ledger release-"
    said = f"^ledger: release a {before} reserved on .* {difference}.* an id of its own{back}"
    for asked in (ledger, Ledger.open(place)):
        with Refused(place, said if back else f"{said}$"):
            asked.reserve(request(place, "a", **changes))


def test_a_commit_is_made_once(place: str) -> None:
    # Kills: a second record, other bytes under one reservation, a check of identity or card alone.
    ledger = Ledger.open(place)
    found = ledger.reserve(request(place, "a"))
    made = ledger.commit(found, RUN, CARD)
    before = files(place)
    assert ledger.commit(found, RUN, CARD) == made
    assert Ledger.open(place).commit(found, RUN, CARD) == made
    assert files(place) == before
    for identity, card in [(OTHER, CARD), (RUN, CHANGED), (OTHER, CHANGED)]:
        with Refused(place, "^ledger: release a is committed, of other documents or by other soft"):
            Ledger.open(place).commit(found, identity, card)
    with Refused(place, "^ledger: release a is committed, of other documents or by other soft"):
        Ledger.open(place).check_identity(found, OTHER)
    Ledger.open(place).check_identity(found, RUN)


def test_who_commits_without_knowing_of_another_commit_is_refused(place: str) -> None:
    # Kills: a decision by what was read before the race was lost.
    one = Ledger.open(place)
    found = one.reserve(request(place, "a"))
    other = Ledger.open(place)
    made = one.commit(found, RUN, CARD)
    with Refused(place, "is committed, of other documents"):
        other.commit(found, OTHER, CARD)
    assert other.commit(found, RUN, CARD) == made


def test_nothing_is_committed_once_it_was_given_back(place: str) -> None:
    # Kills: a run that goes on after its budget was given back, and a reservation of the same
    # release by somebody else that is taken for its own.
    run = Ledger.open(place)
    found = run.reserve(request(place, "a"))
    Ledger.open(place).cancel("a", "it died")
    with Refused(place, "^ledger: the reservation of a was given back meanwhile; nothing may be"):
        run.commit(found, RUN, CARD)
    again = Ledger.open(place).reserve(request(place, "a"))
    assert again.number > found.number
    with Refused(place, "given back meanwhile"):
        Ledger.open(place).commit(found, RUN, CARD)
    Ledger.open(place).commit(again, RUN, CARD)


def test_a_refusal_is_told_of_one_noise_alone(place: str) -> None:
    # Kills: a second charge for the same outcome, or another outcome that is told for nothing; a
    # decision by what was read before the race was lost.
    ledger = Ledger.open(place)
    found = ledger.reserve(request(place, "a"))
    late = Ledger.open(place)
    made = ledger.refuse(found, RUN)
    before = files(place)
    for handle in (ledger, late, Ledger.open(place)):
        assert handle.refuse(found, RUN) == made
    assert files(place) == before
    assert Ledger.open(place).state.used(0) == Charge(Fraction(4))
    assert ledger.reserve(request(place, "a")) == found
    ledger.check_identity(found, RUN)
    with Refused(place, TOLD):
        ledger.check_identity(found, OTHER)
    for handle in (ledger, late, Ledger.open(place)):
        with Refused(place, "^ledger: a has no reservation of this run"):
            handle.refuse(found, OTHER)


def test_what_was_refused_is_of_its_run_alone(place: str) -> None:
    # Kills: a reservation that pays for an outcome and for another run's release, or for an outcome
    # and for whatever is reserved next; a run that does not know that another was refused
    # meanwhile.
    ledger = Ledger.open(place)
    found = ledger.reserve(request(place, "a"))
    late = Ledger.open(place)
    ledger.refuse(found, RUN)
    for handle in (ledger, late, Ledger.open(place)):
        with Refused(place, TOLD):
            handle.commit(found, OTHER, CARD)
        with Refused(place, TOLD):
            handle.cancel("a", "it told nothing")
    with Refused(place, "would pass the cap of 10: 4 is used, by a;"):
        ledger.reserve(request(place, "b", 7))
    spent = ledger.commit(found, RUN, CARD)
    assert (ledger.refuse(found, RUN), ledger.state.used(0)) == (spent, Charge(Fraction(4)))


def test_what_was_committed_or_given_back_is_not_refused(place: str) -> None:
    # Kills: an outcome that is told beside the release that its budget has paid for, or for a
    # budget that another release has meanwhile.
    ledger = Ledger.open(place)
    first, second = (ledger.reserve(request(place, name)) for name in "ab")
    late = Ledger.open(place)
    ledger.commit(first, RUN, CARD)
    ledger.cancel("b", "it died")
    for handle in (ledger, late, Ledger.open(place)):
        for found, run in ((first, OTHER), (second, RUN)):
            with Refused(place, "^ledger: [ab] has no reservation of this run"):
                handle.refuse(found, run)


def test_what_is_given_back_can_be_spent_again(place: str) -> None:
    # Kills: a cancellation that gives back nothing, too much, or another's budget.
    ledger = Ledger.open(place)
    ledger.reserve(request(place, "a", 4))
    ledger.reserve(request(place, "b", 6))
    with Refused(place, "would pass the cap"):
        ledger.reserve(request(place, "c", 4))
    cancelled = ledger.cancel("a", "it died")
    assert (cancelled.reservation, cancelled.reason) == (1, "it died")
    assert Ledger.open(place).state.used(0) == Charge(Fraction(6))
    with Refused(place, "would pass the cap of 10: 6 is used, by b;"):
        ledger.reserve(request(place, "c", 5))
    ledger.reserve(request(place, "a", 4, run=OTHER))
    assert Ledger.open(place).state.used(0) == Charge(Fraction(10))


@pytest.mark.parametrize("reason", ["", " ", "\t\n"])
def test_a_reason_is_given(place: str, reason: str) -> None:
    # Kills: a cancellation that says nothing.
    Ledger.open(place).reserve(request(place, "a"))
    with Refused(place, "^reason: is empty"):
        Ledger.open(place).cancel("a", reason)


def test_what_may_have_been_published_is_not_given_back(place: str) -> None:
    # Kills: each of the two checks, one of which sees a release whose commit is lost.
    ledger = Ledger.open(place)
    first = ledger.reserve(request(place, "a"))
    second = ledger.reserve(request(place, "b"))
    ledger.commit(first, RUN, CARD)
    for asked in (ledger, Ledger.open(place)):
        with Refused(place, "^ledger: a is committed: it was published, or may have been"):
            asked.cancel("a", "it died")
    card = Path(second.output, "release.json")
    card.parent.mkdir(parents=True)
    card.write_text("{}")
    with Refused(place, f"^ledger: {second.output} holds a release; what was published is spent"):
        Ledger.open(place).cancel("b", "it died")
    card.unlink()
    Ledger.open(place).cancel("b", "it died")
    for name in ("b", "c"):
        with Refused(place, f"^ledger: there is no reservation of a release '{name}'"):
            Ledger.open(place).cancel(name, "it died")


def test_who_gives_back_without_knowing_of_a_commit_is_refused(place: str) -> None:
    # Kills: a cancellation that is decided by what was read before the race was lost.
    one, other = Ledger.open(place), Ledger.open(place)
    found = one.reserve(request(place, "a"))
    late = Ledger.open(place)
    one.commit(found, RUN, CARD)
    with Refused(place, "a is committed"):
        late.cancel("a", "it died")
    with Refused(place, "would pass the cap"):
        other.reserve(request(place, "b", 7))
    other.reserve(request(place, "b", 6))


def test_a_release_of_another_corpus_is_refused(place: str) -> None:
    # Kills: a comparison of prefixes for one of folders, of paths as written, or none.
    folder = Path(place).parent
    ledger = Ledger.open(place)
    for source in ("corpus-2/a.csv", "corpu/*.csv", "*.csv", "corpus/../other/a.csv", "c*/a.csv"):
        with Refused(place, "^ledger: .* counts the corpus .*, and input.path .* does not lie in"):
            ledger.reserve(request(place, "a", corpus=f"{folder}/{source}"))
    (folder / "corpus").mkdir()
    (folder / "link").symlink_to(folder / "corpus")
    for number, source in enumerate(["corpus", "corpus/deep/*/a.csv", "link/a.csv"]):
        ledger.reserve(request(place, f"r{number}", 1, corpus=f"{folder}/{source}"))


def test_object_stores_are_compared_by_prefix(tmp_path: Path) -> None:
    # Kills: a bucket or a folder whose name begins like the corpus's.
    ledger = Ledger.init(str(tmp_path / "ledger"), terms("s3://raw/texts"))
    uri = ledger.uri
    for source in ("s3://raw/texts-2/a", "s3://raw/*", "gs://raw/texts/a", "s3://raw-2/texts/a"):
        with Refused(uri, "does not lie in it; name the ledger of that corpus"):
            ledger.reserve(request(uri, "a", corpus=source))
    ledger.reserve(request(uri, "a", corpus="s3://raw/texts/2026/*.parquet"))


def test_a_ledger_is_opened_once(place: str) -> None:
    # Kills: caps that are changed by a second opening, with the same terms or others.
    folder = Path(place).parent
    Ledger.open(place).reserve(request(place, "a"))
    for caps in (terms(folder / "corpus"), terms(folder / "corpus", 100), terms("/other")):
        with Refused(place, "holds a ledger already; its caps stand, unless it is signed: see"):
            Ledger.init(place, caps)


@pytest.mark.parametrize("corpus", ["corpus", "corpus/*.csv", "corpus/ledger/deep", "."])
def test_no_ledger_is_opened_inside_its_corpus_or_around_it(tmp_path: Path, corpus: str) -> None:
    # Kills: a ledger that the next release reads as documents; a folder that is made all the same.
    (tmp_path / "corpus").mkdir()
    place = tmp_path / "corpus" / "ledger"
    with pytest.raises(InputError, match=f"^ledger: {place} overlaps with the corpus"):
        Ledger.init(str(place), terms(tmp_path / corpus))
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["corpus"]


class Clock(datetime):
    """A clock that can be set."""

    shown: datetime

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        assert tz is UTC
        return cls.shown


def test_a_clock_that_runs_backwards(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: times that decrease, a skew that is refused, a clock that is far off and is taken,
    # a comparison with the first record.
    monkeypatch.setattr(chain, "datetime", Clock)
    start = datetime.now(UTC) + timedelta(days=1)
    steps = [(0, 0), (10, 10), (5.01, 10), (9.99, 10), (10, 10), (20, 20), (15, 20)]
    for number, (minutes, written) in enumerate(steps):
        Clock.shown = start + timedelta(minutes=minutes)
        found = Ledger.open(place).reserve(request(place, f"r{number}", 1))
        assert found.created == start + timedelta(minutes=written)
    for minutes in (14.99, 10, -10_000):
        Clock.shown = start + timedelta(minutes=minutes)
        with Refused(place, r"^ledger: the clock says .* UTC, before the last record's .*; set"):
            Ledger.open(place).reserve(request(place, "last", 1))
        assert Ledger.open(place).reserve(request(place, "r0", 1)).number == 1
    created = [one.created for one in Ledger.open(place).records]
    assert created == sorted(created)


@pytest.mark.parametrize("exact", ["-5", "1/0", "x", "9"])
def test_a_last_record_of_another_guarantee_is_told(place: str, exact: str) -> None:
    # Kills: an error of another kind, or a charge that is not what the guarantee costs.
    Ledger.open(place).reserve(request(place, "a"))
    path = Path(place, "00000001.json")
    text = path.read_text().replace('"epsilon_exact": "4"', f'"epsilon_exact": "{exact}"')
    path.write_text(text)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_suffix(".sha256").write_text(f"{digest}  {path.name}\n")
    with Refused(place, "is damaged: record 1: "):
        Ledger.open(place)


def test_many_writers_in_turn_lose_nothing(place: str) -> None:
    # Kills: a handle that writes over, forgets or repeats what others wrote meanwhile.
    handles = [Ledger.open(place) for _ in range(4)]
    for number in range(10):
        handles[os.urandom(1)[0] % 4].reserve(request(place, f"r{number}", 1))
    for handle in handles:
        with pytest.raises(InputError, match="would pass the cap of 10: 10 is used"):
            handle.reserve(request(place, "more", 1))
    assert [one.number for one in Ledger.open(place).records] == list(range(11))
