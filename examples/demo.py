"""The demo: 300 news texts become a release; the corpus's words and one text, before and after.

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

from quietcorpus.indexes.tokens.tokenizer import tokenize

ROOT = Path(__file__).resolve().parents[1]
TEXTS = Path(gensim.__file__).parent / "test" / "test_data"
ENCYCLOPEDIA = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
TERMS = 2000
COMMON = 200  # the most frequent of these are not shown: they say nothing of the news
SHOWN = 12
WIDTH = 300


def main() -> None:
    """Prepare, release, verify and show."""
    documents = prepare(ROOT)
    release = f"lee-{secrets.token_hex(4)}"
    output = f"build/demo/releases/{release}"
    spec = (ROOT / "examples" / "demo.yaml").read_text("utf-8")
    (ROOT / "build/demo/spec.yaml").write_text(spec.replace("lee-news", release), "utf-8")
    print(f"{len(documents)} news texts, {TERMS} public terms, spec build/demo/spec.yaml\n")
    command = [sys.executable, "-m", "quietcorpus.cli.main"]
    for arguments in (["release", "build/demo/spec.yaml", *sys.argv[1:]], ["verify", output]):
        print("$ quietcorpus", *arguments, flush=True)
        subprocess.run([*command, *arguments], cwd=ROOT, env=os.environ, check=True)
        print()
    show(documents, ROOT / output)
    print(f"The release is in {output}; its card, for people, is {output}/README.md")


def prepare(root: Path) -> list[str]:
    """Write the inputs of this folder's specs below `root`/build/demo; return the documents."""
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
    """Return the most frequent words of three letters and more."""
    counts = Counter(word for word in words_of(texts) if len(word) > 2)
    return [word for word, _ in counts.most_common(TERMS)]


def words_of(texts: list[str]) -> list[str]:
    """Return all words of some texts, as the tokenizer finds them."""
    tokens = tokenize(pa.array(texts))
    spans = zip(tokens.starts, tokens.ends, strict=True)
    return [bytes(tokens.data[start:end]).decode() for start, end in spans]


def show(documents: list[str], output: Path) -> None:
    """Print what the release reveals of the corpus, and of one document."""
    vocabulary = pq.read_table(output / "vocabulary.parquet")
    terms, weights = (vocabulary[name].to_pylist() for name in ("term", "weight"))
    exact = Counter(words_of(documents))
    common = set((output.parents[1] / "vocabulary.txt").read_text("utf-8").split()[:COMMON])
    telling = [row for row in zip(weights, terms, strict=True) if row[1] not in common]
    print(f"The corpus's own words, without the {COMMON} most frequent ones of an encyclopedia:\n")
    print(f"{'word':15}{'before':>8}{'after':>8}")
    for weight, term in sorted(telling, reverse=True)[:SHOWN]:
        print(f"{term:15}{exact[term]:8,}{weight:8,.0f}")
    print("\nOne text, of which little but noise is left: that is what N and epsilon protect.\n")
    (row,) = (row for row in pq.read_table(output / "data").to_pylist() if row["id"] == "lee-000")
    counted = sorted(zip(row["counts"], row["terms"], strict=True), reverse=True)
    words = " ".join(f"{terms[term]}:{count}" for count, term in counted)
    for title, text in (("before", documents[0]), ("after", words)):
        print(textwrap.shorten(f"{title:7}{text}", WIDTH, placeholder=" ..."))
    print()


if __name__ == "__main__":
    main()
