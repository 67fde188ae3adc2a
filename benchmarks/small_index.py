"""Files that a worker fetches of an index by its mechanism, from a real S3 server; words' cost.

    PYTHONPATH=.:tests python benchmarks/small_index.py [--glove V.txt]

Without vectors of its own, it generates 33,000 x 300, and says so. Every row says what is compared.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import faiss
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from s3_proxy import Proxy
from s3_server import S3Server
from words import load, spelled

from quietcorpus.indexes import binarisation
from quietcorpus.indexes.tokenizer import NAME, tokenize
from quietcorpus.indexes.tokenizers import UNICODE_WORDS
from quietcorpus.indexes.vectors import WordVectors, reachable
from quietcorpus.indexes.vectors.writing import as_text
from quietcorpus.indexes.vocabulary import Vocabulary
from quietcorpus.indexes.word_index import WordIndex, contents, open_index, save
from quietcorpus.indexes.word_index_manifest import METRICS, IndexManifest
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.artefacts.word_index import IndexSource
from quietcorpus.transforms.privatizers.words import (
    WordMechanism,
    WordPrivatizer,
    WordsParameters,
)
from quietcorpus.transforms.reading.documents import Documents

WORDS, DIMENSIONS, BITS, TOKENS, REPEATS = 33_000, 300, 256, 1 << 14, 5
INDEX, FILE = 1_600, 2_400
"""Bytes a word of BRR's paper: its Annoy index of vectors, and its vocabulary file with vectors.

They follow from its sizes: 4 MB of codes are 125,000 words, whose index is 200 MB and file 300 MB.
"""
INDEX_LESS, FILE_LESS = 0.979, 0.985
"""The paper's savings against these."""
FETCH = """
import sys
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from quietcorpus.transforms.artefacts.word_index import IndexSource
from quietcorpus.transforms.privatizers.words import WordMechanism, parts_read

FileSystems.set_options(PipelineOptions([]))
source = IndexSource.resolve("index", sys.argv[1])
source.open(*parts_read(WordMechanism(sys.argv[2])))
"""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--glove", help="300-d vectors, word2vec text")
    given = parser.parse_args()
    if given.glove:
        found = reachable(WordVectors(*load(given.glove)), UNICODE_WORDS)
        name, words, vectors = "GloVe 840B", found.words, found.values
    else:
        name = "generated vectors and made-up words, not real ones"
        words = [spelled(number) for number in range(WORDS)]
        generator = np.random.default_rng(1)
        vectors = generator.normal(size=(WORDS, DIMENSIONS)).astype(np.float32)
    vocabulary = Vocabulary(words)
    codes = binarisation.train(vectors, BITS, 1).encode(vectors)
    index = WordIndex(described(vectors), vocabulary, vectors, codes)
    print(f"{name}: {len(words):,} words x {vectors.shape[1]} dimensions, codes of {BITS} bits\n")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for version in ("1", "2"):
            (folder / version).mkdir()
        for file, content in contents(index):
            (folder / "1" / file).write_bytes(content)
        save(str(folder / "2"), index.manifest, vocabulary, vectors, codes)
        sizes = fetched(folder)
        compare(sizes, words, vectors)
        words_cost(folder, words)


def described(vectors: npt.NDArray[np.float32]) -> IndexManifest:
    """Return a manifest for measurements."""
    some = {"mean": "1", "maximum": "1", "largest_met": "1"}
    return IndexManifest(
        provenance="public",
        guarantee=None,
        source={},
        words=len(vectors),
        dimensions=vectors.shape[1],
        bits=BITS,
        tokenizer=NAME,
        seed=1,
        measures={},
        distances=dict.fromkeys(METRICS, some),
        builder="benchmark",
    )


def fetched(folder: Path) -> dict[str, dict[str, int]]:
    """Return the bytes of every file that the server sent to a worker of each mechanism.

    They are counted between worker and server, headers included. `before` is a worker of format 1,
    which fetched every file, whatever its mechanism.
    """
    found: dict[str, dict[str, int]] = {}
    (folder / "s3").mkdir()
    server = S3Server(folder / "s3")
    server.start()
    proxy = Proxy(server.endpoint)
    threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True).start()
    try:
        for path in [*(folder / "1").iterdir(), *(folder / "2").iterdir()]:
            server.client().upload_file(str(path), "corpus", f"{path.parent.name}/{path.name}")
        for mechanism in WordMechanism:
            proxy.sent.clear()
            environment = server.environment | {"AWS_ENDPOINT_URL_S3": proxy.url}
            environment["QUIETCORPUS_CACHE"] = str(folder / mechanism)
            subprocess.run(
                [sys.executable, "-c", FETCH, "s3://corpus/2", mechanism],
                env=os.environ | environment,
                check=True,
            )
            found[mechanism] = dict(proxy.sent)
    finally:
        proxy.shutdown()
        server.stop()
    found["before"] = {path.name: path.stat().st_size for path in (folder / "1").iterdir()}
    return found


