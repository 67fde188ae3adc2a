"""1,000 rounds of 32 processes that race for one cap, unharmed and killed, and what a ledger costs.

    python benchmarks/ledger.py [--rounds 1000]

On a folder, and on the S3 server of the tests. Prints the rounds without a fault, and how long a
reservation takes beside the length of the ledger.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from ledger_races import fault, races, request, terms
from s3_server import BUCKET, S3Server

from pipelines.ledger.book import Ledger


@contextmanager
def places() -> Iterator[dict[str, str]]:
    """A folder, and a prefix of an S3 server that is stopped afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        server = S3Server(Path(folder))
        server.start()
        os.environ.update(server.environment)
        try:
            yield {"folder": f"{folder}/ledgers", "S3": f"s3://{BUCKET}/ledgers"}
        finally:
            server.stop()


def without_fault(place: str, rounds: int, *, kill: bool) -> str:
    """How many rounds were without fault, and what processes were told."""
    told: Counter[str] = Counter()
    begun = time.monotonic()
    kind = "killed" if kill else "unharmed"
    for number, result in enumerate(races(f"{place}/{kind}", rounds, kill=kill)):
        found = fault(result, kill=kill)
        if found:
            return f"round {number}: {found}"
        told.update(answer or "killed" for answer in result["told"].values())
    took = time.monotonic() - begun
    return f"{rounds} rounds without fault in {took:.0f} s; {dict(told)}"


def growth(place: str, releases: int) -> str:
    """Seconds to open a ledger and to reserve from it, as it grows."""
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
    with places() as found:
        for name, place in found.items():
            print(f"{name}, unharmed: {without_fault(place, rounds, kill=False)}", flush=True)
            print(f"{name}, killed: {without_fault(place, rounds, kill=True)}", flush=True)
            print(f"{name}: {growth(f'{place}/growth', 1000)}", flush=True)


if __name__ == "__main__":
    main()
