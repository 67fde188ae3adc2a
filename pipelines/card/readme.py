"""The card for people: `README.md`, with the front matter that Hugging Face datasets read.

The lines of a README that open a release in the tools that people have, to be copied.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from fractions import Fraction

from quietcorpus.mechanisms.accounting.guarantees import ceiling, shown_up

from ..storage import layout
from .mechanism import Mechanism
from .model import (
    Card,
    Meaning,
    MeasuredRecall,
    Reconstruction,
    Spread,
    UsedArtefact,
)
from .parameters import (
    DocumentLosses,
    DocumentParameters,
    LimitedPrecisionParameters,
    MetricParameters,
    Parameters,
    SentenceParameters,
    UserParameters,
    costs,
)
from .statements import named

_DATA = "data"
_OPEN = {
    "pandas": """\
import pandas as pd

rows = pd.read_parquet("{place}")
""",
    "Polars": """\
import polars as pl

rows = pl.read_parquet("{pattern}")
""",
    "DuckDB": """\
import duckdb

rows = duckdb.sql("from '{pattern}'")
""",
    "Spark": """\
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.read.parquet("{place}")
""",
    "Hugging Face `datasets`": """\
from datasets import load_dataset

rows = load_dataset("parquet", data_files="{pattern}", split="train")
""",
}
# `words` has a row for each word of a document, but in pandas and datasets one list a document.
_JOIN = {
    "pandas": """\
terms = pd.read_parquet("{vocabulary}")["term"]
rows["words"] = [terms[numbers].tolist() for numbers in rows["terms"]]
""",
    "Polars": """\
pairs = rows.explode("terms", "counts").rename({{"terms": "term_id", "counts": "count"}})
words = pairs.join(pl.read_parquet("{vocabulary}"), on="term_id")
""",
    "DuckDB": """\
pairs = duckdb.sql(
    "select * exclude (terms, counts), unnest(terms) as term_id, unnest(counts) as count from rows"
)
words = duckdb.sql("from pairs join '{vocabulary}' using (term_id)")
""",
    "Spark": """\
pairs = rows.selectExpr("*", "inline(arrays_zip(terms, counts)) as (term_id, count)")
words = pairs.drop("terms", "counts").join(spark.read.parquet("{vocabulary}"), "term_id")
""",
    "Hugging Face `datasets`": """\
terms = load_dataset("parquet", data_files="{vocabulary}", split="train")["term"]
rows = rows.map(lambda row: {{"words": [terms[number] for number in row["terms"]]}})
""",
}


def main_table(mechanism: Mechanism) -> str:
    """Return the pattern of the files of a release's main table."""
    path = next(iter(mechanism.files))
    return f"{_DATA}/*.parquet" if path == _DATA else path


def opening(mechanism: Mechanism) -> str:
    """Return how to open the main table; "" if it is not Parquet. Term numbers become words."""
    found = blocks(mechanism)
    if not found:
        return ""
    said = (
        "In the folder of this release; `quietcorpus.load` also checks the files against the card:"
    )
    (_, own), *others = found
    shown = (f"{tool}:\n\n{_block(lines)}" for tool, lines in others)
    return "\n".join([f"{said}\n\n{_block(own)}", *shown])


def blocks(mechanism: Mechanism) -> list[tuple[str, str]]:
    """Return tools, ours first, with lines that open the main table; none unless it is Parquet."""
    path, main = next(iter(mechanism.files.items()))
    if main.columns is None:
        return []
    joined = "terms" in main.columns
    places = {"place": path, "pattern": main_table(mechanism), "vocabulary": layout.VOCABULARY}
    own = 'import quietcorpus as qc\n\nrows = qc.load("."{}).rows\n'.format(
        ", words=True" if joined else ""
    )
    texts = ((tool, lines + (_JOIN[tool] if joined else "")) for tool, lines in _OPEN.items())
    return [("quietcorpus", own), *((tool, text.format(**places)) for tool, text in texts)]


def _block(lines: str) -> str:
    return f"```python\n{lines}```\n"


def render(card: Card) -> str:
    """Return the text of a release's README."""
    total = card.guarantee.parameters
    parts = [
        _front_matter(card),
        f"# {card.release}\n",
        _plain(card.guarantee.statement) + "\n",
        "## Guarantee\n",
        _table(
            [
                ("definition", f"{card.guarantee.definition}, {_numbers(total)}"),
                ("neighbours", card.guarantee.adjacency),
                ("unit", card.guarantee.unit),
                *((f"{s.stage} costs", costs(s.parameters)) for s in card.budget.stages),
                ("**in all**", costs(total)),
            ]
        ),
    ]
    if card.meaning:
        parts += ["## What epsilon means here\n", _meaning(card.meaning)]
    if card.papers_figure:
        parts.append(
            f"The paper's figure: epsilon = {shown_up(card.papers_figure.epsilon)}. "
            f"{card.papers_figure.explanation}\n"
        )
    parts += [
        "## What is not protected\n",
        "".join(f"- {_plain(line)}\n" for line in card.guarantee.not_protected),
        "## What is in here\n",
        _contents(card),
        *_opening(card),
        "## How it was made\n",
        _table(mechanism(card)),
    ]
    parts += [f"{note}\n" for note in card.mechanism.notes]
    if card.artefacts:
        parts.append("Artefacts:\n\n" + "".join(map(_artefact, card.artefacts)))
    if card.reconstruction:
        parts.append(_reconstructed(card.reconstruction))
    counted = (
        f"{card.counts.documents:,} documents, {card.counts.rejected:,} unreadable records "
        "rejected. "
        if card.counts
        else ""
    )
    parts.append(
        f"{counted}Made on {card.created} by quietcorpus {card.software['quietcorpus']}. "
        "`quietcorpus verify` checks every file against `release.json`.\n"
    )
    return "\n".join(parts)


