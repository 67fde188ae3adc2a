"""The names of the files of a release."""

from __future__ import annotations

CARD = "release.json"
SIGNATURE = "release.json.sig"
README = "README.md"
PAGE = "page.html"
VOCABULARY = "vocabulary.parquet"
COMPRESSION = "compression.parquet"
# Public texts, the votes for all of a pool's, and a corpus that is drawn by the texts' weights.
TEXTS, VOTES, RESAMPLED = "texts.parquet", "votes.parquet", "resampled.parquet"
# An overview: a page for people, and its groups, months, words, public examples and noisy counts.
OVERVIEW, GROUPS, MONTHS = "overview.html", "groups.parquet", "months.parquet"
WORDS, EXAMPLES, COUNTS = "words.parquet", "examples.parquet", "counts.parquet"
# Word embeddings, in their forms.
TABLE, TEXT, BINARY, INDEX = "vectors.parquet", "vectors.txt", "vectors.bin", "index"
DATA = "data"
"""The folder of the rows of documents."""


def described(path: str) -> str:
    """Return the name under which a mechanism describes a file of a release."""
    return DATA if path.startswith(f"{DATA}/") else path
