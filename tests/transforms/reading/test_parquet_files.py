"""Parquet is read by row group: the same documents at the same positions, whatever its types."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import BATCH_BYTES, Corpus, Documents, Reject
from quietcorpus.transforms.reading.first_values import first_values
from quietcorpus.transforms.reading.sources import plan, read

TEXTS = ["plain", "", "naïve \u2018quoted\u2019", "emoji 🦊", "two\nlines", "plain"]


def write(
    folder: Path, columns: dict[str, Any], name: str = "corpus.parquet", **options: Any
) -> str:
    path = folder / name
    pq.write_table(pa.table(columns), path, **options)
    return str(path)


def invalid(*values: bytes | None) -> pa.Array:
    """A string column that holds these bytes, valid or not."""
    raw = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(values), raw.buffers(), raw.null_count)


def documents(corpus: Corpus) -> list[Documents]:
    return [batch for split in plan(corpus).splits for batch in read(split, corpus)]


def flat(batches: list[Documents]) -> list[tuple[str, int, str]]:
    """(file, row, text) of every document."""
    return [
        (batch.source, row, text)
        for batch in batches
        for row, text in zip(batch.rows.tolist(), batch.texts.to_pylist(), strict=True)
    ]


@pytest.mark.parametrize("row_group_size", [1, 4, 100])
@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
    ids=str,
)
def test_every_kind_of_string(tmp_path: Path, kind: pa.DataType, row_group_size: int) -> None:
    path = write(tmp_path, {"text": pa.array(TEXTS).cast(kind)}, row_group_size=row_group_size)
    corpus = Corpus(path)
    batches = documents(corpus)
    assert flat(batches) == [(path, row, text) for row, text in enumerate(TEXTS)]
    assert all(batch.texts.type == pa.large_string() for batch in batches)
    assert all(batch.rows.dtype == np.int64 for batch in batches)
    assert plan(corpus).documents == len(TEXTS)
    # Read again, and in another order, the positions are the same.
    assert flat(documents(corpus)) == flat(batches)
    reversed_splits = [b for s in plan(corpus).splits[::-1] for b in read(s, corpus)]
    assert sorted(flat(reversed_splits)) == sorted(flat(batches))


def test_one_split_a_row_group(tmp_path: Path) -> None:
    path = write(tmp_path, {"text": TEXTS}, row_group_size=4)
    splits = plan(Corpus(path)).splits
    assert [(s.row_group, s.first_row, s.documents) for s in splits] == [(0, 0, 4), (1, 4, 2)]
    assert len({split.name for split in splits}) == 2


def test_several_files_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    second = write(tmp_path, {"text": ["c"]}, "b.parquet")
    first = write(tmp_path, {"text": ["a", "b"]}, "a.parquet")
    found = flat(documents(Corpus(str(tmp_path / "*.parquet"))))
    assert found == [(first, 0, "a"), (first, 1, "b"), (second, 0, "c")]


def test_empty_files_and_row_groups_are_no_splits(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    with pq.ParquetWriter(path, pa.schema([("text", pa.string())])) as writer:
        for texts in (["a"], [], ["b"]):
            writer.write_table(pa.table({"text": pa.array(texts, pa.string())}))
    write(tmp_path, {"text": pa.array([], pa.string())}, "b.parquet")
    found = flat(documents(Corpus(str(tmp_path / "*.parquet"))))
    assert [(row, text) for _, row, text in found] == [(0, "a"), (1, "b")]


@pytest.mark.parametrize("dictionary", [False, True])
def test_nulls_and_invalid_utf8_are_rejected_with_their_position(
    tmp_path: Path, dictionary: bool
) -> None:
    column = invalid(b"good", None, b"b\xff\xfed", b"also good", b"\xed\xa0\x80", b"")
    path = write(
        tmp_path, {"text": column, "n": range(6)}, row_group_size=4, use_dictionary=dictionary
    )
    batches = documents(Corpus(path, keep=("n",)))
    found = [(row, text) for _, row, text in flat(batches)]
    assert found == [(0, "good"), (3, "also good"), (5, "")]
    assert [value for batch in batches for value in batch.columns["n"].to_pylist()] == [0, 3, 5]
    assert [reject for batch in batches for reject in batch.rejects] == [
        Reject(path, 1, "the text is null"),
        Reject(path, 2, "the text is not valid UTF-8"),
        Reject(path, 4, "the text is not valid UTF-8"),
    ]


@pytest.mark.parametrize("dictionary", [False, True])
def test_other_columns_of_invalid_utf8_reject_their_record(
    tmp_path: Path, dictionary: bool
) -> None:
    # Kills: kept columns that are copied unchecked, into files that other tools refuse to open.
    column = invalid(b"fine", b"b\xffd", None, b"b\xffd")
    if dictionary:
        codes = pa.array([0, 1, None, 1], pa.int32())
        column = pa.DictionaryArray.from_arrays(codes, invalid(b"fine", b"b\xffd"))
    path = write(tmp_path, {"text": ["a", "b", "c", None], "product": column})
    batches = documents(Corpus(path, keep=("product",)))
    assert [text for _, _, text in flat(batches)] == ["a", "c"]
    assert batches[0].columns["product"].to_pylist() == ["fine", None]
    assert [(reject.row, reject.reason) for batch in batches for reject in batch.rejects] == [
        (1, "the column 'product' is not valid UTF-8"),
        (3, "the text is null"),
    ]


def test_a_batch_of_rejects_alone(tmp_path: Path) -> None:
    path = write(tmp_path, {"text": pa.array([None, None], pa.string()), "n": [1, 2]})
    (batch,) = documents(Corpus(path, keep=("n",)))
    assert len(batch.texts) == len(batch.columns) == len(batch.rows) == 0
    assert [reject.row for reject in batch.rejects] == [0, 1]


def test_batches_are_limited_in_documents_and_bytes(tmp_path: Path) -> None:
    path = write(tmp_path, {"text": ["x"] * 2500})
    assert [len(batch.texts) for batch in documents(Corpus(path))] == [1024, 1024, 452]
    size = BATCH_BYTES // 10
    path = write(tmp_path, {"text": [chr(97 + i) * size for i in range(25)]}, use_dictionary=False)
    lengths = [len(batch.texts) for batch in documents(Corpus(path))]
    assert sum(lengths) == 25
    assert max(lengths) in (9, 10)


def test_only_the_named_columns_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, {"text": ["a"], "secret": ["b"], "key": [1], "product": ["c"]})
    (batch,) = documents(Corpus(path, id="key", keep=("product", "key")))
    assert batch.columns.to_pylist() == [{"product": "c", "key": 1}]


def test_kept_columns_lose_their_metadata(tmp_path: Path) -> None:
    # Metadata of a field may hold anything and is on no allow-list.
    inner = pa.field("inner", pa.string(), metadata={"comment": "private"})
    fields = [
        pa.field("text", pa.string()),
        pa.field("flat", pa.string(), metadata={"comment": "private"}),
        pa.field("nested", pa.struct([inner])),
        pa.field("listed", pa.list_(inner)),
    ]
    table = pa.table(
        {"text": ["a"], "flat": ["b"], "nested": [{"inner": "c"}], "listed": [["d"]]},
        schema=pa.schema(fields, metadata={"comment": "private"}),
    )
    pq.write_table(table, tmp_path / "corpus.parquet")
    schema = plan(Corpus(str(tmp_path / "*"), keep=("flat", "nested", "listed"))).schema
    assert "private" not in schema.to_string(show_field_metadata=True, truncate_metadata=False)
    assert schema.field("nested").type.field(0).metadata is None
    assert schema.field("listed").type.value_field.metadata is None


@pytest.mark.parametrize(
    ("columns", "corpus", "message"),
    [
        ({"body": ["a"]}, {}, "input.text: {} has no column 'text'; it has 'body'"),
        ({"text": ["a"]}, {"keep": ("b",)}, "input.keep: {} has no column 'b'; it has 'text'"),
        ({"text": ["a"]}, {"id": "b"}, "input.id: {} has no column 'b'; it has 'text'"),
        ({"text": [1.5]}, {}, "input.text: text in {} is of type double, not string; name the"),
        ({"text": [["a"]]}, {}, "input.text: text in {} is of type list<element: string>, not"),
        ({"text": pa.array([b"a"], pa.binary(1))}, {}, "input.text: text in {} is of type fixed_"),
        ({"text": ["a"], "k": [[1]]}, {"id": "k"}, "input.id: k in {} is of type list<element: "),
        (
            {"text": ["a"], "k": pa.array([1], pa.timestamp("s"))},
            {"id": "k"},
            "input.id: k in {} is of type timestamp[ms]; name a column of strings or whole numbers",
        ),
    ],
)
def test_columns_that_do_not_fit(
    tmp_path: Path, columns: dict[str, Any], corpus: dict[str, Any], message: str
) -> None:
    path = write(tmp_path, columns)
    with pytest.raises(InputError) as raised:
        plan(Corpus(path, **corpus))
    assert str(raised.value).startswith(message.format(path))


class Keys(pe.KmsClient):  # type: ignore[misc]
    """Keys that are kept as they are."""

    def wrap_key(self, key: bytes, _: str) -> str:
        return key.hex()

    def unwrap_key(self, key: str, _: str) -> bytes:
        return bytes.fromhex(key)


@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_encrypted_files_are_called_so(tmp_path: Path, plaintext_footer: bool) -> None:
    # Kills: "damaged"; the end of the process, by a question for an encrypted column's metadata.
    path = str(tmp_path / "corpus.parquet")
    table = pa.table({"text": ["a"], "n": [1]})
    encryption = pe.CryptoFactory(lambda _: Keys()).file_encryption_properties(
        pe.KmsConnectionConfig(),
        pe.EncryptionConfiguration(
            footer_key="f", column_keys={"k": ["text"]}, plaintext_footer=plaintext_footer
        ),
    )
    with pq.ParquetWriter(path, table.schema, encryption_properties=encryption) as writer:
        writer.write_table(table)
    for read_file in (plan, lambda corpus: first_values(corpus.pattern, 1)):
        with pytest.raises(InputError, match=f"^input.path: {path} is encrypted, or some of its"):
            read_file(Corpus(path, keep=("n",)))


def test_a_name_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    # Kills: an error that names no file.
    path = Path(write(tmp_path, {"text": ["a"], "xyzzy": [1]}, store_schema=False))
    path.write_bytes(path.read_bytes().replace(b"xyzzy", b"xyz\xe9y"))
    with pytest.raises(InputError, match=f"^input.path: {path} has a column name that is not UTF"):
        plan(Corpus(str(path)))


def test_a_column_that_is_there_twice(tmp_path: Path) -> None:
    # Kills: "no column", of a column that is there; a file refused for a column that is not read.
    path = str(tmp_path / "corpus.parquet")
    pq.write_table(pa.table([["a"], [1], [2]], names=["text", "n", "n"]), path)
    assert flat(documents(Corpus(path))) == [(path, 0, "a")]
    with pytest.raises(InputError, match=f"^input.keep: {path} has 2 columns named 'n'; rename on"):
        plan(Corpus(path, keep=("n",)))


RAW = [b"plain", b"", "na\u00efve".encode(), None, b"caf\xe9", b"last"]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.dictionary("int8", "binary")])
def test_texts_and_ids_that_are_not_marked_as_strings(tmp_path: Path, kind: pa.DataType) -> None:
    # Kills: files of Impala and Hive, which mark no string; bytes in place of the text.
    path = write(tmp_path, {"text": pa.array(RAW).cast(kind), "k": pa.array(RAW[::-1]).cast(kind)})
    (batch,) = documents(Corpus(path, also=(("mechanism.user", "k"),)))
    assert batch.texts.to_pylist() == ["plain", "na\u00efve", "last"]
    assert batch.columns["k"].to_pylist() == [b"last", None, b"plain"]
    assert batch.rejects == [
        Reject(path, 1, "the column 'k' is not valid UTF-8"),
        Reject(path, 3, "the text is null"),
        Reject(path, 4, "the text is not valid UTF-8"),
    ]
    (kept,) = documents(Corpus(write(tmp_path, {"text": ["a"], "k": [b"\xff"]}), keep=("k",)))
    assert kept.columns["k"].to_pylist() == [b"\xff"]


def test_files_of_different_column_types(tmp_path: Path) -> None:
    first = write(tmp_path, {"text": ["a"], "year": [2020]}, "a.parquet")
    second = write(tmp_path, {"text": ["a"], "year": ["2020"]}, "b.parquet")
    said = f"year in {second} is of type string, and in {first} of type int64; write"
    with pytest.raises(InputError, match=f"^input.keep: {said}"):
        plan(Corpus(str(tmp_path / "*"), keep=("year",)))
    # Where no column is kept, there is nothing to differ in.
    assert len(plan(Corpus(str(tmp_path / "*"))).splits) == 2


EPOCH = 2_440_588  # in Julian days
DAY = 86_400 * 10**9


def of_96_bits(folder: Path, moments: list[tuple[int, int]], nested: bool) -> str:
    """A file whose column has these moments: Julian days, and nanoseconds of the day."""
    numbers = range(1001, 1001 + len(moments))
    column = pa.array(numbers, pa.timestamp("ns"))
    if nested:
        column = pa.ListArray.from_arrays(range(len(moments) + 1), column)
    path = write(
        folder,
        {"text": ["a"] * len(moments), "x": column},
        use_deprecated_int96_timestamps=True,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
    )
    content = Path(path).read_bytes()
    for number, (day, nanoseconds) in zip(numbers, moments, strict=True):
        own = struct.pack("<qi", number, EPOCH)
        assert content.count(own) == 1
        content = content.replace(own, struct.pack("<qi", nanoseconds, day))
    Path(path).write_bytes(content)
    return path


@pytest.mark.parametrize("nested", [False, True])
def test_moments_of_96_bits_are_exact_or_rejected(tmp_path: Path, nested: bool) -> None:
    # Kills: year 1 that becomes 1754, and 9999 that becomes 1816; a bound that is a second off.
    least, most = divmod(-(1 << 63), DAY), divmod((1 << 63) - 1, DAY)
    whole = [(0, 0), (0, DAY - 1), (-1, 5), least, most]
    beyond = [
        (least[0], least[1] - 1),
        (most[0], most[1] + 1),
        (1_721_426 - EPOCH, 0),  # year 1
        (5_373_484 - EPOCH, 0),  # year 9999
        ((1 << 31) - 1 - EPOCH, 0),
        (-(1 << 31) - EPOCH, 0),
        (0, -5),  # no nanosecond of a day
    ]
    given = [(EPOCH + day, nanoseconds) for day, nanoseconds in whole + beyond]
    path = of_96_bits(tmp_path, given, nested)
    (batch,) = documents(Corpus(path, keep=("x",)))
    column = batch.columns["x"].combine_chunks()
    found = (column.flatten() if nested else column).view(pa.int64()).to_pylist()
    assert found == [day * DAY + nanoseconds for day, nanoseconds in whole]
    said = "the column 'x' has an INT96 timestamp outside of the years 1677 to 2262"
    assert batch.rejects == [Reject(path, row, said) for row in range(len(whole), len(given))]
    assert documents(Corpus(path))[0].rejects == []  # nobody asks for the column


def test_no_file_is_left_open(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    # Kills: a Parquet file that is closed by the garbage collector alone (a ResourceWarning).
    path = write(tmp_path, {"text": ["a"] * 5000})
    batches = read(plan(Corpus(path)).splits[0], Corpus(path))
    next(batches)
    del batches
    documents(Corpus(path))
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(InputError, match="not a readable Parquet file"):
        plan(Corpus(str(tmp_path / "bad.parquet")))
    assert [warning for warning in recwarn if warning.category is ResourceWarning] == []


def forged(path: str, old: bytes, new: bytes) -> str:
    """Replace bytes, as many, that stand once in a file."""
    content = Path(path).read_bytes()
    assert content.count(old) == 1
    Path(path).write_bytes(content.replace(old, new))
    return path


def values_in(column: str, number: int) -> bytes:
    """A column chunk's name, codec and number of values, as a footer has them one after another."""
    return bytes([len(column)]) + column.encode() + b"\x15\0\x16" + bytes([2 * number])


