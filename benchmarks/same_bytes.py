"""Compares the releases of every kind that two checkouts make, under one key, of one corpus.

    python benchmarks/same_bytes.py BEFORE AFTER --texts complaints.parquet --users commits.parquet

Run it with an environment that has what both checkouts need. Every file must be the same but for
the card and its README; the card's differences are printed.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from quietcorpus.indexes.tokens.tokenizer import tokenize

MASTER_KEY = hashlib.sha256(b"a key for measurements, which everybody knows").hexdigest()
PACKAGES = "mechanisms", "indexes", "evaluation", "transforms", "pipelines"
DOCUMENTS, USER_DOCUMENTS, WORDS, DIMENSIONS = 250, 6_000, 2_000, 20
VARYING = {"created", "software", "readme_sha256"}

PUBLIC = {"public": "vocabulary.txt"}
WORD_VECTORS = {"kind": "word-embeddings", "user": "author", "users": 500, "delta": 2e-5}
WORD_VECTORS |= {"vocabulary": PUBLIC, "dimensions": 8, "few_users": "accept"}
KINDS: dict[str, dict[str, Any]] = {
    "bags": {"kind": "bag-of-words", "precision": 4, "epsilon": 4, "histogram_epsilon": 1}
    | {"vocabulary": PUBLIC, "compression": {"method": "frequency", "size": 100}},
    "sparse-bags": {"kind": "bag-of-words", "precision": 1, "epsilon": 4, "histogram_epsilon": 1}
    | {"vocabulary": {"private": {"epsilon": 4, "delta": 1e-5}}}
    | {"compression": {"method": "none"}, "include": ["bins"]},
    "histogram": {"kind": "histogram", "precision": 4, "epsilon": 1}
    | {"vocabulary": {"private": {"epsilon": 4, "delta": 1e-5}}},
    "madlib": {"kind": "words", "mechanism": "madlib", "epsilon": 8, "index": "index"},
    "brr": {"kind": "words", "mechanism": "brr", "epsilon": 1, "index": "index"}
    | {"out_of_vocabulary": "draw"},
    "sgd": WORD_VECTORS | {"method": "sgd", "epsilon": 8, "training": {"steps": 5, "lot": 100}},
    "cooccurrence": WORD_VECTORS | {"method": "cooccurrence", "epsilon": 60},
    "truncation": {"kind": "sentence-embeddings", "mechanism": "truncation"}
    | {"epsilon": 10, "candidates": "candidates"},
    "depth": {"kind": "sentence-embeddings", "mechanism": "deep-candidate"}
    | {"epsilon": 10, "candidates": "candidates", "utility": "depth"},
    "similarity": {"kind": "sentence-embeddings", "mechanism": "deep-candidate"}
    | {"epsilon": 10, "candidates": "candidates", "utility": "similarity"},
}


def command(checkout: Path, folder: Path, *arguments: str) -> None:
    """Run the command line of a checkout, whose packages are found through links."""
    with tempfile.TemporaryDirectory() as links:
        package = Path(links) / "quietcorpus"
        package.mkdir()
        for path in [*(checkout / "quietcorpus").glob("*.py"), *map(checkout.joinpath, PACKAGES)]:
            (package / path.name).symlink_to(path)
        # A training's noise is bound to the digest of the code, which is the same here.
        code = (
            "from quietcorpus.pipelines.environment import version\n"
            "version.environment_digest = lambda: 'of both'\n"
            "from quietcorpus.cli.main import main; main()"
        )
        environment = {"PYTHONPATH": links, "QUIETCORPUS_MASTER_KEY": MASTER_KEY}
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code, *arguments],
            cwd=folder,
            env=os.environ | environment | {"HF_HUB_OFFLINE": "1"},
            check=True,
            stdout=subprocess.DEVNULL,
        )


def prepare(folder: Path, texts: Path, users: Path, checkout: Path) -> None:
    """Write corpora, vocabulary and vectors, and have a checkout build index and candidates."""
    columns = pq.read_table(texts, columns=["text"], use_threads=False).slice(0, DOCUMENTS)
    pq.write_table(columns, folder / "texts.parquet")
    commits = pq.read_table(users, columns=["author", "text"], use_threads=False)
    pq.write_table(commits.slice(0, USER_DOCUMENTS), folder / "users.parquet")
    tokens = tokenize(columns["text"].combine_chunks())
    raw = tokens.data.tobytes()
    counts = Counter(raw[a:b].decode() for a, b in zip(tokens.starts, tokens.ends, strict=True))
    words = [word for word, _ in counts.most_common(WORDS)]
    (folder / "vocabulary.txt").write_text("\n".join(words) + "\n")
    vectors = np.random.default_rng(1).normal(size=(len(words), DIMENSIONS))
    lines = (
        f"{w} {' '.join(f'{x:.5f}' for x in v)}\n" for w, v in zip(words, vectors, strict=True)
    )
    (folder / "vectors.txt").write_text("".join(lines))
    built = ["index", "build", "vectors.txt", "--output", "index", "--provenance", "public"]
    command(checkout, folder, *built)
    sizes = ["--candidates=40", "--clusters=4", "--projections=20", "--least-sentences=7"]
    built = ["index", "build-candidates", "texts.parquet", "--output", "candidates", *sizes]
    command(checkout, folder, *built, "--provenance", "public")


def released(checkout: Path, folder: Path, name: str) -> tuple[dict[str, str], list[str]]:
    """Make one release: the digests of its files, and the lines of its card."""
    corpus = "users.parquet" if "user" in KINDS[name] else "texts.parquet"
    spec = {"release": name, "input": {"path": corpus}, "output": "out", "mechanism": KINDS[name]}
    if '"accept": {' in (checkout / "docs/reference/spec.schema.json").read_text():
        spec["accept"] = ["unchanged-words", "large-epsilon", "large-delta"]
    (folder / "spec.yaml").write_text(json.dumps(spec))
    command(checkout, folder, "release", "spec.yaml")
    out = folder / "out"
    digests = {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.name not in ("release.json", "README.md")
    }
    card = json.loads((out / "release.json").read_text())
    kept = {key: value for key, value in card.items() if key not in VARYING}
    out.rename(folder / f"{name}-{len(list(folder.glob(f'{name}-*')))}")
    return digests, json.dumps(kept, indent=1, ensure_ascii=False).splitlines()


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--users", type=Path, required=True)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    given = parser.parse_args()
    before, after = given.before.resolve(), given.after.resolve()
    different = 0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        prepare(folder, given.texts, given.users, before)
        for name in given.kinds:
            (old, old_card), (new, new_card) = (
                released(checkout, folder, name) for checkout in (before, after)
            )
            different += old != new
            print(f"{name:14} {len(new)} files, {'the same' if old == new else 'DIFFERENT'}")
            for line in difflib.unified_diff(old_card, new_card, "before", "after", "", "", 0, ""):
                print(f"    {line}")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
