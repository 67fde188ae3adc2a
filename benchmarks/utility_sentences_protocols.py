"""Compares mechanisms for sentence embeddings by what classifiers learn, with `evaluate`.

Private are 1,600 film reviews of two sentiments, of 8 sentences or more (the first 16 count), and
1,500 complaints about five groups of products, of 5 or more (the first 10). Of 2,400 others, 2,000
become candidates, and 200 choose, by `calibrate sentence-embeddings`, the number of directions and
the mechanism that comes closest. Classifiers learn from rows as released, or from originals, and
are tested on others as released; and a network as the paper has it, of recoded means.

    python benchmarks/utility_sentences_protocols.py --data ../shared/data \\
        --folder build/utility-sentences

Artefacts, releases and reports stay in the folder, so that a stopped run can go on. `--public FILE`
writes the texts of both corpora that are in no other file here, for `index build-encoder`;
`--encoder FOLDER` releases by such an encoder instead, and leaves out the numbers of sentences.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from threadpoolctl import threadpool_limits

import quietcorpus as qc
from quietcorpus.indexes.tokens.segmentation import split
from quietcorpus.transforms.artefacts.encoder import PACKAGED

EPSILONS = (3, 6, 10, 15, 25)
AT_EPSILON, LENGTHS = 10, (2, 4, 8, 16, 32)
CALIBRATED = 200
PROTOCOLS = ("", "network", "learnt from originals", "network learnt from originals")
AS_PUBLISHED = "network of four layers learnt from recoded originals"  # of candidates alone
MEASURES = ("f1", "accuracy")


class Corpus(NamedTuple):
    """Documents with labels, of which some are private.

    Attributes:
        file, label: the file of the corpus, and its column of labels.
        private: the number of private documents.
        least: the fewest sentences of a document that is used.
        sentences: how many sentences of a document count, at most.
        public, candidates: the number of other documents, and of candidates made of them.
    """

    file: str
    label: str
    private: int
    least: int
    sentences: int
    public: int = 2_400
    candidates: int = 2_000


CORPORA = {
    "reviews": Corpus("imdb_reviews.parquet", "label", 1_600, 8, 16),
    "complaints": Corpus("cfpb_complaints.parquet", "label5", 1_500, 5, 10),
}


def prepare(corpus: Corpus, data: Path, folder: Path) -> None:
    """Write the private documents and both sets of public ones, disjoint."""
    if (folder / "more.parquet").exists():
        return
    table = pq.read_table(data / corpus.file, columns=["text", corpus.label])
    needed = corpus.private + corpus.public + CALIBRATED
    chosen: list[int] = []
    for row in np.random.default_rng(0).permutation(len(table)).tolist():
        found = split([table["text"][row].as_py()], corpus.sentences, "en").texts
        if len(found) >= corpus.least and len(chosen) < needed:
            chosen.append(row)
    assert len(chosen) == needed
    folder.mkdir(parents=True, exist_ok=True)
    ids = pa.array([f"d{number}" for number in range(needed)])
    table = table.take(chosen).append_column("id", ids)
    private, rest = table.slice(0, corpus.private), table.slice(corpus.private)
    pq.write_table(private, folder / "private.parquet")
    pq.write_table(rest.slice(0, corpus.public).select(["text"]), folder / "public.parquet")
    pq.write_table(rest.slice(corpus.public).select(["text"]), folder / "more.parquet")


def build_candidates(corpus: Corpus, folder: Path, encoder: str) -> None:
    """Build the candidates, unless they are there."""
    if (folder / "candidates" / "manifest.json").exists():
        return
    qc.build_candidates(
        folder / "public.parquet",
        folder / "candidates",
        provenance="public",
        encoder=encoder,
        candidates=corpus.candidates,
        least_sentences=corpus.least,
        most_sentences=corpus.sentences,
    )


def write_public(data: Path, folder: Path, output: Path) -> None:
    """Write the texts of both corpora that no protocol uses."""
    rest: list[str] = []
    for name, corpus in CORPORA.items():
        used = {
            text
            for part in ("private", "public", "more")
            for text in pq.read_table(folder / name / f"{part}.parquet")["text"].to_pylist()
        }
        texts = pq.read_table(data / corpus.file, columns=["text"])["text"].to_pylist()
        rest += [text for text in texts if text not in used]
    pq.write_table(pa.table({"text": rest}), output)


def compared(folder: Path, encoder: str) -> dict[str, dict[str, Any]]:
    """Return the variants to measure: of each epsilon, three, and the one that comes closest."""
    kept = folder / "report.yaml"
    if not kept.exists():
        outcomes = qc.calibrate_sentences(
            folder / "candidates",
            folder / "more.parquet",
            epsilons=EPSILONS,
            documents=CALIBRATED,
            encoder=encoder,
        )
        variants = {}
        for epsilon in EPSILONS:
            own = [one for one in outcomes if one.epsilon == epsilon]
            projected = [one for one in own if one.directions is not None]
            for name, some in (("projected mean", projected), ("calibrated", own)):
                best = max(some, key=lambda one: one.agreement)
                block = {
                    "mechanism": str(best.mechanism.value),
                    "utility": best.utility and str(best.utility.value),
                    "projections": best.projections,
                    "directions": best.directions,
                }
                variants[f"{name}, {epsilon}"] = {"epsilon": epsilon} | block
            drawn = {"mechanism": "deep-candidate", "projections": None, "directions": None}
            for utility in ("similarity", "depth"):
                block = drawn | {"utility": utility, "epsilon": epsilon}
                variants[f"{utility}, {epsilon}"] = block
        kept.write_text(yaml.safe_dump(variants))
    found: dict[str, dict[str, Any]] = yaml.safe_load(kept.read_text())
    return found


def by_length(folder: Path, variants: dict[str, dict[str, Any]]) -> list[str]:
    """Write curves at one epsilon, by how many sentences count; return the ways to release."""
    blocks = {
        way: variants[f"{way}, {AT_EPSILON}"] for way in ("projected mean", "similarity", "depth")
    }
    curves = {
        way: {length: block | {"most_sentences": length} for length in LENGTHS}
        for way, block in blocks.items()
    }
    (folder / "by-length.yaml").write_text(yaml.safe_dump(curves))
    return list(curves)


def release(name: str, corpus: Corpus, folder: Path, encoder: str) -> None:
    """Release the private documents, if they are not released yet."""
    spec = {
        "release": name,
        "input": {
            "path": str(folder / "private.parquet"),
            "id": "id",
            "keep": ["id", corpus.label],
        },
        "output": str(folder / "released"),
        "mechanism": {
            "kind": "sentence-embeddings",
            "mechanism": "deep-candidate",
            "utility": "similarity",
            "epsilon": 10,
            "candidates": str(folder / "candidates"),
            "encoder": encoder,
            "most_sentences": corpus.sentences,
        },
    }
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec))
    if not (folder / "released").exists():
        qc.release(folder / "spec.yaml")


def evaluated(corpus: Corpus, folder: Path, draws: int, report: str) -> list[dict[str, Any]]:
    """Measure the variants of a report, and return the figures."""
    found = folder / report / "evaluation.json"
    if not found.exists():
        qc.evaluate(
            folder / "released",
            against=folder / "private.parquet",
            output=folder / report,
            spec=folder / "spec.yaml",
            label=corpus.label,
            draws=draws,
            compare=folder / f"{report}.yaml",
            audits=False,
        )
    figures: list[dict[str, Any]] = json.loads(found.read_text())["figures"]
    return figures


def print_tables(name: str, figures: list[dict[str, Any]], variants: dict[str, Any]) -> None:
    """Print a table in Markdown for each protocol and measure, and the numbers of directions."""
    directions = [variants[f"projected mean, {epsilon}"]["directions"] for epsilon in EPSILONS]
    print(f"\n{name}: directions of projected-mean by epsilon {EPSILONS}: {directions}")
    for measure in MEASURES:
        for protocol in (*PROTOCOLS, AS_PUBLISHED):
            own = [one for one in figures if (one["measure"], one["group"]) == (measure, protocol)]
            title = f"{name}, {measure}{', ' * bool(protocol)}{protocol}"
            print(f"\n| {title} | {' | '.join(map(str, EPSILONS))} |")
            print("|---" * (len(EPSILONS) + 1) + "|")
            for one in own:
                if one["subject"] == "original" and not one["setting"]:
                    print(f"| mean without noise | {one['mean']:.3f} |" + " |" * 4)
            for way in dict.fromkeys(key.partition(", ")[0] for key in variants):
                if protocol == AS_PUBLISHED and way not in ("similarity", "depth"):
                    continue
                cells = [cell(own, compare=f"{way}, {epsilon}") for epsilon in EPSILONS]
                print(f"| {way} | {' | '.join(cells)} |")


def print_by_length(name: str, figures: list[dict[str, Any]], ways: Iterable[str]) -> None:
    """Print a table in Markdown for each protocol: macro-F1 and linkage, by k."""
    shown = [("f1", protocol) for protocol in PROTOCOLS] + [("linkage", "")]
    for measure, group in shown:
        own = [one for one in figures if (one["measure"], one["group"]) == (measure, group)]
        title = f"{name}, {measure}{', ' * bool(group)}{group}, epsilon {AT_EPSILON}, by k"
        print(f"\n| {title} | {' | '.join(map(str, LENGTHS))} |")
        print("|---" * (len(LENGTHS) + 1) + "|")
        for way in ways:
            cells = [cell(own, compare=way, at=str(length)) for length in LENGTHS]
            print(f"| {way} | {' | '.join(cells)} |")


def cell(figures: list[dict[str, Any]], **setting: str) -> str:
    """Format the mean over the draws of a setting, with its interval if draws differ."""
    (one,) = (
        figure
        for figure in figures
        if figure["subject"] == "release" and figure["setting"] == setting
    )
    between = "" if one["low"] is None else f" ({one['low']:.3f}-{one['high']:.3f})"
    return f"{one['mean']:.3f}{between}"


def prepared(description: str) -> Iterator[tuple[str, Corpus, Path, argparse.Namespace]]:
    """Parse the command, and yield each corpus: its name, itself, its folder and what is given."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", required=True, type=Path, help="a folder: reviews, complaints")
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--encoder", default=PACKAGED)
    parser.add_argument("--public", type=Path)
    given = parser.parse_args()
    for name, corpus in CORPORA.items():
        prepare(corpus, given.data, given.folder.resolve() / name)
    if given.public:
        write_public(given.data, given.folder, given.public)
        return
    for name, corpus in CORPORA.items():
        build_candidates(corpus, given.folder.resolve() / name, given.encoder)
        yield name, corpus, given.folder.resolve() / name, given


def main() -> None:
    for name, corpus, folder, given in prepared(str(__doc__)):
        variants = compared(folder, given.encoder)
        release(name, corpus, folder, given.encoder)
        print_tables(name, evaluated(corpus, folder, given.draws, "report"), variants)
        if given.encoder == PACKAGED:
            ways = by_length(folder, variants)
            print_by_length(name, evaluated(corpus, folder, given.draws, "by-length"), ways)


if __name__ == "__main__":
    with threadpool_limits(1):  # on arrays of this size, more threads only wait for one another
        main()