PAGES = {"compression": "none", "use_dictionary": False, "data_page_size": 1, "write_batch_size": 3}


@pytest.mark.parametrize("kept", [(), ("n",)], ids=["text", "kept"])
def test_values_that_a_row_group_lacks(tmp_path: Path, kept: tuple[str, ...]) -> None:
    # Kills: the end of Arrow's batches taken for that of the row group; 3 of 6 documents vanish.
    path = write(tmp_path, {"text": TEXTS * 2, "n": range(12)}, row_group_size=6, **PAGES)
    content = Path(path).read_bytes()
    place = content.rindex(values_in("text", 6))
    forgery = content[:place] + values_in("text", 3) + content[place + len(values_in("text", 3)) :]
    Path(path).write_bytes(forgery)
    corpus = Corpus(path, keep=kept)
    with pytest.raises(InputError) as raised:
        documents(corpus)
    assert str(raised.value).startswith(f"input.path: row group 1 of {path} ")
    if not kept:
        assert "has 6 rows by its metadata, and only 3 can be read: the file is" in str(
            raised.value
        )
    assert flat([*read(plan(corpus).splits[0], corpus)]) == [
        (path, *one) for one in enumerate(TEXTS)
    ]


def test_values_that_a_row_group_has_no_rows_for(tmp_path: Path) -> None:
    # Kills: rows of the metadata taken for all; what lies behind them vanishes. Of a list, a row
    # may have many values, and of a column that is not read, nothing is lost.
    columns = {"text": TEXTS, "n": range(6), "list": [["a", "b"]] * 6}
    path = write(tmp_path, columns, **PAGES)
    forged(path, values_in("n", 6), values_in("n", 9))
    assert len(flat(documents(Corpus(path, keep=("list",))))) == 6
    with pytest.raises(InputError) as raised:
        plan(Corpus(path, keep=("n",)))
    assert str(raised.value) == (
        f"input.path: row group 0 of {path} has 6 rows, and 9 values in a column: the file is "
        "damaged; write it again"
    )


