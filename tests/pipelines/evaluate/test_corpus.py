"""The sample of a private corpus, and rows of a release beside it."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.pipelines.evaluate.comparison import Comparison
from quietcorpus.pipelines.evaluate.corpus import (
    Columns,
    Sample,
    _places,
    sample,
    strings,
    texts_of,
)
from quietcorpus.pipelines.evaluate.study import LEAST_OF_CLASS, authors, labelled
from quietcorpus.transforms.errors import InputError

ALPHA = 1e-6
CORPUS = 60


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    """Two files of numbered texts, with a column of numbers that has gaps."""
    for part in range(2):
        numbers = range(part * 30, part * 30 + 30)
        table = {
            "text": [f"text {n}" for n in numbers],
            "key": [f"k{n}" for n in numbers],
            "stars": pa.array([None if n % 7 == 0 else n % 3 for n in numbers], pa.int64()),
        }
        pq.write_table(pa.table(table), tmp_path / f"part-{part}.parquet", row_group_size=7)
    return str(tmp_path / "*.parquet")


def numbers_of(found: Sample) -> list[int]:
    return [int(text.split()[1]) for text in found.documents.texts.to_pylist()]


def test_kept_columns_say_which_documents_agree(tmp_path: Path) -> None:
    # Kills: a column for all of them, values joined so that other ones agree, columns of types
    # that have no spelling, a gap that agrees with its spelling.
    rows = {
        "text": ["a", "b", "c", "d", "e"],
        "one": ["x", "x", "x y", "x", None],
        "two": [[1], [1], [1], [2], [1]],
    }
    pq.write_table(pa.table(rows), tmp_path / "c.parquet")
    found = sample(str(tmp_path / "c.parquet"), Columns(kept=("one", "two")), 9, 1).kept
    assert found is not None
    assert found.shape == (5, 3)  # both, and each
    assert (found[0] == found[1]).all()
    assert [len(np.unique(own)) for own in found.T] == [4, 3, 2]
    both = Columns(label="one", kept=("one",))  # a column of two purposes
    assert sample(str(tmp_path / "c.parquet"), both, 9, 1).kept is not None
    assert sample(str(tmp_path / "c.parquet"), Columns(), 9, 1).kept is None


def test_all_documents_in_their_order_with_their_columns(corpus: str) -> None:
    # Kills: columns that go with other documents, a sample in the order of its draws.
    found = sample(corpus, Columns(id="key", label="stars"), 1000, 1)
    assert numbers_of(found) == list(range(CORPUS))
    assert found.of == len(found) == CORPUS
    assert found.ids is not None
    assert found.labels is not None
    assert found.ids.tolist() == [f"k{n}" for n in range(CORPUS)]
    assert found.labels.tolist() == [None if n % 7 == 0 else str(n % 3) for n in range(CORPUS)]
    assert found.users is None
    assert found.documents.rows.tolist() == list(range(CORPUS))


def test_texts_of_another_tool_by_their_ids(corpus: str) -> None:
    # Kills: texts in the tool's order, and texts of documents that were not sampled.
    wanted = strings(["k41", "k3", "k59"])
    assert texts_of(corpus, Columns(id="key"), wanted) == ["text 41", "text 3", "text 59"]


@pytest.mark.parametrize(
    ("place", "ids", "said"),
    [
        ("*.parquet", ["k1", "k60", "k61"], r"^reference_text: 2 of 3 sampled documents have no"),
        ("*.parquet", ["k1", "k1"], r"^id: the column 'key' repeats values"),
        ("nowhere/*.parquet", ["k1"], r"^reference_text: "),
    ],
)
def test_texts_of_another_tool_that_are_of_no_use(
    corpus: str, tmp_path: Path, place: str, ids: list[str], said: str
) -> None:
    # Kills: a document that is measured by another's text, or by none.
    with pytest.raises(InputError, match=said):
        texts_of(str(tmp_path / place), Columns(id="key"), strings(ids))


def test_texts_of_another_tool_that_has_two_for_a_document(tmp_path: Path) -> None:
    # Kills: the last of several texts is taken.
    table = pa.table({"text": ["one", "two"], "key": ["k1", "k1"]})
    pq.write_table(table, tmp_path / "left.parquet")
    with pytest.raises(InputError, match=r"^id: the column 'key' repeats values"):
        texts_of(str(tmp_path / "left.parquet"), Columns(id="key"), strings(["k1"]))


def test_quotes_that_backslashes_escape(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('key,text\n0,"a \\"b\\""\n1,"\nc, d"\n')
    found = sample(str(tmp_path / "a.csv"), Columns(id="key", escape="\\"), 9, 1)
    assert found.documents.texts.to_pylist() == ['a "b"', "\nc, d"]
    with pytest.raises(InputError, match=r"^against: .*a.csv record 0 \(line 2\) has more after"):
        sample(str(tmp_path / "a.csv"), Columns(id="key"), 9, 1)


def test_what_the_mechanism_reads_comes_with_the_texts(corpus: str) -> None:
    # Kills: columns of other documents, and the sample alone for the whole corpus.
    read = (("mechanism.strata.column", "stars"), ("mechanism.user", "key"))
    found = sample(corpus, Columns(user="key", read=read), 9, 1)
    expected = [(f"k{n}", None if n % 7 == 0 else str(n % 3)) for n in numbers_of(found)]
    columns = found.documents.columns
    assert list(zip(*(columns[name].to_pylist() for name in ("key", "stars")), strict=True)) == (
        expected
    )
    batches = list(found.all_documents())
    assert sum(len(batch.rows) for batch in batches) == CORPUS
    assert {name for batch in batches for name in batch.columns.column_names} == {"key", "stars"}


@pytest.mark.slow
def test_a_sample_is_uniform(corpus: str) -> None:
    # Each of 400 samples holds 15 of 60 documents: a document is in Binomial(400, 1/4) of them.
    # 60 assertions. Kills: the first documents, or the last ones, being taken more often.
    counts = np.zeros(CORPUS, dtype=int)
    first = np.random.SeedSequence().entropy
    assert isinstance(first, int)
    for seed in range(400):
        found = sample(corpus, Columns(), 15, (first + seed) % 2**63)
        numbers = numbers_of(found)
        assert numbers == sorted(numbers)
        assert len(numbers) == 15
        assert found.of == CORPUS
        counts[numbers] += 1
    level = ALPHA / CORPUS / 2
    low, high = (stats.binom.ppf(q, 400, 1 / 4) for q in (level, 1 - level))
    assert low <= counts.min()
    assert counts.max() <= high


def test_terms_are_counted_in_all_documents(corpus: str) -> None:
    # Kills: counts of the sample alone, or of each file's first part.
    found = sample(corpus, Columns(), 3, 1)
    counts = found.counts_of_all(Vocabulary(["absent", "text"]))
    assert counts.tolist() == [0, CORPUS]


def test_equal_seeds_take_equal_documents(corpus: str) -> None:
    one, same, other = (numbers_of(sample(corpus, Columns(), 20, seed)) for seed in (5, 5, 6))
    assert one == same != other


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (Columns(text="body"), "text: .* has no column 'body'"),
        (Columns(label="group"), "label: .* has no column 'group'"),
        (Columns(user="who"), "user: .* has no column 'who'"),
        (Columns(id="number"), "id: .* has no column 'number'"),
        (Columns(kept=("place",)), "against: .* has no column 'place'"),
    ],
)
def test_columns_that_are_not_there(corpus: str, columns: Columns, message: str) -> None:
    with pytest.raises(InputError, match=message):
        sample(corpus, columns, 10, 1)


def test_a_corpus_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^against: no file matches"):
        sample(str(tmp_path / "none-*.parquet"), Columns(), 10, 1)


def test_rows_are_brought_into_the_samples_order() -> None:
    rows = pa.table({"id": ["c", "a", "b"], "terms": [3, 1, 2]})
    found = rows.take(_places("key", rows["id"].combine_chunks(), strings(["a", "c"])))
    assert found["terms"].to_pylist() == [1, 3]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a", "a"], "id: the column 'key' repeats values"),
        (["a", "x"], "1 of 2 sampled documents have no row in the release by their 'key'"),
        ([None, "a"], "1 of 2 sampled documents have no row"),
    ],
)
def test_rows_that_cannot_be_found(ids: list[str | None], message: str) -> None:
    rows = pa.table({"id": ["c", "a", "b"], "terms": [3, 1, 2]})
    with pytest.raises(InputError, match=message) as caught:
        _places("key", rows["id"].combine_chunks(), strings(ids))
    assert "'x'" not in str(caught.value)


def test_no_text_is_sent_to_another_process(corpus: str) -> None:
    # Kills: what was read travelling with what is to be read, through Ray's store.
    comparison = Comparison("release", corpus, None, Columns(), 10, 1)
    assert len(comparison.sample) == 10
    assert "sample" in vars(comparison)
    sent = pickle.dumps(comparison)
    assert b"text 1" not in sent
    assert pickle.loads(sent) == comparison
    assert "sample" not in vars(pickle.loads(sent))


def test_rare_classes_and_gaps_are_left_out() -> None:
    labels = strings([*["x"] * LEAST_OF_CLASS, None, *["y"] * LEAST_OF_CLASS, *["z"] * 19, None])
    rows, classes = labelled(labels)
    assert (labels[rows] == np.where(classes == 0, "x", "y")).all()
    assert np.bincount(classes).tolist() == [LEAST_OF_CLASS] * 2


def test_authors_of_enough_documents() -> None:
    users = strings([*["ann"] * 12, None, *["bob"] * 11, *["cy"] * 9])
    found = authors(users)
    assert found is not None
    rows, names = found
    assert np.bincount(names).tolist() == [12, 11]
    assert set(users[rows]) == {"ann", "bob"}
    assert authors(users[:15]) is None
