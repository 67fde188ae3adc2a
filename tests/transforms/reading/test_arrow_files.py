"""Arrow's streams and files: the same documents as from Parquet, and no trust in their numbers."""

from __future__ import annotations

import struct
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import BATCH_BYTES, Corpus, Documents, Reject
from quietcorpus.transforms.reading.first_values import FirstValues, first_values
from quietcorpus.transforms.reading.sources import plan, read

TEXTS = ["plain", "", "naïve \u2018quoted\u2019", "emoji 🦊", "two\nlines", "plain"]
OLD = pa.ipc.IpcWriteOptions(use_legacy_format=True)
FORMS = {
    "stream": pa.ipc.new_stream,
    "file": pa.ipc.new_file,
    "stream of Arrow 0.14": partial(pa.ipc.new_stream, options=OLD),
}


def write(folder: Path, columns: dict[str, Any], form: str = "stream", rows: int = 4) -> str:
    """Write a table in record batches of so many rows; where it is."""
    table = pa.table(columns)
    path = folder / "corpus.arrow"
    with FORMS[form](str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return str(path)


def invalid(*values: bytes | None) -> pa.Array:
    """A string column that holds these bytes, valid or not."""
    return pa.array(values, pa.binary()).view(pa.string())


def documents(corpus: Corpus) -> list[Documents]:
    return [batch for split in plan(corpus).splits for batch in read(split, corpus)]


def flat(batches: list[Documents]) -> list[tuple[int, str]]:
    """(row, text) of every document."""
    return [
        (row, text)
        for batch in batches
        for row, text in zip(batch.rows.tolist(), batch.texts.to_pylist(), strict=True)
    ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
    ids=str,
)
def test_every_kind_of_string(tmp_path: Path, kind: pa.DataType, form: str) -> None:
    path = write(tmp_path, {"text": pa.array(TEXTS).cast(kind), "n": range(6)}, form)
    batches = documents(Corpus(path, keep=("n",)))
    assert flat(batches) == list(enumerate(TEXTS))
    assert [n for batch in batches for n in batch.columns["n"].to_pylist()] == [*range(6)]
    assert all(batch.texts.type == pa.large_string() for batch in batches)
    (split,) = plan(Corpus(path)).splits
    assert split.format == "arrow"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dictionary", [False, True])
def test_what_is_not_utf8_is_rejected_with_its_position(
    tmp_path: Path, form: str, dictionary: bool
) -> None:
    # Kills: a validation that refuses the whole file; positions that begin anew in every batch.
    values = (b"good", None, b"b\xff\xfed", b"also good", b"\xed\xa0\x80", b"")
    column = invalid(*values)
    if dictionary:
        codes = pa.array([0, None, 1, 2, 3, 4], pa.int32())
        different = [value for value in values if value is not None]
        column = pa.DictionaryArray.from_arrays(codes, invalid(*different))
    path = write(tmp_path, {"text": column}, form)
    batches = documents(Corpus(path))
    assert flat(batches) == [(0, "good"), (3, "also good"), (5, "")]
    assert [reject for batch in batches for reject in batch.rejects] == [
        Reject(path, 1, "the text is null"),
        Reject(path, 2, "the text is not valid UTF-8"),
        Reject(path, 4, "the text is not valid UTF-8"),
    ]


def test_batches_are_limited_in_documents_and_bytes(tmp_path: Path) -> None:
    path = write(tmp_path, {"text": ["x"] * 2500}, rows=2500)
    assert [len(batch.texts) for batch in documents(Corpus(path))] == [1024, 1024, 452]
    size = BATCH_BYTES // 10
    path = write(tmp_path, {"text": [chr(97 + i) * size for i in range(25)]}, rows=25)
    batches = documents(Corpus(path))
    assert max(len(batch.texts) for batch in batches) in (9, 10)
    assert [row for row, _ in flat(batches)] == [*range(25)]


def test_only_the_named_columns_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, {"secret": ["b"], "key": [1], "text": ["a"], "product": ["c"]})
    (batch,) = documents(Corpus(path, id="key", keep=("product", "key")))
    assert batch.columns.to_pylist() == [{"product": "c", "key": 1}]


def test_columns_that_do_not_fit(tmp_path: Path) -> None:
    path = write(tmp_path, {"text": ["a"], "k": [[1]]})
    for asked, message in (
        ({"text": "body"}, f"input.text: {path} has no column 'body'; it has 'text', 'k'"),
        ({"text": "k"}, f"input.text: k in {path} is of type list"),
        ({"id": "k"}, f"input.id: k in {path} is of type list"),
    ):
        with pytest.raises(InputError) as raised:
            plan(Corpus(path, **asked))
        assert str(raised.value).startswith(message)


