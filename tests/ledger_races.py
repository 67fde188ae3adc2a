"""Processes that race to reserve from one ledger, some of which are killed.

    python tests/ledger_races.py PLACE ROUNDS [--kill]

Prints a JSON line a round: what the processes were told, and what the ledger holds.
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
from fractions import Fraction
from multiprocessing import get_context
from typing import Any

from mechanisms.guarantees import LimitedPrecision
from pipelines.ledger.book import Ledger, Request
from pipelines.ledger.caps import Cost, Terms
from transforms.errors import InputError

PROCESSES, CAP = 32, 20
_FORK = get_context("fork")


def request(release: str, epsilon: int, run: str = "0" * 32) -> Request:
    """What a release of one corpus asks for."""
    cost = Cost(LimitedPrecision(1, Fraction(epsilon)))
    return Request(release, run, "/corpus/part.parquet", f"/released/{release}", None, cost)


def terms(cap: int = CAP) -> Terms:
    """A corpus and one cap."""
    own = {"definition": "limited-precision", "precision": 1, "epsilon": cap}
    return Terms.model_validate({"corpus": "/corpus", "caps": [own]})


def race(place: str, *, kill: bool) -> dict[str, Any]:
    """One round on a ledger of its own."""
    opening = _FORK.Process(target=Ledger.init, args=(place, terms()))
    opening.start()  # no client of a store is carried over a fork
    opening.join()
    waiting, start = os.pipe()  # whose end all wait for: a lock would die with who holds it
    asked = {f"release-{number}": random.randint(1, 3) for number in range(PROCESSES)}
    racers, pipes = [], []
    for name, epsilon in asked.items():
        reading, telling = os.pipe()
        racer = _FORK.Process(target=_reserve, args=(place, name, epsilon, waiting, start, telling))
        racer.start()
        os.close(telling)
        racers.append(racer)
        pipes.append(reading)
    os.close(start)
    os.close(waiting)
    if kill:
        for racer in random.sample(racers, PROCESSES // 2):
            time.sleep(random.expovariate(PROCESSES / 0.2))
            assert racer.pid is not None
            os.kill(racer.pid, signal.SIGKILL)
    told = {}
    for name, reading, racer in zip(asked, pipes, racers, strict=True):
        with os.fdopen(reading) as stream:
            told[name] = stream.read()
        racer.join()
    found = _FORK.SimpleQueue()
    reader = _FORK.Process(target=_held, args=(place, found))
    reader.start()
    held = found.get()
    reader.join()
    return {"asked": asked, "told": told, "held": held}


def _reserve(place: str, name: str, epsilon: int, waiting: int, start: int, telling: int) -> None:
    os.close(start)
    ledger = Ledger.open(place)
    os.read(waiting, 1)
    try:
        ledger.reserve(request(name, epsilon))
        answer = "reserved"
    except InputError as error:
        answer = "refused" if "would pass the cap" in str(error) else str(error)
    os.write(telling, answer.encode())


def _held(place: str, found: Any) -> None:
    """What a ledger holds, which must be in order, and can go on."""
    try:
        ledger = Ledger.open(place)
        held = {one.release: int(one.cost.guarantee.epsilon) for one in _reservations(ledger)}
        left = CAP - sum(held.values())
        if left > 0:
            ledger.reserve(request("afterwards", left))
        found.put(held)
    except BaseException as error:
        found.put({"error": repr(error)})


def _reservations(ledger: Ledger) -> Any:
    return list(ledger.state.reservations.values())


def fault(result: dict[str, Any], *, kill: bool) -> str | None:
    """What is wrong with a round, if anything is."""
    asked, told, held = (result[key] for key in ("asked", "told", "held"))
    if "error" in held:
        return str(held["error"])
    used = sum(held.values())
    reserved = {name for name, answer in told.items() if answer == "reserved"}
    refused = {name for name, answer in told.items() if answer == "refused"}
    others = set(told.values()) - {"reserved", "refused"} - ({""} if kill else set())
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
    given = parser.parse_args()
    from apache_beam.io.filesystems import FileSystems
    from apache_beam.options.pipeline_options import PipelineOptions

    from pipelines.object_stores import stored

    FileSystems.set_options(PipelineOptions([]))
    if "://" in given.place:
        stored(f"{given.place}/record")  # loads the client, which takes long, and asks nothing yet
    for number in range(given.rounds):
        result = race(f"{given.place}/round-{number:05d}", kill=given.kill)
        found = fault(result, kill=given.kill)
        told = Counter(answer or "killed" for answer in result["told"].values())
        print(json.dumps({"round": number, "fault": found, **told}), flush=True)
        if found:
            sys.exit(1)


if __name__ == "__main__":
    main()
