"""The outcome of a small release of each kind when something breaks in the middle of it.

The output is a table for docs/measurements/faults.md (Other kinds).

    make faults-of-kinds

Every run is the real command with two processes of the local engine, from and to a real S3
server. A fault strikes when the workers have been there for a third of the time that they take
undisturbed. The expected result is that of an undisturbed run with the same key.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from fault_lab import BAGS, COMMAND, Lab, TooLate
from faults import (
    bit_flipped,
    clock_jumps,
    disturbed,
    full_disk_locally,
    launcher_killed,
    server_stopped,
    store_throttles,
    worker_killed,
)

FILES = 8
MESSAGES = 1000
"""Documents of each file, of the kinds that take little time for one."""
DISK_KILOBYTES = 16
WORDS = {"kind": "words", "index": "FOLDER/index", "epsilon": 10}
USERS = {
    "kind": "word-embeddings",
    "user": "author",
    "users": 1000,
    "few_users": "accept",
    "epsilon": 4,
    "delta": 1e-5,
    "dimensions": 16,
    "vocabulary": BAGS["vocabulary"],
}
PRIVATE = {"vocabulary": {"private": {"epsilon": 1, "delta": 1e-8}}}
KINDS: dict[str, tuple[int, dict[str, Any]]] = {
    "bag-of-words": (MESSAGES, BAGS),
    "bag-of-words, private vocabulary": (MESSAGES, BAGS | PRIVATE),
    "histogram": (
        MESSAGES,
        {"kind": "histogram", "precision": 10, "epsilon": 1, "vocabulary": BAGS["vocabulary"]},
    ),
    "words, madlib": (MESSAGES, WORDS | {"mechanism": "madlib"}),
    "words, brr": (MESSAGES, WORDS | {"mechanism": "brr", "epsilon": 0.4}),
    "words, tem": (MESSAGES, WORDS | {"mechanism": "tem"}),
    "sentence-embeddings": (
        50,
        {
            "kind": "sentence-embeddings",
            "mechanism": "deep-candidate",
            "utility": "similarity",
            "epsilon": 10,
            "candidates": "FOLDER/candidates",
            "most_sentences": 4,
        },
    ),
    "public-texts": (
        MESSAGES,
        {"kind": "public-texts", "pool": "FOLDER/pool", "epsilon": 1, "delta": 1e-6, "nearest": 3},
    ),
    "word-embeddings, cooccurrence": (MESSAGES, USERS | {"method": "cooccurrence"}),
    "word-embeddings, sgd": (MESSAGES, USERS | {"method": "sgd", "training": {"steps": 20}}),
}
"""The documents of each file, and the mechanism, whose artefacts are in FOLDER."""


def main() -> None:
    """Break everything of every kind, one after another, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--only", default="", help="a pattern for the kinds to run")
    parser.add_argument("--faults", default="", help="a pattern for what to break")
    given = parser.parse_args()
    faults = {name: fault for name, fault in FAULTS.items() if re.search(given.faults, name)}
    print(f"| kind | {' | '.join(faults)} |\n|{'---|' * (1 + len(faults))}")
    refusals: dict[str, list[str]] = {}
    counted: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        lab = Lab(Path(folder), stack)
        make_artefacts(lab, given.data)
        for number, kind in enumerate(KINDS):
            if not re.search(given.only, kind):
                continue
            prepare(lab, given.data, f"in{number}", kind)
            cells = []
            for name, outcome, seconds in outcomes(lab, faults):
                end, _, line = outcome.partition(": ")
                counted[end] += 1
                if line:
                    refusals.setdefault(line, []).append(f"{kind}: {name}")
                cells.append(f"{end}, {seconds:.0f} s")
            print(f"| {kind} | {' | '.join(cells)} |", flush=True)
        told = lab.told_secrets()
    print(f"\n{dict(counted)}\n")
    for line, where in refusals.items():
        print(f"- {line} ({'; '.join(where)})")
    print(f"\nFiles that held a secret or a line of the corpus: {told}.")


def make_artefacts(lab: Lab, data: Path) -> None:
    """Build the index, the candidates and the pool, each small."""
    gensim = importlib.util.find_spec("gensim")
    assert gensim is not None
    assert gensim.origin is not None
    vectors = Path(gensim.origin).parent / "test/test_data/lee_fasttext.vec"
    reviews = pq.read_table(data / "imdb_reviews.parquet", columns=["text"])
    for size in (180, 2000):
        pq.write_table(reviews.slice(0, size), lab.folder / f"reviews-{size}.parquet")
    few = "--candidates=40 --clusters=4 --projections=20 --least-sentences=7 --most-sentences=5"
    for name, command in {
        "index": ["build", str(vectors)],
        "candidates": ["build-candidates", str(lab.folder / "reviews-180.parquet"), *few.split()],
        "pool": ["build-pool", str(lab.folder / "reviews-2000.parquet"), "--encoder", "lsa"],
    }.items():
        whole = [COMMAND, "index", *command, "--output", str(lab.folder / name), "--quiet"]
        subprocess.run([*whole, "--provenance", "public"], check=True, stdout=subprocess.DEVNULL)


def prepare(lab: Lab, data: Path, files: str, kind: str) -> None:
    """Upload the corpus of a kind, and make the release that nobody disturbs."""
    documents, mechanism = KINDS[kind]
    lab.files, lab.middle, lab.reference = files, None, {}
    lab.mechanism = {
        key: value.replace("FOLDER", str(lab.folder)) if isinstance(value, str) else value
        for key, value in mechanism.items()
    }
    messages = pq.read_table(data / "commit_messages.parquet", columns=["text", "author"])
    lab.upload(messages.slice(0, documents), FILES)
    for name in ("reference", "again"):  # the second compiles nothing: so will those with faults
        run = lab.start(name, "--workers", "2")
        run.wait_for_workers()
        begun = time.monotonic()
        while run.workers():
            time.sleep(0.3)
        lab.middle = (time.monotonic() - begun) / 3
        code, line = run.finish()
        assert code == 0, line
        lab.reference = lab.reference or lab.content(run.name)
    print(f"{kind}: {time.monotonic() - run.begun:.0f} s undisturbed", file=sys.stderr)


FAULTS: dict[str, Callable[[Lab], tuple[str, float]]] = {
    "SIGKILL of a worker": lambda lab: struck(lab, worker_killed),
    "SIGKILL of the launcher, command again": lambda lab: struck(lab, launcher_killed),
    "store gone for 10 s": lambda lab: struck(lab, server_stopped),
    "503 for a tenth": store_throttles,
    "bit of a staged file": lambda lab: struck(lab, bit_flipped),
    "disk full": lambda lab: full_disk_locally(lab, DISK_KILOBYTES),
    "clock an hour ahead": clock_jumps,
}


def struck(lab: Lab, fault: Callable[..., None]) -> tuple[str, float]:
    """Return the outcome of a fault in the middle, and the seconds."""
    return disturbed(lab, fault.__name__, fault, "--workers", "2")


def outcomes(
    lab: Lab, faults: dict[str, Callable[[Lab], tuple[str, float]]]
) -> Iterator[tuple[str, str, float]]:
    """Yield each fault with its outcome and seconds."""
    for name, measure in faults.items():
        try:
            outcome, seconds = measure(lab)
        except TooLate:
            outcome, seconds = "not struck", float("nan")
        except AssertionError as error:
            outcome, seconds = f"**WRONG**: {error}", float("nan")
        print(f"    {name}: {outcome} ({seconds:.0f} s)", file=sys.stderr)
        yield name, outcome, seconds


if __name__ == "__main__":
    main()