def of_months(folder: Path) -> str:
    """A stream with a column of intervals of months, of which pyarrow has no array."""
    path = write(folder, {"i": pa.array([1, 2], pa.date32())})
    content = Path(path).read_bytes()
    for place in (n for n, byte in enumerate(content) if byte == 8):  # a date, among other things
        changed = content[:place] + b"\x0b" + content[place + 1 :]
        with suppress(pa.ArrowInvalid, OSError):
            if str(pa.ipc.open_stream(changed).schema.field("i").type) == "month_interval":
                Path(path).write_bytes(changed)
                return path
    raise AssertionError


def test_a_type_that_python_has_not_is_named(tmp_path: Path) -> None:
    # Kills: a KeyError; a file that init does not look at for one of its columns.
    path = of_months(tmp_path)
    for asked, said in (
        ({"text": "i"}, f"input.text: i in {path} is of type month_interval, not string"),
        ({"text": "body"}, f"input.text: {path} has no column 'body'; it has 'i'"),
    ):
        with pytest.raises(InputError) as raised:
            plan(Corpus(path, **asked))
        assert str(raised.value).startswith(said)
    assert first_values(path, 9) == [FirstValues("i", None)]


@pytest.mark.parametrize("form", FORMS)
def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path: Path, form: str) -> None:
    # Kills: a stream without its end that is taken for a whole one, when it ends between batches.
    path = Path(write(tmp_path, {"text": [f"text {i}" for i in range(12)]}, form))
    content = path.read_bytes()
    for size in range(0, len(content), 4):
        path.write_bytes(content[:size])
        with pytest.raises(InputError, match=f"^input.path: {path} is not a readable Arrow file"):
            documents(Corpus(str(path)))
    path.write_bytes(content)
    assert len(flat(documents(Corpus(str(path))))) == 12


def test_a_stream_may_not_end_before_its_file(tmp_path: Path) -> None:
    # Kills: the documents of one stream of two, which `cat` made one file of.
    path = Path(write(tmp_path, {"text": TEXTS}))
    path.write_bytes(path.read_bytes() * 2)
    with pytest.raises(InputError, match="is not a readable Arrow file"):
        documents(Corpus(str(path)))


def test_offsets_outside_of_the_values_are_refused(tmp_path: Path) -> None:
    # Kills: offsets that are trusted: the text would be memory that is no text of this file.
    offsets = struct.pack("<4i", 0, 11, 22, 33)
    path = Path(write(tmp_path, {"text": ["quiet world", "hello world", "quiet hello"]}))
    content = path.read_bytes()
    assert content.count(offsets) == 1
    for wrong in ((0, 11, 22, 1 << 20), (0, 1 << 20, 22, 33), (0, 11, -5, 33)):
        path.write_bytes(content.replace(offsets, struct.pack("<4i", *wrong)))
        with pytest.raises(InputError, match="is not a readable Arrow file"):
            documents(Corpus(str(path)))


DAMAGE = """
import random, sys
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.reading.sources import plan, read
refused = 0
wholes = [(path, open(path, "rb").read()) for path in sys.argv[2:]]
for path, whole in wholes * int(sys.argv[1]):
    damaged = bytearray(whole)
    for _ in range(random.choice([1, 1, 4])):
        damaged[random.randrange(len(damaged))] = random.choice([0, 1, 127, 128, 255])
    with open(path, "wb") as stream:
        stream.write(damaged)
    corpus = Corpus(path, id="n", keep=("tags", "kind"))
    try:
        for split in plan(corpus).splits:
            for batch in read(split, corpus):
                batch.texts.to_pylist(), batch.columns.to_pylist()
    except InputError as error:
        assert "\\n" not in str(error)
        refused += 1
print(refused)
"""


@pytest.mark.slow
def test_damage_is_one_line_or_other_values(tmp_path: Path) -> None:
    # In a process of its own, which a segmentation fault would end. Kills: any error but ours.
    table = {
        "text": [f"a text of number {i}" for i in range(30)],
        "n": range(30),
        "tags": [["one", "two"][: i % 3] for i in range(30)],
        "kind": pa.array(["x", "y", "z"] * 10).dictionary_encode(),
    }
    paths = []
    for form in FORMS:
        (tmp_path / form).mkdir()
        paths.append(write(tmp_path / form, table, form, rows=10))
    tries = 150  # 4,000 of each were tried once
    done = subprocess.run(
        [sys.executable, "-P", "-c", DAMAGE, str(tries), *paths],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > tries / 4


def test_no_file_is_left_open(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    path = write(tmp_path, {"text": ["a"] * 5000})
    batches = read(plan(Corpus(path)).splits[0], Corpus(path))
    next(batches)
    del batches
    assert [warning for warning in recwarn if warning.category is ResourceWarning] == []
