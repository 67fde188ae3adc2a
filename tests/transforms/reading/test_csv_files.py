"""CSV: the letter of both grammars, and no value that comes from another record."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading import csv_files
from quietcorpus.transforms.reading.csv_files import ESCAPE, CsvFile
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.reading.sources import plan, read

Table = list[tuple[bytes, ...]]
Values = list[list[str | None] | None]


def values(content: bytes, escape: str | None = None, *names: str) -> Values:
    """The values of some columns, by default of all."""
    file = CsvFile(io.BytesIO(content), "a.csv", escape)
    return list(file.rows(names or file.names))


def doubled(value: bytes) -> bytes:
    return b'"' + value.replace(b'"', b'""') + b'"'


def escaped(value: bytes) -> bytes:
    return b'"' + value.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def holds(value: bytes, characters: bytes) -> bool:
    return any(one in characters for one in value)


def rfc_4180(value: bytes) -> bytes:
    return doubled(value) if holds(value, b'",\r\n') else value


def postgres(value: bytes) -> bytes:
    """As COPY TO ... CSV; an empty value that is not quoted is NULL."""
    return doubled(value) if not value or holds(value, b'",\r\n') else value


def pandas(value: bytes) -> bytes:
    """As to_csv(escapechar="\\", doublequote=False), by Python's csv module."""
    inner = value.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    return b'"' + inner + b'"' if holds(value, b",\r\n") else inner


def r(value: bytes) -> bytes:
    """As write.table: a backslash before quotes, and none before backslashes."""
    return b'"' + value.replace(b'"', b'\\"') + b'"'


def spark(value: bytes) -> bytes:
    """As DataFrame.write.csv: quotes only where needed, and no escapes outside them."""
    return escaped(value) if not value or holds(value, b'",\r\n') else value


def mysql(value: bytes) -> bytes:
    """As SELECT INTO OUTFILE ... ENCLOSED BY '"', which escapes line feeds as well."""
    return escaped(value).replace(b"\n", b"\\\n")


class Dialect(NamedTuple):
    encode: Callable[[bytes], bytes]
    line_end: bytes
    escape: str | None


DIALECTS = {
    "rfc 4180": Dialect(rfc_4180, b"\r\n", None),
    "postgres": Dialect(postgres, b"\n", None),
    "pandas": Dialect(pandas, b"\n", ESCAPE),
    "all quoted": Dialect(escaped, b"\n", ESCAPE),
    "r": Dialect(r, b"\n", ESCAPE),
    "spark": Dialect(spark, b"\n", ESCAPE),
    "mysql": Dialect(mysql, b"\n", ESCAPE),
}
Spans = dict[tuple[int, int], tuple[int, int]]


def written(table: Table, dialect: Dialect) -> tuple[bytes, Spans]:
    """A file, and where each cell begins and ends in it."""
    content, spans = b"", Spans()
    for row, record in enumerate(table):
        for column, value in enumerate(record):
            content += b"," if column else b""
            start = len(content)
            content += dialect.encode(value)
            spans[row, column] = start, len(content)
        content += dialect.line_end
    return content, spans


def tables(alphabet: str) -> st.SearchStrategy[Table]:
    """Tables of two or three columns, of texts that look like records themselves."""
    cell = st.text(alphabet, max_size=6).map(str.encode)
    names = st.sampled_from([(b"kept", b"text"), (b"text", b"kept"), (b"n", b"kept", b"text")])
    return names.flatmap(
        lambda header: st.lists(st.tuples(*(cell for _ in header)), min_size=1, max_size=5).map(
            lambda rows: [header, *rows]
        )
    )


ALPHABET = '",\n\r\\aé'
WITHOUT_BACKSLASHES = ALPHABET.replace("\\", "")


