"""A pool of a million texts, in lists: its building, its memory, what is found, and a release.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/large_pool_lists.py \\
        --data ../shared/data --folder build/large-pool-lists

The pool's texts are passages of 30 words of film reviews, complaints and commit messages, each
beginning a few words after the last: neighbours overlap. The pool is built by the command, with its
own encoder; documents of other passages, cut at other places, are released by the command, too.
Seconds are the processor's, so that other load on the machine counts less.

That encoder joins no near texts. So the joining of near texts is measured on the pool's embeddings:
its seconds, and, for a sample, the share of texts left out that a comparison with all would leave
out. At last, lists are made of fewer passages, encoded by a model, to see what they find of those.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from public_texts_scale import FILES, released
from utility_public import column

from quietcorpus.indexes.largest_products import largest
from quietcorpus.indexes.pool import Pool, open_pool, searching
from quietcorpus.mechanisms.deep_candidate import UNIT, on_grid
from quietcorpus.pipelines.prepare.near_texts import NEAR, SEARCHED, apart
from quietcorpus.pipelines.prepare.pool_lists import Asked, arrange, train
from quietcorpus.transforms.artefacts.encoder import PACKAGED, EncoderSource

WORDS, STEP = 30, 11
SIZES = 100, 100, 10_000  # the first compiles what later ones find compiled
QUERIES, NEAREST = 512, 20
MODELLED = 24_000
TIMED, AT_ONCE = 5_000, 128


def passages(data: Path, words: int, step: int, most: int) -> list[str]:
    """Return different passages of so many words, a step apart; of short texts, the whole."""
    found: dict[str, None] = {}
    for name in FILES:
        for text in column(data / name, "text"):
            own = text.split()
            for start in range(0, max(1, len(own) - words // 2), step):
                found[" ".join(own[start : start + words])] = None
    listed = list(found)
    order = np.random.default_rng(1).permutation(len(listed))[:most]
    return [listed[number] for number in order]


def built(folder: Path, texts: list[str]) -> tuple[float, float]:
    """Build the pool by the command; return the processor's seconds, and MiB of memory at most."""
    source = folder / "public.jsonl"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    command = ("index", "build-pool", source, "--encoder", "lsa", "--provenance", "public")
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "quietcorpus.cli.main", *map(str, command)),
            *("--output", str(folder / "pool"), "--quiet"),
        ],
        env=os.environ,
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(1)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--texts", type=int, default=1_000_000)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if not (given.folder / "pool").exists():
        texts = passages(given.data, WORDS, STEP, given.texts)
        print(f"{len(texts):,} passages", flush=True)
        seconds, peak = built(given.folder, texts)
        print(f"built in {seconds:,.0f} s, with {peak:,.0f} MiB at most", flush=True)
        del texts
    begun = time.process_time()
    pool = open_pool(str(given.folder / "pool"))
    print("\n".join(pool.manifest.lines()))
    print(f"opened, and verified, in {time.process_time() - begun:.0f} s", flush=True)
    search(pool)
    documents = passages(given.data, 2 * WORDS, 3 * WORDS, max(SIZES))
    runs = [released(given.folder, documents, count) for count in SIZES]
    each = 1000 * (runs[2][0] - runs[1][0]) / (SIZES[2] - SIZES[1])
    print(f"a release: {each:.3f} ms a document, {runs[2][1]:,.0f} MiB at most", flush=True)
    near(pool)
    rate(given.data)
    by_model(embedded(given.data))


def search(pool: Pool) -> None:
    """Print what a search costs with lists and without, of as many queries as vote together."""
    rows = np.random.default_rng(2).choice(len(pool.vectors), QUERIES, replace=False)
    queries = np.array(pool.vectors[rows])
    for name, one in (("lists", pool), ("all texts", replace(pool, lists=None))):
        one.nearest(queries[:1], NEAREST)
        begun = time.process_time()
        one.nearest(queries, NEAREST)
        each = 1000 * (time.process_time() - begun) / QUERIES
        print(f"searching {name}: {each:.3f} ms a document", flush=True)


def near(pool: Pool) -> None:
    """Print what the joining of near texts takes, and which share of them it finds."""
    assert pool.lists is not None
    vectors = pool.vectors[np.random.default_rng(3).permutation(len(pool.vectors))]
    begun = time.process_time()
    searched = largest(vectors, pool.lists.centroids, SEARCHED)
    kept = apart(vectors, searched)
    seconds = time.process_time() - begun
    sample = vectors[-2 * QUERIES :]
    earlier = kept[kept < len(vectors) - len(sample)]
    close = np.zeros(len(sample), np.bool_)
    for start in range(0, len(earlier), 1 << 14):
        others = vectors[earlier[start : start + (1 << 14)]]
        close |= (sample @ others.T >= NEAR * UNIT**2).any(axis=1)
    left_out = ~np.isin(np.arange(len(vectors) - len(sample), len(vectors)), kept)
    print(
        f"near texts: {seconds:,.0f} s, {len(vectors) - len(kept):,} left out; of "
        f"{close.sum()} of a sample that are near an earlier one, {(left_out & close).sum()}",
        flush=True,
    )


def rate(data: Path) -> None:
    """Print how fast a model encodes passages like the pool's."""
    texts = passages(data, WORDS, STEP, TIMED)
    model = EncoderSource.resolve("encoder", PACKAGED).open()
    model.encode(texts[:AT_ONCE])
    begun = time.process_time()
    for start in range(0, len(texts), AT_ONCE):
        model.encode(texts[start : start + AT_ONCE])
    seconds = time.process_time() - begun
    print(f"{PACKAGED}: {len(texts) / seconds:.0f} passages a second of a processor", flush=True)


def embedded(data: Path) -> np.ndarray:
    """Return the embeddings of passages by a model, on the grid, float32 (n, d)."""
    texts = passages(data, 2 * WORDS, 2 * WORDS, MODELLED)
    model = EncoderSource.resolve("encoder", PACKAGED).open()
    parts = [model.encode(texts[at : at + AT_ONCE]) for at in range(0, len(texts), AT_ONCE)]
    return on_grid(np.concatenate(parts))


def by_model(vectors: np.ndarray) -> None:
    """Print what lists of texts that a model encoded find: near texts, and by numbers of probes."""
    lists = 4 * math.isqrt(len(vectors))
    near_lists = train(vectors, Asked(lists, None, 1), SEARCHED).near
    kept = apart(vectors, np.zeros((len(vectors), 1), np.int64))
    left_out = len(vectors) - len(apart(vectors, near_lists))
    print(f"near texts: {left_out:,} of {len(vectors) - len(kept):,} are left out", flush=True)
    vectors = vectors[kept]
    for probes in (8, 16, 32, 64, None):
        trained = train(vectors, Asked(lists, probes, 1))
        print(searching(arrange(vectors, trained, np.arange(len(vectors))).search), flush=True)


if __name__ == "__main__":
    main()
