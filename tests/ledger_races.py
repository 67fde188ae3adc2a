"""Processes that race to reserve from one ledger, some of which are killed.

    python tests/ledger_races.py PLACE ROUNDS [--kill] [--filter]

Prints a JSON line a round: what is wrong, if anything is, and what the processes were told.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from quietcorpus.mechanisms.accounting.filters import Concentrated
from quietcorpus.mechanisms.accounting.guarantees import LimitedPrecision, UserPrivacy
from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.caps import Cost, Terms
from quietcorpus.pipelines.ledger.refusals import Request
from quietcorpus.pipelines.storage.stores import stored
from quietcorpus.transforms.errors import InputError

PROCESSES, CAP = 32, 20
_UNIT = Fraction(1, 100)
"""Of rho, in an account under a filter, whose cap is as many units."""
_KILLED_WITHIN_SECONDS = (0.25, 4.0)
"""About as long as a round takes, on a disk and in a store."""
_FORK = get_context("fork")


def request(release: str, amount: int, *, filtered: bool = False) -> Request:
    """Build the request of a release of one corpus: of an epsilon, or of so many units of rho."""
    noise = Concentrated(amount * _UNIT)
    users = Cost(UserPrivacy(Fraction(amount), Fraction(1, 10**6)), "users of who", noise)
    cost = users if filtered else Cost(LimitedPrecision(1, Fraction(amount)))
    place = f"/released/{release}"
    return Request(release, "0" * 32, "/corpus/part.parquet", place, None, cost)


def terms(cap: int = CAP, *, filtered: bool = False) -> Terms:
    """A corpus and one cap."""
    own = {"definition": "limited-precision", "precision": 1, "epsilon": cap}
    if filtered:
        target = {"composition": "zcdp", "epsilon": 4, "delta": 1e-6, "rho": str(cap * _UNIT)}
        own = {"definition": "user"} | target
    return Terms.model_validate({"corpus": "/corpus", "caps": [own]})


class Helper:
    """A process of its own that answers; this one never talks to a store, so that it can fork."""

    def __init__(self, answer: Callable[[Connection], None]) -> None:
        self.killed = False
        self._mine, theirs = _FORK.Pipe()
        self.process = _FORK.Process(target=_serve, args=(answer, theirs, self._mine), daemon=True)
        self.process.start()
        theirs.close()

    def ask(self, what: Any) -> None:
        self._mine.send(what)

    def told(self) -> Any:
        """The answer; None of one that was killed before it could give it."""
        try:
            return self._mine.recv()
        except (EOFError, ConnectionResetError):
            return None

    def kill(self) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.killed = True

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self._mine.close()


def _serve(answer: Callable[[Connection], None], theirs: Connection, mine: Connection) -> None:
    mine.close()
    try:
        while True:
            answer(theirs)
    except EOFError:
        return


def _race(asked: Connection) -> None:
    """Open a ledger, wait for the start, and try to reserve."""
    place, name, amount, filtered = asked.recv()
    ledger = Ledger.open(place)
    asked.send("ready")
    asked.recv()
    try:
        ledger.reserve(request(name, amount, filtered=filtered))
        asked.send("reserved")
    except InputError as error:
        asked.send("refused" if "would pass the cap" in str(error) else str(error))


def _keep(asked: Connection) -> None:
    """Open a new ledger; or say what one holds, which must be in order, and can go on."""
    place, new, filtered = asked.recv()
    try:
        if new:
            Ledger.init(place, terms(filtered=filtered))
            asked.send({})
            return
        ledger = Ledger.open(place)
        held = {
            one.release: int(one.cost.guarantee.epsilon)  # type: ignore[union-attr]
            for one in ledger.state.reservations.values()
        }
        left = CAP - sum(held.values())
        if left > 0:
            ledger.reserve(request("afterwards", left, filtered=filtered))
        used = ledger.state.used(0)
        assert (used.rho / _UNIT if filtered else used.epsilon) == sum(held.values()) + max(left, 0)
        asked.send(held)
    except Exception as error:
        asked.send({"error": repr(error)})


def races(
    place: str, rounds: int, *, kill: bool, filtered: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield the outcome of each round: `asked`, `told` and `held`, by release."""
    FileSystems.set_options(PipelineOptions([]))
    if "://" in place:
        stored(f"{place}/record")  # loads the client, which takes long, and asks nothing yet
    keeper, racers = Helper(_keep), [Helper(_race) for _ in range(PROCESSES)]
    for number in range(rounds):
        ledger = f"{place}/round-{number:05d}"
        keeper.ask((ledger, True, filtered))
        opened = keeper.told()
        assert opened == {}, opened
        asked = {f"release-{n}": random.randint(1, 3) for n in range(PROCESSES)}
        for racer, (name, amount) in zip(racers, asked.items(), strict=True):
            racer.ask((ledger, name, amount, filtered))
        for racer in racers:
            racer.told()
        for racer in racers:
            racer.ask("go")
        if kill:
            for racer in random.sample(racers, PROCESSES // 2):  # whatever they are at
                within = _KILLED_WITHIN_SECONDS["://" in place]
                time.sleep(random.expovariate(PROCESSES / 2 / within))
                racer.kill()
        told = {name: racer.told() for name, racer in zip(asked, racers, strict=True)}
        racers = [_replaced(racer) if racer.killed else racer for racer in racers]
        keeper.ask((ledger, False, filtered))
        yield {"asked": asked, "told": told, "held": keeper.told()}
    for helper in (keeper, *racers):
        helper.end()


def _replaced(racer: Helper) -> Helper:
    """Another in the place of one that was killed."""
    racer.end()
    return Helper(_race)


def fault(result: dict[str, Any], *, kill: bool) -> str | None:
    """Describe the fault of a round, if there is one."""
    asked, told, held = (result[key] for key in ("asked", "told", "held"))
    if "error" in held:
        return str(held["error"])
    used = sum(held.values())
    reserved = {name for name, answer in told.items() if answer == "reserved"}
    refused = {name for name, answer in told.items() if answer == "refused"}
    others = set(told.values()) - {"reserved", "refused"} - ({None} if kill else set())
    room = bool(refused) and not kill and used + min(asked[name] for name in refused) <= CAP
    faults = {
        f"the cap was passed: {used}": used > CAP,
        "a reservation is not what was asked for": any(asked[n] != held[n] for n in held),
        f"lost: {reserved - held.keys()}": reserved - held.keys(),
        f"refused, and held: {refused & held.keys()}": refused & held.keys(),
        f"a process was told {others}": others,
        "refused, though there was room": room,
    }
    return next((said for said, wrong in faults.items() if wrong), None)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("place")
    parser.add_argument("rounds", type=int)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--filter", action="store_true")
    given = parser.parse_args()
    results = races(given.place, given.rounds, kill=given.kill, filtered=given.filter)
    for number, result in enumerate(results):
        found = fault(result, kill=given.kill)
        told = Counter(answer or "killed" for answer in result["told"].values())
        print(json.dumps({"round": number, "fault": found, **told}), flush=True)
        if found:
            sys.exit(1)


if __name__ == "__main__":
    main()
