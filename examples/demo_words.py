"""The demo of word-level releases: news texts at three epsilons, before and after.

The texts are gensim's Lee collection; the vectors are GloVe's for 33,860 words, 300-dimensional, as
another package carries them.

    python examples/demo_words.py VECTORS
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import textwrap
from pathlib import Path

import gensim
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "demo-words"
TEXTS = Path(gensim.__file__).parent / "test" / "test_data" / "lee_background.cor"
DOCUMENTS = 100
EPSILONS = (5, 8, 10)  # at most .28 of the words come back unchanged
SHOWN = 3


def main(vectors: str) -> None:
    """Prepare, release at each epsilon, verify and show."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    documents = TEXTS.read_text("utf-8").splitlines()[:DOCUMENTS]
    with open(FOLDER / "corpus.jsonl", "w", encoding="utf-8") as stream:
        for number, text in enumerate(documents):
            stream.write(json.dumps({"article": f"lee-{number:03d}", "text": text}) + "\n")
    index = "build/demo-words/index"
    if not (ROOT / index).exists():
        run("index", "build", vectors, "--output", index, "--provenance", "public")
    run_id = secrets.token_hex(4)
    outputs = {}
    for epsilon in EPSILONS:
        release = f"news-words-{run_id}-{epsilon}"
        outputs[epsilon] = f"build/demo-words/releases/{release}"
        spec = (ROOT / "examples" / "words.yaml").read_text("utf-8")
        spec = spec.replace("news-words", release).replace("epsilon: 10 ", f"epsilon: {epsilon} ")
        path = f"build/demo-words/spec-{epsilon}.yaml"
        (ROOT / path).write_text(spec, "utf-8")
        run("release", path)
    run("verify", outputs[EPSILONS[-1]])
    show(documents, outputs)
    print(
        f"The releases are in {FOLDER.relative_to(ROOT)}/releases; each has a README.md, its card"
    )


def run(*arguments: str) -> None:
    """Run a quietcorpus command, and show it."""
    print("$ quietcorpus", *arguments, flush=True)
    command = [sys.executable, "-m", "quietcorpus.cli.main", *arguments]
    subprocess.run(command, cwd=ROOT, env=os.environ, check=True)
    print()


def show(documents: list[str], outputs: dict[int, str]) -> None:
    """Print a few sentences, and what each release makes of them."""
    released = {
        epsilon: {row["id"]: row["text"] for row in pq.read_table(ROOT / path / "data").to_pylist()}
        for epsilon, path in outputs.items()
    }
    for epsilon, path in outputs.items():
        print(f"epsilon = {epsilon:<4}{meaning(ROOT / path)}")
    print()
    for number in range(SHOWN):
        lines = {"before": documents[number]}
        for epsilon, texts in released.items():
            lines[f"epsilon = {epsilon}"] = texts[f"lee-{number:03d}"]
        for title, text in lines.items():
            print(f"{title:14}{textwrap.shorten(text, 240, placeholder=' ...')}")
        print()


def meaning(release: Path) -> str:
    """Return the card's statement of what epsilon does to the typical word of the index."""
    told = json.loads((release / "release.json").read_text("utf-8"))["meaning"]
    (typical,) = told["typical"]
    unchanged, among = (typical[name]["median"] for name in ("unchanged", "set_size"))
    return (
        f"the median word comes back unchanged with a chance of {unchanged:.2f}, and hides "
        f"among about {among:.0f} words; two words at the mean distance are told apart within a "
        f"factor of exp({told['loss_at_mean']:.0f})"
    )


if __name__ == "__main__":
    main(sys.argv[1])