@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=50)
@given(data=st.data())
def test_one_damaged_byte_changes_its_own_cell_or_refuses_the_file(
    name: str, data: st.DataObject
) -> None:
    # Kills: a fault after which the next line is taken for a record; a quote inside a field without
    # quotes; a record of another width; a carriage return that ends a line by itself.
    dialect = DIALECTS[name]
    # The dialect of R is ambiguous where texts have backslashes, as its own readers find.
    table = data.draw(tables(WITHOUT_BACKSLASHES if name == "r" else ALPHABET))
    content, spans = written(table, dialect)
    place = data.draw(st.integers(0, len(content) - 1))
    with_, without = (
        data.draw(st.sampled_from([b"", b'"', b",", b"\n", b"\r", b"\\", b"x"])),
        (data.draw(st.booleans())),
    )
    damaged = content[:place] + with_ + content[place + without :]
    try:
        file = CsvFile(io.BytesIO(damaged), "a.csv", dialect.escape)
        if not {"kept", "text"} <= set(file.names):
            return  # refused by the plan of a release
        found = list(file.rows(["kept", "text"]))
    except InputError:
        return
    columns = [table[0].index(name) for name in (b"kept", b"text")]
    touched = {cell for cell, (start, end) in spans.items() if start - 1 <= place <= end}
    rows = [(row, record) for row, record in enumerate(table) if row]
    if found and len(found) == len(rows) + 1 and found[-1] == ["", ""]:
        found.pop()  # of a comma after the last line
    if len(found) == len(rows) - 1:  # an empty record that has lost its comma, or the only one
        rows = [one for one in rows if any(one[1]) or (one[0], 0) not in touched] if found else []
    assert len(found) == len(rows)
    for (row, record), own in zip(rows, found, strict=True):
        for column, value in zip(columns, own or (), strict=own is not None):
            assert (row, column) in touched or value == record[column].decode()


@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=25)
@given(data=st.data())
def test_a_whole_file_is_read_exactly_or_refused(name: str, data: st.DataObject) -> None:
    # Kills: an escape that stays in a value; a file that is read by halves.
    dialect = DIALECTS[name]
    table = data.draw(tables(WITHOUT_BACKSLASHES if name == "r" else ALPHABET))
    content, _ = written(table, dialect)
    ambiguous = "two ways"
    if name in ("pandas", "spark"):  # the two write a backslash outside quotes in different ways
        ambiguous += "|a backslash that may"
    try:
        found = values(content, dialect.escape)
    except InputError as error:
        if re.search(ambiguous, str(error)):
            return
        raise
    assert found == [[value.decode() for value in record] for record in table[1:]]


@pytest.mark.parametrize("name", sorted(set(DIALECTS) - {"r"}))
@settings(max_examples=30)
@given(data=st.data())
def test_the_wrong_dialect_moves_no_text_into_a_kept_column(name: str, data: st.DataObject) -> None:
    # Kills: a file that the wrong grammar accepts to its end.
    dialect = DIALECTS[name]
    table = data.draw(tables(data.draw(st.sampled_from([ALPHABET, WITHOUT_BACKSLASHES]))))
    content, _ = written(table, dialect)
    try:
        found = values(content, None if dialect.escape else ESCAPE, "kept")
    except InputError:
        return
    column = table[0].index(b"kept")
    kept = {record[column].decode().replace("\\", "") for record in table[1:]}
    assert {own[0].replace("\\", "") for own in found if own and own[0] is not None} <= kept


# Two documents of one person, in a file by pandas. By RFC 4180, the quote that closes the first
# text opens a kept value, which holds the rows of two other people.
CRAFTED: Table = [
    (b"kept", b"text"),
    (b"me", b'x"\n'),
    (b"ann", b"a private text"),
    (b"bob", b"another one"),
    (b'me"', b"y"),
]


