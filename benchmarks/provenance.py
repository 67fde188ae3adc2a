"""`quietcorpus provenance` on real text: what it finds of planted copies, what else, how fast.

    OMP_NUM_THREADS=1 python benchmarks/provenance.py --reviews REVIEWS.parquet

REVIEWS has the columns `text` and `split`. Public texts are made of one split, and documents of the
other: the reviews themselves, and then crossings, the first half of one with the second of another.
Among the public texts are copies of documents: equal ones, and ones in which a fifth of the words
are edited (replaced, inserted or removed at random), also of passages of 16 to 40 words. The
reviews have copies of their own across the two splits.
"""

from __future__ import annotations

import json
import os
import resource
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import quietcorpus as qc

SHARE = 0.2
FEW = 5_000


def crossed(reviews: list[str], count: int, generator: np.random.Generator) -> list[str]:
    """Return reviews, and as many crossings as are needed besides."""
    found = reviews[:count]
    while len(found) < count:
        one, other = (reviews[i].split() for i in generator.integers(len(reviews), size=2))
        found.append(" ".join(one[: len(one) // 2] + other[len(other) // 2 :]))
    return found


def edited(text: str, known: list[str], generator: np.random.Generator) -> str:
    """Edit a fifth of a text's words."""
    words = text.split()
    for _ in range(round(SHARE * len(words))):
        place, word = generator.integers(len(words)), known[generator.integers(len(known))]
        match generator.integers(3):
            case 0:
                words[place] = word
            case 1:
                words.insert(place, word)
            case 2:
                del words[place]
    return " ".join(words)


def passage(text: str, generator: np.random.Generator) -> str:
    """Return 16 to 40 words of a text, at random, or all of a shorter one."""
    words = text.split()
    size = min(len(words), int(generator.integers(16, 41)))
    start = generator.integers(len(words) - size + 1)
    return " ".join(words[start : start + size])


def timed(spec: dict[str, Any], report: Path, public: Path) -> np.ndarray:
    """Compare; return the processor time of the process and of this thread, and the time, in s."""
    clocks = time.process_time, time.thread_time, time.perf_counter
    before = np.array([clock() for clock in clocks])
    qc.check_provenance(spec, report=report, public=[public])
    return np.array([clock() for clock in clocks]) - before


def most_memory() -> float:
    """Return the most memory that this process has had, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def compared(documents: list[str], public: list[str], folder: Path) -> set[int]:
    """Compare a few documents, and then all; return the rows of the texts found."""
    pq.write_table(pa.table({"text": documents}), folder / "in.parquet", row_group_size=FEW)
    pq.write_table(pa.table({"text": documents[:FEW]}), folder / "few.parquet")
    pq.write_table(pa.table({"text": public}), folder / "public.parquet")
    pq.write_table(pa.table({"text": public[:100]}), folder / "warm.parquet")
    (folder / "words.txt").write_text("word\n")
    vocabulary = {"public": f"{folder}/words.txt"}
    mechanism = {"kind": "histogram", "precision": 1, "epsilon": 1, "vocabulary": vocabulary}
    spec = {"release": "test", "output": f"{folder}/out", "mechanism": mechanism}

    def run(name: str, texts: str = "public") -> np.ndarray:
        named = spec | {"input": {"path": f"{folder}/{name}.parquet"}}
        return timed(named, folder / f"{name}-{texts}.json", folder / f"{texts}.parquet")

    run("few", "warm")  # compiles
    few, before = run("few"), most_memory()
    whole, after = run("in"), most_memory()
    each, reading, _ = (whole - few) / (len(documents) - FEW)
    print(f"{len(documents):,} documents, {len(public):,} public texts")
    print(f"{1e6 * each:.0f} us of processor time for each document, of which")
    print(f"{1e6 * reading:.0f} us are the reading thread's, and others the comparing threads'")
    print(f"{few[0] - FEW * each:.0f} s for the public texts, before the first document")
    print(f"{few[0] + (10**6 - FEW) * each:.0f} s for a million documents, by this")
    processors = len(os.sched_getaffinity(0))
    print(f"{whole[2]:.0f} s by the clock for these, with {processors} processors")
    print(f"{before:.2f} GB at most with {FEW:,} documents, and {after:.2f} with all")
    report = json.loads((folder / "in-public.json").read_text())
    return {one["row"] for one in report["texts"] if not one["short"]}


def main() -> None:
    """Plant, compare, and print what was found."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--reviews", required=True)
    parser.add_argument("--documents", type=int, default=25_000)
    parser.add_argument("--public", type=int, default=50_000)
    parser.add_argument("--planted", type=int, default=2_000, help="of each of three sorts")
    given = parser.parse_args()
    generator = np.random.default_rng(1)
    table = pq.read_table(given.reviews, use_threads=False)
    text, split = table["text"].to_pylist(), table["split"].to_pylist()
    own = [one for one, part in zip(text, split, strict=True) if part == "train"]
    private = [one for one, part in zip(text, split, strict=True) if part != "train"]
    documents = crossed(private, given.documents, generator)
    known = " ".join(own[:1000]).split()
    chosen = generator.choice(len(documents), 3 * given.planted, replace=False)
    equal, near, within = (
        [documents[i] for i in part] for part in chosen.reshape(3, given.planted)
    )
    passages = [passage(one, generator) for one in within]
    planted = {
        "equal": equal,
        "a fifth of the words edited": [edited(one, known, generator) for one in near],
        "passages, a fifth edited": [edited(one, known, generator) for one in passages],
    }
    others = crossed(own, given.public - 3 * given.planted, generator)
    public = [one for copies in planted.values() for one in copies] + others
    with tempfile.TemporaryDirectory() as name:
        rows = compared(documents, public, Path(name))
    for number, (sort, copies) in enumerate(planted.items()):
        first = number * given.planted
        span = range(first, first + len(copies))
        print(f"{sort:<30} {len(rows.intersection(span)):>6,} of {len(copies):,} found")
    rest = rows - set(range(3 * given.planted))
    print(f"{'others':<30} {len(rest):>6,} of {len(others):,} found")


if __name__ == "__main__":
    main()
