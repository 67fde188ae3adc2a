"""An index of millions of words: how it is built and opened, and how fast it releases text.

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/large_index.py --glove V.txt \\
        --folder build/large --words 2500000 --lists 4096

The words are made up and their vectors GENERATED: around real vectors, at real distances between
neighbours, with real norms; the program prints how near they come. What is there already is not
made again. Every engine opens the index and releases text in a process of its own; its speed is
by seconds of the processor, so that other load on the machine counts less. Memory is what was
resident at most: mapped files count, which the workers of a host share, and so `own` is shown
beside it, which they do not.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from argparse import ArgumentParser
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from generated_vectors import RANKS, fill
from words import load, spelled

from quietcorpus.evaluation.intervals import of_share
from quietcorpus.evaluation.neighbours import euclidean_neighbours
from quietcorpus.evaluation.recall import noisy_queries
from quietcorpus.indexes.search import EXACT, SearchEngine, Searching
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.artefacts.word_index import IndexSource
from quietcorpus.transforms.privatizers.words import (
    WordMechanism,
    WordPrivatizer,
    WordsParameters,
    parts_read,
)
from quietcorpus.transforms.reading.documents import Documents

Vectors = npt.NDArray[np.float32]

EPSILONS = (10.0, 20.0)
PROBES = (8, 32, 128, 512)
SAMPLE, FIRST = 300, 256
BUILD = """
import resource, sys
from quietcorpus.cli.main import main
try:
    main()
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def generate(path: Path, real: Vectors, words: int) -> None:
    """Write generated vectors, `.npy`, and their words."""
    made = np.lib.format.open_memmap(path, "w+", np.float32, (words, real.shape[1]))
    fill(made, real)
    made.flush()
    path.with_suffix(".txt").write_text("".join(spelled(n) + "\n" for n in range(words)))


def likeness(real: Vectors, generated: Vectors) -> None:
    """Print norms, and distances to neighbours, of real and of generated vectors."""
    print("| vectors | words | norm: 5 %, median, 95 % | median distance to neighbour 1, 10, 100 |")
    print("|---|---|---|---|")
    generator = np.random.default_rng(2)
    for name, vectors in (("real", real), ("generated", generated)):
        words = generator.choice(len(vectors), SAMPLE, replace=False)
        norms = np.quantile(np.linalg.norm(vectors[np.sort(words)], axis=1), [0.05, 0.5, 0.95])
        far = np.median(euclidean_neighbours(vectors, words, RANKS), axis=0)
        print(f"| {name} | {len(vectors):,} | {_numbers(norms)} | {_numbers(far)} |", flush=True)


def build(source: Path, output: Path, *options: str) -> None:
    """Build an index by the command, and print what it took."""
    begun = time.perf_counter()
    given = [str(source), "--output", str(output), "--provenance", "public", *options]
    command = [sys.executable, "-c", BUILD, "index", "build", *given]
    done = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    peak = int(done.stderr.split()[-1]) / 2**20
    size = sum(path.stat().st_size for path in output.iterdir()) / 2**30
    print(
        f"\nindex build {' '.join(options)}: {time.perf_counter() - begun:,.0f} s, "
        f"{peak:.2f} GiB at most, {size:.2f} GiB on disk",
        flush=True,
    )


def measured(index: str, searching: Searching, words: int, queries: int) -> dict[str, Any]:
    """Open an index and release text by one engine: seconds, memory, and answers to queries."""
    FileSystems.set_options(PipelineOptions([]))
    begun = time.perf_counter()
    source = IndexSource.resolve("index", index)
    opened = source.open(*parts_read(WordMechanism.MADLIB, searching))
    seconds = {"open": time.perf_counter() - begun}
    parameters = WordsParameters(
        WordMechanism.MADLIB, Fraction(EPSILONS[0]), "word", "drop", source, searching
    )
    key = ReleaseKey.derive(os.urandom(32), "benchmark", b"")
    begun = time.perf_counter()
    privatizer = WordPrivatizer(parameters, opened, key)
    numbers = np.random.default_rng(1).integers(opened.manifest.words, size=words + FIRST)
    privatizer.release(document(numbers[:FIRST]))
    seconds["first"] = time.perf_counter() - begun
    begun = time.process_time()
    privatizer.release(document(numbers[FIRST:]))
    seconds["release"] = time.process_time() - begun
    status = Path("/proc/self/status").read_text()
    own = int(status.split("RssAnon:")[1].split()[0]) / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    search = parameters.search_of(opened)
    found = [
        search.nearest(noisy_queries(opened.vectors, epsilon, queries, np.random.SeedSequence(3)))
        for epsilon in EPSILONS
    ]
    return {"seconds": seconds, "peak": peak, "own": own, "found": np.array(found)}


def document(numbers: npt.NDArray[np.int64]) -> Documents:
    """Return one document of these words."""
    text = pa.array([" ".join(map(spelled, numbers.tolist()))], pa.large_string())
    return Documents("benchmark", np.arange(1), text, pa.table({}))


def table(index: Path, lists: int, words: int, queries: int) -> None:
    """Print a row for each engine; fail if an exhaustive one differs from exact search."""
    print(
        f"\n| engine | opened | first text | words/s a core | x exact | memory (own), GiB | "
        f"{' | '.join(f'recall@1 at epsilon {e:g}' for e in EPSILONS)} |\n|{'---|' * 8}"
    )
    truth, base = None, 0.0
    flat = Searching(SearchEngine.FAISS_FLAT)
    engines = [EXACT, flat, *(Searching(SearchEngine.FAISS_IVF, p) for p in PROBES if p <= lists)]
    for searching in engines:
        count = 8 * words if searching.approximate else words
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            got = pool.submit(measured, str(index), searching, count, queries).result()
        seconds = got["seconds"]
        speed = count / seconds["release"]
        if truth is None:
            truth, base = got["found"], speed
        same = (got["found"] == truth).sum(axis=1)
        if not searching.approximate and (same < queries).any():
            sys.exit("an exhaustive engine does not find what exact search finds")
        ends = [of_share(int(number), queries, 0.95) for number in same]
        shares = " | ".join(
            f"{number / queries:.3f} ({low:.3f}-{high:.3f})"
            for number, (low, high) in zip(same, ends, strict=True)
        )
        print(
            f"| {searching} | {seconds['open']:.1f} s | {seconds['first']:.1f} s | {speed:,.0f} | "
            f"{speed / base:.2f} | {got['peak']:.2f} ({got['own']:.2f}) | {shares} |",
            flush=True,
        )


def _numbers(values: npt.NDArray[np.floating]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def main() -> None:
    """Print the tables."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument(
        "--glove", required=True, help="real vectors, as GloVe's or word2vec's text"
    )
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--words", type=int, default=2_500_000)
    parser.add_argument("--lists", type=int, default=4096)
    parser.add_argument("--tokens", type=int, default=1024, help="of a text; 8 times for lists")
    parser.add_argument("--queries", type=int, default=512)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    source = given.folder / "generated.npy"
    _, real = load(given.glove)
    if not source.with_suffix(".txt").exists():
        generate(source, real, given.words)
    generated = np.load(source, mmap_mode="r")
    likeness(real, generated)
    del generated
    index = given.folder / "index"
    if not index.exists():
        build(source, index, "--search", f"ivf:lists={given.lists}")
    lists = json.loads((index / "manifest.json").read_text())["search"]["lists"]
    table(index, lists, given.tokens, given.queries)


if __name__ == "__main__":
    main()