@pytest.mark.parametrize("size", [1, 1 << 18])
def test_a_crafted_text_takes_no_rows_of_others_into_a_kept_column(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a file that only one grammar is asked about; a quote whose backslash is a block before.
    for limit in ("_FIRST_BYTES", "_BLOCK_BYTES", "_MOST_BYTES"):
        monkeypatch.setattr(csv_files, limit, size)
    content, _ = written(CRAFTED, DIALECTS["pandas"])
    plain = list(csv.reader(io.StringIO(content.decode()), strict=True))
    assert any("a private text" in record[0] for record in plain)
    with pytest.raises(InputError, match="in two ways, by doubled quotes and by quotes that back"):
        values(content)
    with pytest.raises(InputError, match="in two ways, by doubled quotes and by quotes that back"):
        values(content, ESCAPE)


def refused(content: bytes, escape: str | None = None) -> str:
    with pytest.raises(InputError) as error:
        values(content, escape)
    return str(error.value)


H = b"k,text\n"
REFUSED = {
    "more after a closing quote": (H + b'0,a\n1,"b"c\n', "record 1 (line 3) has more after the"),
    "space before a quote": (H + b'0, "a"\n', "record 0 (line 2) has a quote inside a field that"),
    "quote in a plain field": (
        H + b'0,a\n1,5" disk\n',
        "record 1 (line 3) has a quote inside a fi",
    ),
    "quote of a backslash": (H + b'0,"a \\"b\\""\n', "record 0 (line 2) has more after the quote"),
    "open at the end": (
        H + b"0,a\n" + b'1,"b\n' + b"2,c\n" * 100,
        "record 1 (line 3) has a quote that is never closed, before 100 further lines; quote fi",
    ),
    "too few": (H + b"0,a\n\n1\n2,b\n", "record 1 (line 4) has 1 field where the header has 2"),
    "too many": (H + b'0,"a\n\nb"\n1,b,c\n', "record 1 (line 5) has 3 fields where the header has"),
    "cut short": (H + b"0,a\n1", "record 1 (line 3) has 1 field where the header has 2"),
    "bare carriage return": (H + b"0,a\r1,b\n", "record 0 (line 2) has a line break outside quo"),
    "other line ends": (b"k,text\r\n0,a\r\n1,b\n", "record 1 (line 3) has a line break outside"),
    "a lone return at the end": (b"k,text\r\n0,a\r", "record 0 (line 2) has a line break outside"),
    "line feeds among returns": (b"k,text\r0,a\n1,b\r", "record 0 (line 2) has a line break outsi"),
    "NUL": (H + b"0,a\n1,b\0\n", "record 1 (line 3) has a NUL byte"),
    "quote in the header": (b'k,te"xt\n0,a\n', "header (line 1) has a quote inside a field that"),
    "open header": (b'k,"text\n0,a\n', "header (line 1) has a quote that is never closed, before"),
    "marks of two files": (H + b'0,a\n\xef\xbb\xbf"k","text"\n', "record 1 (line 3) has a quote"),
    "repeated name": (b"k,k\n0,a\n", "begins with a row that repeats a value"),
    "first of two": (H + b'0\n1,"a\n', "record 0 (line 2) has 1 field"),
}
SEPARATED = {"semicolons": b";", "tabs": b"\t", "bars": b"|"}


@pytest.mark.parametrize("name", SEPARATED)
def test_other_separators_are_named(name: str) -> None:
    # Kills: advice on quotes for a file whose fields something else separates.
    header = b"k,text".replace(b",", SEPARATED[name])
    message = f"input.path: a.csv has {name} between its column names; expected commas: write the"
    assert refused(b"\n" + header + b'\n0;"a"\n').startswith(message)
    assert values(header + b",l\n0,1\n") == [["0", "1"]]  # a comma: it is a name


REFUSED_ESCAPED = {
    "a tab": (H + b'0,"a\\tb"\n', "record 0 (line 2) has a backslash that may escape what follows"),
    "of a plain field": (H + b"0,a\\\\b\n", "record 0 (line 2) has a backslash that may escape"),
    "R's path": (H + b'0,"C:\\temp"\n', "record 0 (line 2) has a backslash that may escape what"),
    "R's folder": (H + b'0,"C:\\"\n1,"b"\n', "record 0 (line 3) has more after the quote that end"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_faults(name: str) -> None:
    # Kills: a fault that is passed over; one without its record, its line or the remedy.
    content, said = REFUSED[name]
    message = refused(content)
    assert message.startswith(f"input.path: a.csv {said}")
    assert "\n" not in message
    if "has" in said:
        assert "double the quotes inside; or give `escape: '\\'` in `input` if" in message


@pytest.mark.parametrize("name", REFUSED_ESCAPED)
def test_faults_of_backslashes(name: str) -> None:
    # Kills: a backslash that one writer means otherwise than another.
    content, said = REFUSED_ESCAPED[name]
    message = refused(content, ESCAPE)
    assert message.startswith(f"input.path: a.csv {said}")
    assert "put a backslash before quotes and backslashes inside; or drop input.escape" in message


READ: dict[str, tuple[bytes, str | None, Values]] = {
    "empty": (b"", None, []),
    "blank lines": (b"\n\nk,text\n\n0,a\n\n\n", None, [["0", "a"]]),
    "no end": (H + b'0,"a"', None, [["0", "a"]]),
    "mark and quoted names": (b'\xef\xbb\xbf"k","te,xt"\n0,a\n', None, [["0", "a"]]),
    "empty fields": (H + b',\n"",""\n', None, [["", ""], ["", ""]]),
    "line breaks in quotes": (H + b'0,"a\r\nb\rc\nd"\n', None, [["0", "a\r\nb\rc\nd"]]),
    "returns for line ends": (b'k,text\r0,"a\nb"\r1,c', None, [["0", "a\nb"], ["1", "c"]]),
    "a backslash for itself": (H + b'0,"C:\\"\n1,a\\b\n', None, [["0", "C:\\"], ["1", "a\\b"]]),
    "bytes that are not UTF-8": (H + b"0,\xff\n1,a\n\xff,b\n", None, [None, ["1", "a"], None]),
    "one column": (b'text\na\n\n"b\nc"\n', None, [["a"], ["b\nc"]]),
    "escapes": (H + b'0,"\\"a\\\\\\" \\\\"\n', ESCAPE, [["0", '"a\\" \\']]),
    "escapes without quotes": (H + b'0,a \\"b\\" \\c\n', ESCAPE, [["0", 'a "b" \\c']]),
    "Spark's folder": (b"k,text\nC:\\,C:\\\n1,C:\\", ESCAPE, [["C:\\", "C:\\"], ["1", "C:\\"]]),
    "escaped and doubled": (H + b'0,"a\\"b""c"\n', ESCAPE, [["0", 'a"b"c']]),
    "MySQL's null and line feed": (H + b'\\N,"a\\\nb"\n', ESCAPE, [[None, "a\nb"]]),
    "no null in quotes": (H + b'0,"\\\\N"\n', ESCAPE, [["0", "\\N"]]),
}


@pytest.mark.parametrize("size", [1, 2, 5, 1 << 18])
@pytest.mark.parametrize("name", READ)
def test_what_is_read(name: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: a byte order mark in a name; a state that is lost between two blocks.
    monkeypatch.setattr(csv_files, "_BLOCK_BYTES", size)
    monkeypatch.setattr(csv_files, "_MOST_BYTES", size)
    monkeypatch.setattr(csv_files, "_FIRST_BYTES", max(3, size))
    content, escape, expected = READ[name]
    assert values(content, escape) == expected


@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize("name", REFUSED)
def test_faults_across_blocks(name: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: a quote at the end of a block whose neighbour is never seen.
    for limit in ("_FIRST_BYTES", "_BLOCK_BYTES", "_MOST_BYTES"):
        monkeypatch.setattr(csv_files, limit, size)
    content, said = REFUSED[name]
    if content.startswith(b"k"):
        assert refused(content).startswith(f"input.path: a.csv {said}")


@settings(max_examples=100)
@given(st.text('",\n\r\\ab', max_size=24).map(str.encode))
@example(b'a,b\n"x"",\n"\n')
def test_python_reads_the_same(content: bytes) -> None:
    # Kills: a value that no other reader finds. Python's also reads what is refused here.
    try:
        found = CsvFile(io.BytesIO(content), "a.csv")
        rows = list(found.rows(found.names))
    except InputError:
        assume(False)
    stream = io.TextIOWrapper(io.BytesIO(content), "utf-8", newline="")
    expected = [record for record in csv.reader(stream, strict=True) if record]
    assert [found.names, *rows] == (expected or [[]])


@settings(max_examples=30)
@given(tables('",\n\\ab'))
def test_the_dialects_are_those_of_pythons_writer(table: Table) -> None:
    # Kills: a helper of these tests that writes what no program does.
    for name, options in {
        "rfc 4180": {"lineterminator": "\r\n"},
        "pandas": {"escapechar": "\\", "doublequote": False, "lineterminator": "\n"},
        "all quoted": {
            "escapechar": "\\",
            "doublequote": False,
            "quoting": csv.QUOTE_ALL,
            "lineterminator": "\n",
        },
    }.items():
        stream = io.StringIO()
        csv.writer(stream, **options).writerows(  # type: ignore[arg-type]
            [value.decode() for value in record] for record in table
        )
        assert stream.getvalue().encode() == written(table, DIALECTS[name])[0]


def test_a_record_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: a file that is held in memory as one record.
    monkeypatch.setattr(csv_files, "_LARGEST_RECORD", 1 << 20)
    assert "record 0 (line 2) has a record of more than 1 MiB" in refused(
        H + b'0,"' + b"x" * (3 << 20) + b'"\n'
    )
    # Kills: quotes that take 44 bytes of memory each, without a limit of their own.
    monkeypatch.setattr(csv_files, "_MOST_SPECIAL", 1 << 10)
    message = refused(H + b'0,"' + b'""' * (1 << 18) + b'"\n')
    assert "record 0 (line 2) has a record of more than 1,024 quotes, commas and line br" in message


def test_the_digest_of_a_corpus_tells_dialects_apart(tmp_path: Path) -> None:
    # Kills: one noise for two readings of a file.
    (tmp_path / "a.csv").write_bytes(H + b'0,"a\\\\b"\n')
    one, other = (Corpus(str(tmp_path / "a.csv"), escape=escape) for escape in (None, ESCAPE))
    assert plan(one).corpus_digest(one) != plan(other).corpus_digest(other)
    texts = [
        batch.texts.to_pylist()
        for corpus in (one, other)
        for split in plan(corpus).splits
        for batch in read(split, corpus)
    ]
    assert texts == [["a\\\\b"], ["a\\b"]]