def _reconstructed(made: Reconstruction) -> str:
    return (
        "**Reconstructed** from the noisy bins of the release whose `release.json` has the sha256 "
        f"`{made.card_sha256}`, and from nothing else, at no further cost. A model of "
        f"{made.factors} factors, which knows the noise's law, was fitted to them, and every row "
        "was drawn from what it tells of that document: counts are likely ones, not the "
        "document's own.\n"
    )


def _opening(card: Card) -> list[str]:
    lines = opening(card.mechanism)
    return ["## How to open it\n", lines] if lines else []


def _front_matter(card: Card) -> str:
    return (
        "---\n"
        f"pretty_name: {json.dumps(card.release)}\n"  # in quotes, or YAML might see a number
        "tags:\n- differential-privacy\n- quietcorpus\n"
        "configs:\n- config_name: default\n  data_files:\n"
        f"  - split: train\n    path: {main_table(card.mechanism)}\n"
        "---\n"
    )


def mechanism(card: Card) -> list[tuple[str, str]]:
    """Return the keys of the card's mechanism, and their values as text."""
    block = card.mechanism.model_dump(mode="json", exclude_none=True)
    return [(key, _shown(value)) for key, value in block.items()]


def contents(card: Card) -> list[tuple[str, str]]:
    """Return the files of the release, those of a folder as one, and what they hold."""
    names = dict.fromkeys(file.path.split("/")[0] for file in card.files)
    said = {path.split("/")[0]: file.meaning for path, file in card.mechanism.files.items()}
    if "data" in said:
        said["data"] = f"one row a document: `id`, the kept columns, {said['data']}"
    return [(name, said[name]) for name in names]


def _contents(card: Card) -> str:
    lines = [f"- `{name}`: {meaning}\n" for name, meaning in contents(card)]
    if card.columns:
        lines.append(f"- copied as they are: {_named(card)}\n")
    return "".join(lines)


def _named(card: Card) -> str:
    names = [_in_code(name) for name in card.columns]
    return named(names, card.id_column and _in_code(card.id_column), "`")


def _numbers(total: Parameters) -> str:
    match total:
        case LimitedPrecisionParameters():
            return f"N = {total.precision}, {costs(total)}"
        case MetricParameters():
            return f"{costs(total)}, d the {total.metric}"
        case SentenceParameters() | DocumentParameters():
            return costs(total)
        case UserParameters():
            groups = "; ".join(
                f"epsilon {ceiling(Fraction(group.epsilon_exact))} for {group.name}"
                for group in total.groups
            )
            return costs(total) + (f" ({groups})" if groups else "")


def _artefact(artefact: UsedArtefact) -> str:
    line = (
        f"- {artefact.name}: `{_in_code(artefact.uri)}`, sha256 `{artefact.digest}`, "
        f"{artefact.provenance}"
    )
    if artefact.guarantee is None:
        return line + "\n"
    stated = artefact.guarantee.get("statement") or json.dumps(artefact.guarantee)
    return f"{line}; what it cost comes on top of this release's: {_plain(stated)}\n"


def _meaning(meaning: Meaning) -> str:
    """Render the losses, and the effect on words, for people."""
    whose = "one word replaced" if meaning.loss_of_documents else "all of a document replaced"
    between = (
        ""
        if meaning.mean_interval is None
        else " (95 % interval {:.4g} to {:.4g}, from a sample of pairs)".format(
            *meaning.mean_interval
        )
    )
    losses = _table(
        [
            ("distance of two words, on average", f"{meaning.mean_distance:.4g}{between}"),
            ("distance of two words, at most", _up(meaning.maximum_distance)),
            (f"loss (log of the factor), {whose} at the mean distance", _up(meaning.loss_at_mean)),
            (f"loss, {whose} at the greatest distance", _up(meaning.loss_at_maximum)),
            *(
                (
                    f"loss, all {words:,} words of a document replaced at the mean distance",
                    _up(loss),
                )
                for words, loss in (meaning.loss_of_documents or {}).items()
            ),
        ]
    )
    rows = [
        f"| {'any' if t.document_words is None else format(t.document_words, ',')} "
        f"| {shown_up(t.epsilon, 4)} | {_spread(t.unchanged, none='none seen')} "
        f"| {_spread(t.set_size, most=t.set_size_limit)} |{_recall(t.recall)}\n"
        for t in meaning.typical
    ]
    searched = any(t.recall for t in meaning.typical)
    head = (
        "| words of the document | epsilon of a word | released as it is (N_w) | words that hold "
        f"95 % of the chance (S_w) |{' nearest words found (recall) |' if searched else ''}\n"
        f"|---|---|---|---|{'---|' if searched else ''}\n"
    )
    note = "Median word, and in brackets the middle 90 % and the extremes: "
    documents = ""
    if meaning.document_losses:
        shared = meaning.loss_of_documents is None
        documents = _documents(meaning.document_losses, shared=shared)
    mapped = _map_of(meaning.rescaled) if meaning.rescaled else ""
    return f"{mapped}{losses}\n{documents}{head}{''.join(rows)}\n{note}{meaning.sample}.\n"