def compare(
    sizes: dict[str, dict[str, int]], words: list[str], vectors: npt.NDArray[np.float32]
) -> None:
    """Print what is fetched, and ratios of several meanings."""
    print("| a worker of | fetches | bytes | bytes a word |\n|---|---|---|---|")
    for worker, files in sizes.items():
        total = sum(files.values())
        print(f"| {worker} | {', '.join(sorted(files))} | {total:,} | {total / len(words):.1f} |")
    brr, madlib = sizes["brr"], sizes["madlib"]
    whole = sum(brr.values())
    codes = brr["codes.npy"]
    graphs = {links: len(faiss.serialize_index(graph(vectors, links))) for links in (32, 64)}
    print("\n| compared | less | the paper's |\n|---|---|---|")
    line("codes to the paper's index, 1,600 bytes a word", codes, INDEX * len(words), INDEX_LESS)
    line("codes to float32 vectors (what is fetched, words excluded)", codes, madlib["vectors.npy"])
    line("codes to FAISS's graph of the vectors, HNSW32 (words excluded)", codes, graphs[32])
    line("codes to FAISS's graph of the vectors, HNSW64 (words excluded)", codes, graphs[64])
    print(f"| 192 bits to {vectors.shape[1]} float32 | {1 - 24 / 4 / vectors.shape[1]:.2%} | |")
    line("all that BRR's worker fetches to all that Madlib's does", whole, sum(madlib.values()))
    line("the same to all that either fetched before", whole, sum(sizes["before"].values()))
    line("the same to the paper's file, 2,400 bytes a word", whole, FILE * len(words), FILE_LESS)
    text = len(as_text(words, vectors))
    line("the same to vocabulary and vectors as word2vec text", whole, text, FILE_LESS)


def line(compared: str, small: int, large: int, theirs: float | None = None) -> None:
    """Print one ratio, and the paper's where the paper compares the same structures."""
    shown = f"{theirs:.1%}" if theirs else ""
    print(f"| {compared} | {1 - small / large:.2%} | {shown} |")


def graph(vectors: npt.NDArray[np.float32], links: int) -> faiss.IndexHNSWFlat:
    """Build a graph; only its size matters, and that does not depend on the care."""
    found = faiss.IndexHNSWFlat(vectors.shape[1], links)
    found.hnsw.efConstruction = 8
    found.add(vectors)
    return found


def words_cost(folder: Path, words: list[str]) -> None:
    """Print what the words cost in either format: room, look-up, spelling, releases by BRR."""
    indexes = [open_index(str(folder / version), None, ("codes",)) for version in "12"]
    chosen = np.minimum(np.random.default_rng(1).zipf(1.2, TOKENS) - 1, len(words) - 1)
    texts = pa.array([" ".join(words[i] for i in part) for part in np.split(chosen, 64)])
    texts = texts.cast(pa.large_string())
    tokens = tokenize(texts)
    documents = Documents("benchmark", np.arange(64), texts, pa.table({}))
    key = ReleaseKey.derive(os.urandom(32), "benchmark", b"")
    source = IndexSource("index", "", "")
    parameters = WordsParameters(WordMechanism.BRR, Fraction(1, 2), "word", "drop", source)
    privatizers = [WordPrivatizer(parameters, index, key) for index in indexes]
    results = [privatizer.release(documents).rows for privatizer in privatizers]
    assert results[0].equals(results[1])
    ids = chosen.astype(np.int32)
    rows: list[tuple[str, list[Callable[[], object]]]] = [
        ("look-up", [lambda i=i: i.vocabulary.look_up(tokens) for i in indexes]),
        ("spelling", [lambda i=i: i.vocabulary.spelled(ids) for i in indexes]),
        ("release by BRR", [lambda p=p: p.release(documents) for p in privatizers]),
    ]
    rooms = [
        sum((folder / version / name).stat().st_size for name in names) / len(words)
        for version, names in (
            ("1", ("words.arrow", "slots.npy")),
            ("2", ("words.npy", "order.npy")),
        )
    ]
    print("\n| words | format 1 | format 2 | |\n|---|---|---|---|")
    print(
        f"| bytes a word | {rooms[0]:.1f} | {rooms[1]:.1f} | {1 - rooms[1] / rooms[0]:.0%} less |"
    )
    for name, functions in rows:
        old, new = fastest(functions)
        per = 1e9 / TOKENS
        print(f"| {name}, ns a word | {old * per:,.0f} | {new * per:,.0f} | x {new / old:.3f} |")
    print("\nreleases of both formats, taken for one index, are the same")


def fastest(functions: list[Callable[[], object]]) -> list[float]:
    """Return the least seconds of each, taken in turns."""
    taken: list[list[float]] = [[] for _ in functions]
    for _ in range(REPEATS):
        for function, seconds in zip(functions, taken, strict=True):
            begun = time.perf_counter()
            function()
            seconds.append(time.perf_counter() - begun)
    return [min(seconds) for seconds in taken]


if __name__ == "__main__":
    main()
