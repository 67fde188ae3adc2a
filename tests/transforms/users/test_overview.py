"""The cells of documents: of their own group, month and words, and of nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from public_pools import ENCODER, LETTERS, POOL, Letters

from quietcorpus.indexes.documents.pool import Pool
from quietcorpus.indexes.documents.pool_lists import PoolLists
from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.users.grouped_counts import GroupedCounts
from quietcorpus.transforms.artefacts.encoder import EncoderSource
from quietcorpus.transforms.artefacts.folders import PoolSource
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Documents
from quietcorpus.transforms.users.months import Months, month_of
from quietcorpus.transforms.users.overview import MOST_CELLS, Grouping, refuse_many

WORDS = Vocabulary(["w", "x", "y", "z"])
MONTHS = Months("day", month_of("2020-11"), 3)
GROUPING = Grouping(POOL, ENCODER, 4, MONTHS)


@pytest.fixture(autouse=True)
def lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list for each letter, around it."""
    made = PoolLists(LETTERS.vectors[:4], np.array([1, 1, 1, 2]), 1)
    pool: Pool = replace(LETTERS, lists=made)
    monkeypatch.setattr(PoolSource, "open", lambda _: pool)
    monkeypatch.setattr(EncoderSource, "open", lambda _: Letters())


def documents(texts: list[str], days: list[Any]) -> Documents:
    rows = np.arange(len(texts), dtype=np.int64)
    columns = pa.table({"day": pa.array(days)})
    return Documents("file", rows, pa.array(texts, pa.large_string()), columns)


def cells(texts: list[str], days: list[Any], grouping: Grouping = GROUPING) -> list[list[int]]:
    given = documents(texts, days)
    terms = WORDS.find(given.texts)
    offsets, found = grouping(given, (terms.offsets, terms.numbers), len(WORDS))
    assert found.dtype == np.int32
    return [found[a:b].tolist() for a, b in zip(offsets[:-1], offsets[1:], strict=True)]


def test_cells_are_of_the_documents_group_month_and_words() -> None:
    # Kills: words of another group, months of another, a document that begins with its words.
    first = 4 * (1 + 3)
    found = cells(["x x w", "z", "x", "nothing"], ["2021-01-05", "2020-11", None, "2020-12-01"])
    assert found == [
        [1, 4 * 3 + 1, first + 4 + 1, first + 4 + 1, first + 4],
        [3, 4 * 1 + 3, first + 12 + 3],
        [1, first + 4 + 1],
        [],
    ]


def test_cells_depend_on_their_document_alone() -> None:
    # Kills: a document's group by its place, or by its neighbours.
    texts, days = ["x w", "", "z y y", "w"], ["2020-11", "2020-12", None, "2022-01"]
    alone = [cells([text], [day])[0] for text, day in zip(texts, days, strict=True)]
    assert cells(texts, days) == alone
    assert cells(texts[::-1], days[::-1]) == alone[::-1]


def test_cells_are_those_that_are_counted() -> None:
    # Kills: another order of cells here than in the mechanism.
    bound = GroupedCounts(9, 1, 4, 3)
    every = np.concatenate(cells(["x x w", "z"], ["2021-01-05", "2020-11"]))
    sums = np.zeros(bound.cells_of(len(WORDS)), np.int64)
    listed, values = bound.values([every.astype(np.int32)])
    sums[listed] = np.rint(values * 512)
    found = bound.counts(sums)
    assert found[:4].tolist() == [0, 1, 0, 1]
    assert found[4:16].reshape(3, 4)[2].tolist() == [0, 1, 0, 0]
    assert found[bound.sizes :].reshape(4, 4)[1].tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("value", "month"),
    [
        ("2020-11-30", 12 * 2020 + 10),
        ("2020-11", 12 * 2020 + 10),
        ("2020-11-30 10:00:00", 12 * 2020 + 10),
        *((odd, -1) for odd in (None, "", "2020-13", "2020-1", "2020-112", "11/30/2020", "1606")),
    ],
)
def test_a_month_is_read_from_the_beginning_of_a_date(value: str | None, month: int) -> None:
    assert month_of(value) == month


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.large_string()])
def test_months_of_every_type_of_date(kind: pa.DataType) -> None:
    # Kills: a type whose text does not begin with the year.
    days = pa.array(["2020-10-31", "2020-11-01", "2021-01-31", "2021-02-01", None]).cast(kind)
    given = Documents("f", np.arange(5), pa.array([""] * 5), pa.table({"day": days}))
    assert MONTHS.numbers(given).tolist() == [-1, 0, 2, -1, -1]


def test_too_many_cells_are_refused_in_one_line() -> None:
    bound = GroupedCounts(9, 1, 100)
    refuse_many(bound, MOST_CELLS // 100 - 1)
    with pytest.raises(InputError, match=r"mechanism\.vocabulary: 200,000 words of 100 groups"):
        refuse_many(bound, 200_000)


def test_every_public_part_is_in_the_stages_parameters() -> None:
    # Kills: noise that two groupings of one corpus share.
    others = [
        replace(GROUPING, pool=replace(POOL, digest="other")),
        replace(GROUPING, encoder=replace(ENCODER, digest="other")),
        replace(GROUPING, months=None),
        replace(GROUPING, months=replace(MONTHS, column="other")),
        replace(GROUPING, months=replace(MONTHS, first=1)),
    ]
    found = [str(own.stage_parameters) for own in (GROUPING, *others)]
    assert len(set(found)) == len(found)
