"""1,000 rounds of 32 processes that race for one cap, unharmed and killed, and a ledger's speed.

    python benchmarks/ledger.py [--rounds 1000]

All runs are on a folder, and on the S3 server of the tests, and those of signed ledgers on a folder
alone. The output is the number of rounds without a fault, and the time of a reservation against the
length of the ledger.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import ledger_races
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from ledger_races import request, terms
from s3_server import BUCKET, S3Server
from signing_keys import KeyFiles

from quietcorpus.pipelines.ledger.book import Ledger

LANES = {"folder": 1, "S3": 8}
"""The number of races at once: on the S3 server, writers of one object wait a second for each
other."""


@contextmanager
def places() -> Iterator[dict[str, str]]:
    """Yield a folder, and a prefix of an S3 server that is stopped afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        server = S3Server(Path(folder))
        server.start()
        os.environ.update(server.environment)
        try:
            yield {"folder": f"{folder}/ledgers", "S3": f"s3://{BUCKET}/ledgers"}
        finally:
            server.stop()


def without_fault(place: str, rounds: int, lanes: int, *options: str, **environment: str) -> str:
    """Report the number of rounds without fault, and the answers that processes got."""
    begun = time.monotonic()
    script = [sys.executable, "-P", ledger_races.__file__]
    races = [
        subprocess.Popen(
            [*script, f"{place}-{lane}", str(rounds // lanes), *options],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )
        for lane in range(lanes)
    ]
    told: Counter[str] = Counter()
    done = 0
    for race in races:
        for line in race.communicate()[0].splitlines():
            result = json.loads(line)
            number, found = result.pop("round"), result.pop("fault")
            if found:
                return f"round {number}: {found}"
            told.update(result)
            done += 1
        if race.returncode:
            return f"a race ended with {race.returncode} after {done} rounds without fault"
    took = time.monotonic() - begun
    return f"{done} rounds without fault in {took:.0f} s; {dict(told)}"


def signed_races(place: str, rounds: int) -> str:
    """Report the same of signed ledgers whose account is under a filter, on a folder."""
    with tempfile.TemporaryDirectory() as folder:
        key = KeyFiles(Path(folder), "key").private
        return without_fault(place, rounds, 1, "--filter", QUIETCORPUS_LEDGER_KEY_FILE=key)


def growth(place: str, releases: int) -> str:
    """Report the seconds to open a ledger and to reserve from it, as it grows."""
    ledger = Ledger.init(place, terms(10**6))
    lines = []
    for number in range(releases):
        asked = time.monotonic()
        reservation = ledger.reserve(request(f"release-{number}", 1))
        done = time.monotonic()
        ledger.commit(reservation, "0" * 32, "0" * 64)
        if number + 1 in (1, 10, 100, releases):
            opening = time.monotonic()
            ledger = Ledger.open(place)
            opened = time.monotonic() - opening
            lines.append(f"{number + 1}: {opened:.3f} + {done - asked:.3f}")
    return "releases: seconds to open + to reserve: " + ", ".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1000)
    rounds = parser.parse_args().rounds
    FileSystems.set_options(PipelineOptions([]))
    with places() as found:
        for name, place in found.items():
            for kind, options in (("unharmed", []), ("killed", ["--kill"])):
                said = without_fault(f"{place}/{kind}", rounds, LANES[name], *options)
                print(f"{name}, {kind}: {said}", flush=True)
            if name == "folder":
                told = signed_races(f"{place}/signed", rounds)
                print(f"{name}, signed, under a filter: {told}", flush=True)
            print(f"{name}: {growth(f'{place}/growth', 1000)}", flush=True)


if __name__ == "__main__":
    main()
