"""The lines of a README that open a release in the tools that people have, to be copied."""

from __future__ import annotations

from ..storage import layout
from .mechanism import Mechanism

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