def test_rows_of_a_footer_that_no_row_group_has(tmp_path: Path) -> None:
    # Kills: a row group that a footer has lost.
    path = write(tmp_path, {"text": TEXTS}, **PAGES)
    rows_and_groups = b"\x16\x0c\x19\x1c"  # an int64 of 6, and a list of one struct
    forged(path, rows_and_groups, b"\x16\x18\x19\x1c")
    with pytest.raises(InputError, match=f"{path} has 6 rows in its row groups, and 12 by its foo"):
        plan(Corpus(path))


@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_page_checksums_are_verified(tmp_path: Path, version: str, compression: str) -> None:
    # Kills: a flipped bit that is a letter of a text; an option that finds whole pages damaged.
    options = {"compression": compression, "data_page_version": version, "write_statistics": False}
    sound = write(tmp_path, {"text": TEXTS}, write_page_checksum=True, **options)
    assert len(flat(documents(Corpus(sound)))) == len(TEXTS)
    if compression == "none":
        forged(sound, b"lines", b"limes")
        with pytest.raises(InputError, match=f"row group 0 of {sound} cannot be read: the file is"):
            documents(Corpus(sound))
    free = write(tmp_path, {"text": TEXTS}, "free.parquet", **options)
    assert len(flat(documents(Corpus(free)))) == len(TEXTS)
