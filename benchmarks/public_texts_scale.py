"""A release of public texts at growing numbers of private documents, against a pool of 100,000.

    OMP_NUM_THREADS=1 python benchmarks/public_texts_scale.py --data ../shared/data \\
        --folder build/scale

The pool's texts are film reviews, complaints and commit messages; private documents are the same
texts again and again, cut to 60 words: what they say does not matter here. Every run is the real
command with the pool's own encoder, in one process. Its seconds are the processor's, so that other
load on the machine counts less. Then the same documents are encoded and searched for without an
engine, by that encoder and by a model, whose share of the time decides how many machines a
release with it takes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from utility_public import column

import quietcorpus as qc
from quietcorpus.indexes.pool import open_pool
from quietcorpus.mechanisms.deep_candidate import on_grid
from quietcorpus.transforms.artefacts.encoder import PACKAGED, EncoderSource

FILES = "imdb_reviews.parquet", "cfpb_complaints.parquet", "commit_messages.parquet"
WORDS = 60
NEAREST = 20
ROW_GROUP = 10_000
SIZES = 10_000, 100_000, 1_000_000
MODELLED = 1_000
SPEC = """
release: scale-{count}
input: {{path: {corpus}, text: text}}
output: {output}
mechanism:
  kind: public-texts
  epsilon: 1
  delta: 1.0e-6
  nearest: {nearest}
  pool: {pool}
"""


def texts_of(data: Path) -> list[str]:
    """Return the texts of all corpora, cut."""
    return [
        " ".join(text.split()[:WORDS]) for name in FILES for text in column(data / name, "text")
    ]


def released(folder: Path, texts: list[str], count: int) -> tuple[float, float]:
    """Release so many documents; return seconds of the processor, and MiB of memory at most."""
    corpus = folder / f"corpus-{count}.parquet"
    with pq.ParquetWriter(corpus, pa.schema([("text", pa.string())])) as writer:
        for start in range(0, count, ROW_GROUP):
            rows = range(start, min(start + ROW_GROUP, count))
            writer.write_table(pa.table({"text": [texts[row % len(texts)] for row in rows]}))
    spec = folder / f"spec-{count}.yaml"
    given = {"count": count, "corpus": corpus, "output": folder / f"out-{count}"}
    spec.write_text(SPEC.format(**given, nearest=NEAREST, pool=folder / "pool"))
    process = subprocess.Popen(
        [sys.executable, "-m", "quietcorpus.cli.main", "release", str(spec), "--quiet"],
        stdout=subprocess.DEVNULL,
        env=os.environ | {"QUIETCORPUS_MASTER_KEY": os.urandom(32).hex()},
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(1)
    corpus.unlink()
    shutil.rmtree(given["output"])
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--pool", type=int, default=100_000)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    texts = list(dict.fromkeys(texts_of(given.data)))
    print(f"{len(texts):,} different texts; a pool of {min(given.pool, len(texts)):,}", flush=True)
    if not (given.folder / "pool").exists():
        lines = (json.dumps({"text": text}) + "\n" for text in texts[: given.pool])
        (given.folder / "public.jsonl").write_text("".join(lines))
        begun = time.process_time()
        made = qc.build_pool(
            given.folder / "public.jsonl",
            given.folder / "pool",
            provenance="public",
            encoder="lsa",
        )
        print(f"built in {time.process_time() - begun:,.0f} s: {made.texts:,} texts", flush=True)
    print(
        "\n| documents | processor, s | ms a document, above the start | memory, MiB |"
        "\n|---|---|---|---|"
    )
    released(given.folder, texts, 100)  # compiles what a later run finds compiled
    start, _ = released(given.folder, texts, 100)
    for count in given.sizes:
        seconds, peak = released(given.folder, texts, count)
        each = 1000 * (seconds - start) / count
        print(f"| {count:,} | {seconds:,.0f} | {each:.3f} | {peak:,.0f} |", flush=True)
    shares(given.folder, texts)


def shares(folder: Path, texts: list[str]) -> None:
    """Print what encoding takes, and what searching as many vectors of that encoder's does."""
    print(
        "\n| encoder | encoding, ms a document | searching | share of encoding |\n|---|---|---|---|"
    )
    pool = open_pool(str(folder / "pool"))
    assert pool.encoder is not None
    model = EncoderSource.resolve("encoder", PACKAGED).open()
    for name, encoder, count in (
        ("lsa", pool.encoder, 10 * MODELLED),
        (PACKAGED, model, MODELLED),
    ):
        begun = time.process_time()
        vectors = on_grid(encoder.encode(texts[-count:]))
        encoding = time.process_time() - begun
        shape = len(pool.vectors), vectors.shape[1]
        others = on_grid(np.random.default_rng(1).normal(size=shape).astype(np.float32))
        begun = time.process_time()
        replace(pool, vectors=others).nearest(vectors, NEAREST)
        searching = time.process_time() - begun
        print(
            f"| {name} | {1000 * encoding / count:.3f} | {1000 * searching / count:.3f} | "
            f"{encoding / (encoding + searching):.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
