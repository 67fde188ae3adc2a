"""Columns of 128 bits, which Polars writes and Arrow for Python does not know, beside others."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.reading.sources import plan, read

FRAME = pl.DataFrame(
    {
        "text": ["quiet", "world"],
        "signed": pl.Series([-(10**37), None], dtype=pl.Int128),
        "unsigned": pl.Series([10**38, None], dtype=pl.UInt128),
        "within": pl.Series([[{"a": 1}], None], dtype=pl.List(pl.Struct({"a": pl.Int128}))),
        "product": pl.Series(["card", "loan"], dtype=pl.Categorical),
        "number": [1, None],
    }
)
WIDE = ("signed", "unsigned", "within")
WRITERS: dict[str, Callable[[Path], object]] = {
    "corpus.parquet": FRAME.write_parquet,
    "file.arrow": FRAME.write_ipc,
    "stream.arrow": FRAME.write_ipc_stream,
}


@pytest.fixture(params=WRITERS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / request.param
    WRITERS[request.param](path)
    return path


def test_columns_that_no_key_names_do_not_matter(path: Path) -> None:
    # Kills: a file that cannot be opened at all for one column that the spec does not name.
    corpus = Corpus(str(path), keep=("number", "product"))
    (batch,) = [batch for split in plan(corpus).splits for batch in read(split, corpus)]
    assert batch.texts.to_pylist() == ["quiet", "world"]
    assert batch.columns.to_pylist() == [
        {"number": 1, "product": "card"},
        {"number": None, "product": "loan"},
    ]


@pytest.mark.parametrize("column", WIDE)
def test_a_column_that_a_key_names_is_refused_by_its_name(path: Path, column: str) -> None:
    # Kills: the bytes of a number in the number's place; a refusal that names no column.
    for corpus, key in (
        (Corpus(str(path), keep=(column,)), "keep"),
        (Corpus(str(path), id=column), "id"),
        (Corpus(str(path), column), "text"),
    ):
        with pytest.raises(InputError, match=rf"^input.{key}: {column} in .*128-bit integer"):
            plan(corpus)


def test_a_damaged_file_is_refused_or_read(path: Path) -> None:
    # Kills: another error, or an endless loop, over offsets that lead anywhere.
    content = path.read_bytes()
    drawn = random.Random(7)
    corpus = Corpus(str(path), keep=("number",))
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(drawn.randint(1, 3)):
            damaged[drawn.randrange(len(damaged))] = drawn.randrange(256)
        path.write_bytes(damaged)
        with suppress(InputError):
            plan(corpus)
