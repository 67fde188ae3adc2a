"""The demo: 300 news texts become a release, and three of them are shown before and after.

Both texts come with gensim: the corpus is its Lee collection, and the public vocabulary is the
most frequent words of another text, a hundred encyclopedia articles.

    python examples/demo.py [Beam options]
"""

from __future__ import annotations

import bz2
import json
import os
import secrets
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import gensim
import pyarrow as pa
import pyarrow.parquet as pq
from gensim.corpora.wikicorpus import extract_pages, filter_wiki

from quietcorpus.indexes.tokenizer import tokenize

ROOT = Path(__file__).resolve().parents[1]
TEXTS = Path(gensim.__file__).parent / "test" / "test_data"
ENCYCLOPEDIA = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
TERMS = 2000
SHOWN = 3


def main() -> None:
    """Prepare, release, verify, show."""
    documents = prepare(ROOT)
    release = f"lee-{secrets.token_hex(4)}"
    output = f"build/demo/releases/{release}"
    spec = (ROOT / "examples" / "demo.yaml").read_text("utf-8")
    (ROOT / "build/demo/spec.yaml").write_text(spec.replace("lee-news", release), "utf-8")
    print(f"{len(documents)} news texts, {TERMS} public terms, spec build/demo/spec.yaml\n")
    command = [sys.executable, "-m", "quietcorpus.pipelines.cli.main"]
    for arguments in (["release", "build/demo/spec.yaml", *sys.argv[1:]], ["verify", output]):
        print("$ quietcorpus", *arguments, flush=True)
        subprocess.run([*command, *arguments], cwd=ROOT, env=os.environ, check=True)
        print()
    show(documents, ROOT / output)
    print(f"The release is in {output}; its card, for people, is {output}/README.md")


def prepare(root: Path) -> list[str]:
    """Write what the specs in this folder read, below `root`/build/demo; returns the documents."""
    folder = root / "build" / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    documents = (TEXTS / "lee_background.cor").read_text("utf-8").splitlines()
    with open(folder / "corpus.jsonl", "w", encoding="utf-8") as stream:
        for number, text in enumerate(documents):
            stream.write(json.dumps({"article": f"lee-{number:03d}", "text": text}) + "\n")
    with bz2.open(TEXTS / ENCYCLOPEDIA, "rt", encoding="utf-8") as pages:
        articles = [filter_wiki(text) for _, text, _ in extract_pages(pages)]
    (folder / "vocabulary.txt").write_text("\n".join(frequent_words(articles)) + "\n", "utf-8")
    shutil.copy(TEXTS / "lee_fasttext.vec", folder / "vectors.txt")
    return documents


def frequent_words(texts: list[str]) -> list[str]:
    """The most frequent words of three letters and more."""
    tokens = tokenize(pa.array(texts))
    spans = zip(tokens.starts, tokens.ends, strict=True)
    words = (bytes(tokens.data[start:end]).decode() for start, end in spans)
    counts = Counter(word for word in words if len(word) > 2)
    return [word for word, _ in counts.most_common(TERMS)]


def show(documents: list[str], output: Path) -> None:
    """Print a few documents and what the release says of them."""
    terms = pq.read_table(output / "vocabulary.parquet")["term"].to_pylist()
    rows = {row["id"]: row for row in pq.read_table(output / "data").to_pylist()}
    for number in range(SHOWN):
        row = rows[f"lee-{number:03d}"]
        counted = sorted(zip(row["counts"], row["terms"], strict=True), reverse=True)
        words = " ".join(f"{terms[term]}:{count}" for count, term in counted)
        for title, text in (("before", documents[number]), ("after", words)):
            print(textwrap.shorten(f"{title:7}{text}", 300, placeholder=" ..."))
        print()


if __name__ == "__main__":
    main()
