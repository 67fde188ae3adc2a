"""`quietcorpus provenance` on real text: what it finds of planted copies, what else, how fast.

    OMP_NUM_THREADS=1 python benchmarks/provenance.py --reviews REVIEWS.parquet --documents 100000

REVIEWS has the columns `text` and `split`. Public texts are made of one split, and documents of the
other: the reviews themselves, and then crossings, the first half of one with the second of another.
Among the public texts are copies of documents: equal ones, and ones in which a fifth of the words
are edited (replaced, inserted or removed at random), also of passages of 16 to 40 words. The
reviews have copies of their own across the two splits.
"""

from __future__ import annotations

import json
import resource
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import quietcorpus as qc

SHARE = 0.2
ROWS = 5_000


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


def main() -> None:
    """Plant, compare, and print what was found."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--reviews", required=True)
    parser.add_argument("--documents", type=int, default=100_000)
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
    equal, near, passages = (
        [documents[i] for i in part] for part in chosen.reshape(3, given.planted)
    )
    planted = {
        "equal": equal,
        "a fifth of the words edited": [edited(one, known, generator) for one in near],
        "passages, a fifth of the words edited": [
            edited(passage(one, generator), known, generator) for one in passages
        ],
    }
    others = crossed(own, given.public - 3 * given.planted, generator)
    public = [one for copies in planted.values() for one in copies] + others
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(pa.table({"text": documents}), folder / "in.parquet", row_group_size=ROWS)
        pq.write_table(pa.table({"text": public}), folder / "public.parquet")
        (folder / "words.txt").write_text("word\n")
        spec = {
            "release": "test",
            "input": {"path": f"{folder}/in.parquet"},
            "output": f"{folder}/out",
            "mechanism": {
                "kind": "histogram",
                "precision": 1,
                "epsilon": 1,
                "vocabulary": {"public": f"{folder}/words.txt"},
            },
        }
        warm = folder / "warm.parquet"
        pq.write_table(pa.table({"text": public[:100]}), warm)
        qc.check_provenance(spec, report=folder / "warm.json", public=[warm])  # compiles
        del table, text, split, own, private, documents
        begun, used = time.perf_counter(), time.process_time()
        place = folder / "report.json"
        qc.check_provenance(spec, report=place, public=[folder / "public.parquet"])
        wall, processor = time.perf_counter() - begun, time.process_time() - used
        report = json.loads(place.read_text())
    rows = {one["row"] for one in report["texts"]}
    short = {one["row"] for one in report["texts"] if one["short"]}
    for number, (sort, copies) in enumerate(planted.items()):
        first = number * given.planted
        span = range(first, first + len(copies))
        print(f"{sort:<40} {len(rows.intersection(span)):>6,} of {len(copies):,} found")
    rest = rows - short - set(range(3 * given.planted))
    print(f"{'others':<40} {len(rest):>6,} of {len(others):,} found")
    print(f"{given.documents:,} documents, {given.public:,} public texts")
    print(f"{processor:.0f} s of processor time, {wall:.0f} s")
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB at most")


if __name__ == "__main__":
    main()