def _map_of(rescaled: Mapping[str, str]) -> str:
    """Render the map by which an index's vectors were made, and what it does to numbers."""
    amounts = ", ".join(f"{key} {value}" for key, value in rescaled.items() if key != "by")
    return (
        f"The index's vectors were rescaled by {rescaled['by']} ({amounts}). Distances, and with "
        "them epsilon, N_w and S_w, are those of the rescaled vectors, and cannot be compared with "
        "those of another index.\n\n"
    )


def _documents(losses: DocumentLosses, *, shared: bool) -> str:
    """Render what documents are protected by as wholes; `shared`, if their words share epsilon."""
    rows = [
        f"| {row.words:,} | {_up(row.worst)} | {_up(row.epsilon_at_maximum)} "
        f"| {_up(row.epsilon_at_mean)} |\n"
        for row in losses.documents
    ]
    return (
        "The losses of a document's words add, but their worst case hardly ever happens. For two "
        "neighbours that differ in any words of one document, each replaced by another of the "
        "vocabulary, the release is (epsilon, delta)-differentially private, for noise of real "
        f"numbers, with delta = {shown_up(losses.delta)} and the third column's epsilon. The "
        "fourth column is an illustration: it holds if no word is replaced by one beyond the mean "
        "distance. How many words a document has is not hidden, nor are the places of words that "
        "the vocabulary lacks.\n\n"
        f"| released words of the document{'' if shared else ', at most'} | worst case, with "
        "delta = 0 | epsilon | epsilon, up to the mean distance |\n"
        f"|---|---|---|---|\n{''.join(rows)}\n"
    )


def _recall(recall: MeasuredRecall | None) -> str:
    if recall is None:
        return ""
    low, high = recall.interval
    return f" {recall.share:.3f} ({low:.3f} to {high:.3f}, of {recall.queries:,} noisy vectors) |"


def _spread(spread: Spread, *, none: str = "0", most: float = math.inf) -> str:
    """Format quantiles; near `most`, the largest value that the draws can show, give a bound."""

    def shown(value: float) -> str:
        if value == 0:
            return none
        return f"{most:g} or more" if value > 0.9 * most else f"{value:.3g}"

    median, low, high, least, largest = (
        shown(getattr(spread, name)) for name in ("median", "low", "high", "least", "largest")
    )
    return f"{median} ({low} to {high}; {least} to {largest})"


def _up(value: float) -> str:
    return shown_up(value, 4)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        # Users without budgets of their own form one group, which has no name.
        named = ((f"{key}: " if key else "", _shown(inner)) for key, inner in value.items())
        return ", ".join(key + inner for key, inner in named)
    if isinstance(value, list):
        return "; ".join(map(_shown, value))
    return shown_up(value) if isinstance(value, float) else str(value)


def _table(rows: list[tuple[str, str]]) -> str:
    shown = (
        f"| {key} | **{_plain(value)}** |"
        if key.startswith("**")
        else f"| {key} | {_plain(value)} |"
        for key, value in rows
    )
    return "| | |\n|---|---|\n" + "".join(f"{row}\n" for row in shown)


_MARKS = re.compile(
    r"[\\`<>\[\]|&~$@{}]"  # always
    r"|[:#](?=\S)|\*(?=\S)|(?<=\S)\*"  # an address, an emoji, a number of an issue, emphasis
    r"|(?<![^\W_])_|_(?![^\W_])"
    r"|(?<=www)\.|^[-+=#.)]|(?<=^\d)[.)](?=\s|$)",
    re.IGNORECASE,
)
"""The signs that CommonMark, and GitHub's and Hugging Face's extensions of it, may follow.

Signs that mean nothing where they stand are left, so that the text can be read without a viewer.
"""


def _plain(text: str) -> str:
    """Escape what names of columns, groups and files may have that Markdown would follow."""
    return _MARKS.sub(r"\\\g<0>", text)


def _in_code(text: str) -> str:
    return text.replace("`", "'")
