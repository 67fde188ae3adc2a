"""The cost of a reconstruction per document, for few and for many documents.

Ten thousand documents of known topics are repeated to each size, released by the real command with
fresh noise (1,000 words in 100 bins, N = 1, epsilon 2), and reconstructed by the real command. The
largest size needs about 20 GB of disk for a while.

    PYTHONPATH=. python benchmarks/reconstruction_scale.py \\
        --output docs/measurements/reconstruction.md
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from known_topics import ends, words
from marked_tables import write_tables
from reconstruction import write_spec

from quietcorpus.evaluation.topic_model import draw

TERMS, BINS, TOPICS, DOCUMENTS, LENGTH = 1000, 100, 20, 10_000, 20
SIZES = 10_000, 100_000, 1_000_000


def texts(copies: int, path: Path) -> None:
    """Write ten thousand documents to Parquet, `copies` times."""
    weights = 1 / np.arange(10, TERMS + 10)
    counts, _ = draw(weights, DOCUMENTS, LENGTH, TOPICS, np.random.default_rng())
    lists = np.split(words(TERMS)[np.repeat(counts.indices, counts.data)], ends(counts))
    table = pa.table({"text": [" ".join(own) for own in lists]})
    with pq.ParquetWriter(path, table.schema) as writer:
        for _ in range(copies):
            writer.write_table(table)


def measured(*arguments: str) -> tuple[float, float]:
    """Run a command; return its seconds, and the largest memory of its own process, in GB."""
    environment = os.environ | {"QUIETCORPUS_MASTER_KEY": secrets.token_hex(32)}
    begun = time.perf_counter()
    process = subprocess.Popen(["quietcorpus", *arguments], env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{arguments[0]} failed")
    return time.perf_counter() - begun, usage.ru_maxrss / 1e6


def row(size: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        texts(size // DOCUMENTS, Path(folder, "texts.parquet"))
        Path(folder, "words.txt").write_text("\n".join(words(TERMS)) + "\n")
        source = {"path": f"{folder}/texts.parquet", "text": "text"}
        write_spec(Path(folder), source, Path(folder, "words.txt"), Fraction(2), BINS)
        measured("release", f"{folder}/spec.yaml")
        seconds, memory = measured(
            "reconstruct", f"{folder}/released", "--output", f"{folder}/better"
        )
    return {"size": size, "seconds": seconds, "memory": memory}


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| documents | seconds | milliseconds a document | largest memory, mapped files included |",
        "|---" * 4 + "|",
    ]
    for one in rows:
        each = 1000 * one["seconds"] / one["size"]
        lines.append(
            f"| {one['size']:,} | {one['seconds']:,.0f} | {each:.2f} | {one['memory']:.1f} GB |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="a Markdown file with a section for it")
    options = parser.parse_args()
    rows = []
    for size in SIZES:
        rows.append(row(size))
        print(rows[-1], flush=True)
    if options.output:
        write_tables(options.output, table(rows), "scale")


if __name__ == "__main__":
    main()
