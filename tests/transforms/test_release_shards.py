"""The release of a shard: the sizes of its row groups."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import hashed_sentences
import numpy as np
import privatized_words
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from privatized_words import ALIKE, BRR
from privatized_words import WORDS as TERMS
from released_files import released_file

from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.bags.bag_of_words import Accounting
from quietcorpus.mechanisms.encoding import Value
from quietcorpus.mechanisms.keystream import Addresses, Keystream, ReleaseKey
from quietcorpus.transforms.codebook import Codebook
from quietcorpus.transforms.privatizers import bags
from quietcorpus.transforms.privatizers.bags import BagOfWordsParameters
from quietcorpus.transforms.privatizers.rows import Privatizer
from quietcorpus.transforms.privatizers.sentences import (
    EmbeddedWordsPrivatizer,
    SentencePrivatizer,
    embedding_field,
)
from quietcorpus.transforms.privatizers.words import WordPrivatizer
from quietcorpus.transforms.reading import records
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.reading.sources import plan
from quietcorpus.transforms.release_shards import ReleaseShards
from quietcorpus.transforms.shards import RejectLog, Shard, staged_content


def test_sizes_of_row_groups_do_not_depend_on_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Wherever a long text ends a batch. Kills: row groups that end where batches do, or that hold
    # all that has been read.
    monkeypatch.setattr(bags, "ROW_GROUP_ROWS", 64)
    monkeypatch.setattr(records, "BATCH_BYTES", 1000)
    sizes = []
    for name, places in {"short": [], "one": [9], "some": [9, 10, 100, 250]}.items():
        texts = ["quiet " * (200 if row in places else 1) for row in range(300)]
        corpus = tmp_path / f"{name}.jsonl"
        corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        (tmp_path / name).mkdir()
        file = pq.ParquetFile(released_file(Corpus(str(corpus)), tmp_path / name))
        groups = map(file.metadata.row_group, range(file.num_row_groups))
        sizes.append([group.num_rows for group in groups])
    assert sizes == [[64, 64, 64, 64, 44]] * 3


# The order of a release's rows: the key draws it, whatever the order of the input.


SIZE, COUNT = 64, 120
TEXTS = [
    " ".join(TERMS[place] for place in range(7) if number >> place & 1)
    for number in range(1, COUNT + 1)
]
"""Texts of different words, so that no two rows have the same noise."""


class ByInput(Keystream):
    """A keystream whose addresses depend on the inputs alone, and not on where they stand."""

    def addresses(self, source: str, numbers: Sequence[int], inputs: Any) -> Addresses:
        given = list(inputs)
        return super().addresses("", [0] * len(given), given)


class KeyByInput(ReleaseKey):
    """A release key of such keystreams."""

    def stage(self, name: str, version: int, /, **parameters: Value) -> Keystream:
        stream = super().stage(name, version, **parameters)
        stream.__class__ = ByInput
        return stream


KEY = KeyByInput(bytes(range(32)))


class Ready:
    """The parameters of a privatizer that is made already, with row groups of `SIZE` rows."""

    def __init__(self, made: Privatizer, *fields: pa.Field) -> None:
        self.fields = fields
        self._made = made
        made.row_group_rows = SIZE

    def privatizer(self, key: ReleaseKey, side: None = None) -> Privatizer:
        return self._made


def parameters(kind: str) -> Any:
    """The parameters of a kind of rows."""
    words = privatized_words.parameters(BRR, Fraction(1))
    if kind == "words":
        return Ready(WordPrivatizer(words, ALIKE, KEY), *words.fields)
    encoder: Any = hashed_sentences.Hashed()
    if kind == "embedded words":
        made = EmbeddedWordsPrivatizer(WordPrivatizer(words, ALIKE, KEY), encoder, 8)
        return Ready(made, embedding_field(hashed_sentences.DIMENSIONS))
    if kind == "sentences":
        given = hashed_sentences.parameters("truncation")
        sentences = SentencePrivatizer(given, hashed_sentences.CANDIDATES, encoder, KEY)
        return Ready(sentences, *given.fields)
    bag = BagOfWordsParameters(2, Fraction(1), Accounting.TIGHT, kind == "bags with bins")
    codebook = Codebook(Vocabulary(TERMS), np.arange(16, dtype=np.int32), 16, None)
    return Ready(bags.BagPrivatizer(bag, codebook, KEY), *bag.fields)


def released(kind: str, order: Sequence[int], folder: Path) -> list[list[dict[str, Any]]]:
    """Release the texts in this order, with the ids that they have; return groups of rows."""
    folder.mkdir()
    texts, ids = [TEXTS[n] for n in order], [f"k{n * 7 % COUNT}" for n in order]
    pq.write_table(pa.table({"text": texts, "key": ids}), folder / "corpus.parquet")
    corpus = Corpus(str(folder / "corpus.parquet"), id="key", keep=("key",))
    planned = plan(corpus)
    shards = ReleaseShards(
        corpus, planned.schema, parameters(kind), lambda: KEY, str(folder), 1, RejectLog()
    )
    shards.setup()
    written, *_ = shards.process(Shard(0, tuple(planned.splits)))
    file = pq.ParquetFile(io.BytesIO(b"".join(staged_content(written, KEY))))
    return [file.read_row_group(n).to_pylist() for n in range(file.num_row_groups)]


KINDS = ("bags", "bags with bins", "words", "sentences", "embedded words")


def _orders() -> tuple[list[int], list[int]]:
    """The order of the texts, and another in which each group has the same ones."""
    first = list(range(COUNT))
    return first, first[:SIZE][::-1] + first[SIZE:][::-1]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_under_their_own_ids_are_in_an_order_that_the_key_draws(
    kind: str, tmp_path: Path
) -> None:
    # Kills: rows that are left in their order where fresh ids do not name them, ids or lists of
    # numbers that are permuted apart from their rows, and groups that another row is in.
    first, second = (
        released(kind, order, tmp_path / str(number)) for number, order in enumerate(_orders())
    )
    assert [len(group) for group in first] == [SIZE, COUNT - SIZE]
    assert first == second
    ids = [row["id"] for row in first[0]]
    assert len(set(ids)) == SIZE
    assert ids != sorted(ids, key=lambda own: int(own[1:]))
    assert ids != [f"k{n * 7 % COUNT}" for n in range(SIZE)]


def test_rows_in_the_order_of_the_input_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: two orders that are one, or texts that are alike.
    def in_order(self: Any, rows: pa.Table, privatizer: Privatizer) -> pa.Table:
        return rows.select(self._schema.names)

    monkeypatch.setattr(ReleaseShards, "_in_order", in_order)
    first, second = (
        released("words", order, tmp_path / str(number)) for number, order in enumerate(_orders())
    )
    assert first != second
