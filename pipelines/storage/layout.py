"""The names of the files of a release."""

from __future__ import annotations

CARD = "release.json"
README = "README.md"
VOCABULARY = "vocabulary.parquet"
COMPRESSION = "compression.parquet"
# Public texts, and the votes for all of a pool's.
TEXTS, VOTES = "texts.parquet", "votes.parquet"
# Word embeddings, in their forms.
TABLE, TEXT, BINARY, INDEX = "vectors.parquet", "vectors.txt", "vectors.bin", "index"
