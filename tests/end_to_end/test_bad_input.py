"""Every bad input ends with one line that names key or file, value and remedy; exit code 2."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from machine import WORKERS
from workspace import Workspace

from quietcorpus.pipelines.evaluate.comparison import Comparison

GOOD = [f"quiet world {'alpha ' * (i % 7)}" for i in range(50)]
PARQUET = "input.path: |input/corpus.parquet is not a readable Parquet file|write it again"
COMPRESSED = {"mechanism.histogram_epsilon": 1}

Row = tuple[Callable[[Workspace], Any], dict[str, Any], str]
ANY = {"input.path": "input/*.parquet"}
SHARE = {"rejects": {"path": "rejects", "max_share": 0.02}}


def unchanged(workspace: Workspace) -> None:
    """Leave the corpus as it is."""


def lines(*records: Any) -> Callable[[Workspace], Any]:
    return lambda workspace: workspace.json_lines(records)


def columns(**columns: Any) -> Callable[[Workspace], Any]:
    return lambda workspace: workspace.parquet(columns)


def file(name: str, content: bytes) -> Callable[[Workspace], Any]:
    return lambda workspace: (workspace.input / name).write_bytes(content)


def cut(workspace: Workspace) -> None:
    path = workspace.parquet({"text": GOOD})
    path.write_bytes(path.read_bytes()[:-100])


# What is done to the input, what the spec says, and parts of the message. What a spec's model, a
# reader of files or a list of terms refuses by itself is in the tables of tests/pipelines/schema,
# tests/transforms/reading and tests/indexes/tokens; here is one row for each way that it takes to
# the command.
REFUSED: dict[str, Row] = {
    "no file": (unchanged, {"input.path": "input/no.csv"}, "no.csv; check the path"),
    "no match": (unchanged, ANY, "input/*.parquet; check the path or the glob"),
    "a folder": (unchanged, {"input.path": "input"}, "is a folder; give a glob"),
    "no Parquet": (file("corpus.parquet", b"not a parquet file at all"), ANY, PARQUET),
    "a Parquet file that is cut": (cut, ANY, PARQUET),
    # An upload that failed. Kills: skipping every file without bytes.
    "an empty file among good ones": (
        lambda w: (w.parquet({"text": GOOD}), file("failed.parquet", b"")(w)),
        ANY,
        "input/failed.parquet is not a readable Parquet file",
    ),
    "rejects above the share": (
        lines(*GOOD, b'{"text": "cut o', b"[1]"),
        SHARE,
        "2 of 52 records are unreadable, more than the tolerated share of 0.02|input/corpus.jsonl "
        "record 50: the line is not valid JSON|raise rejects.max_share",
    ),
    "no place for rejects": (
        lines(*GOOD, b"{"),
        {},
        "1 of 51 records are unreadable|name a place in rejects.path",
    ),
    "rejects that cannot be written": (
        unchanged,
        {"rejects": {"path": "vocabulary.txt/rejects"}},
        "rejects.path: |cannot be written to",
    ),
    "a null": (
        columns(text=[*GOOD, None]),
        ANY,
        "1 of 51 records are unreadable|corpus.parquet record 50: the text is null",
    ),
    "no such column": (
        columns(body=GOOD, author=GOOD),
        ANY,
        "input.text: |corpus.parquet has no column 'text'; it has 'body', 'author'",
    ),
    "no such column to keep": (
        columns(text=GOOD, author=GOOD),
        ANY | {"input.keep": ["product"]},
        "input.keep: |corpus.parquet has no column 'product'; it has 'text', 'author'",
    ),
    "nothing": (file("corpus.jsonl", b""), {}, "input/corpus.jsonl holds no documents"),
    "blank lines": (file("corpus.jsonl", b"\n\n"), {}, "input/corpus.jsonl holds no documents"),
    "no rows": (
        columns(text=pa.array([], pa.string())),
        ANY,
        "input/*.parquet holds no documents",
    ),
    "a header that repeats a name": (
        file("corpus.csv", b"text,text\na,b\n"),
        {"input.path": "input/*.csv"},
        "repeats a value",
    ),
    "a value": (
        unchanged,
        {"mechanism.epsilon": 0},
        "spec.yaml: mechanism.epsilon: 0 is not allowed; give a positive",
    ),
    "more bins than terms": (
        unchanged,
        COMPRESSED | {"mechanism.compression": {"method": "random", "size": 9}},
        "mechanism.compression.size: 9 is larger than the vocabulary of 8 terms|give at most 8",
    ),
    # Only the run can tell how many terms there are.
    "more bins than private terms": (
        lines(*["quiet world"] * 500),
        COMPRESSED
        | {
            "mechanism.vocabulary": {"private": {"epsilon": 8, "delta": 1e-6}},
            "mechanism.compression": {"method": "frequency", "size": 3},
        },
        "mechanism.compression.size: 3 is larger than the vocabulary of 2 terms",
    ),
    "a term twice": (
        lambda w: (w.folder / "vocabulary.txt").write_text("alpha\nbeta\nalpha\n"),
        {},
        "mechanism.vocabulary.public: |holds 'alpha' more than once|list every term once",
    ),
    "an output below a file": (
        unchanged,
        {"output": "vocabulary.txt/out"},
        "vocabulary.txt cannot be written to; check the path and the permissions",
    ),
    "an output in no known store": (
        unchanged,
        {"output": "foo://bucket/out"},
        "file system that is not known",
    ),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_one_line_and_nothing_else(workspace: Workspace, fault: str) -> None:
    # Kills: a fault that ends in a traceback, in another exit code, or after something is written.
    # Schedulers wait for an input that is not there.
    change, changes, parts = REFUSED[fault]
    change(workspace)
    code = 4 if fault in {"no file", "no match"} else 2
    message = workspace.refused(changes, code=code)
    assert all(part in message for part in parts.split("|")), message


# Two processes: `test_every_kind.py` has such a corpus.
@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.nightly)])
def test_parquet_with_a_damaged_row_group(workspace: Workspace, workers: str) -> None:
    # The footer is whole, so that the damage shows in a worker and not before the run.
    path = workspace.parquet({"text": GOOD}, row_group_size=10, use_dictionary=False)
    content = bytearray(path.read_bytes())
    middle = len(content) // 3
    content[middle : middle + 120] = bytes(120)
    path.write_bytes(content)
    given = {"input.path": "input/*.parquet"}
    message = workspace.refused(given, "--workers", workers, fresh=workers != "1")
    assert "input.path: row group" in message
    assert "input/corpus.parquet cannot be read: the file is damaged" in message


def test_malformed_json_lines_within_the_stated_share(workspace: Workspace) -> None:
    workspace.json_lines([*GOOD, b'{"text": "cut o'])
    done = workspace.release({"rejects": {"path": "rejects", "max_share": 0.02}})
    assert "1 of 51 records are unreadable" in done.stderr
    assert workspace.card()["counts"] == {"documents": 50, "rejected": 1}
    assert len(workspace.rows()) == 50


@pytest.mark.slow
def test_document_of_50_mb_is_released_like_any_other(workspace: Workspace) -> None:
    # Kills: a limit on a document's size, a batch that cannot hold it, a counter that overflows.
    workspace.json_lines(["quiet", "hello " * 8_334_000, "world"])
    workspace.release({"mechanism.epsilon": 100})
    counts = sorted(tuple(row["counts"]) for row in workspace.rows())
    assert counts == [(1,), (1,), (8_334_000,)]


@pytest.mark.parametrize("workers", WORKERS)
def test_duplicate_ids(workspace: Workspace, workers: str) -> None:
    rows = 300
    columns = {"text": ["quiet"] * rows, "key": [*range(rows - 1), 7]}
    workspace.parquet(columns, row_group_size=100)
    given = {"input.path": "input/*.parquet", "input.id": "key"}
    message = workspace.refused(given, "--workers", workers, fresh=workers != "1")
    assert "input.id: the column 'key' repeats values" in message
    assert "keep each document once" in message


def test_output_that_holds_a_release(workspace: Workspace) -> None:
    workspace.output.mkdir(parents=True)
    (workspace.output / "release.json").write_text("kept")
    done = workspace.run("release", str(workspace.spec()))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "out holds a release already; name another place" in done.stderr
    assert (workspace.output / "release.json").read_text() == "kept"
    assert workspace.leftovers() == []


def test_output_that_is_not_empty(workspace: Workspace) -> None:
    workspace.output.mkdir(parents=True)
    (workspace.output / "thesis.tex").write_text("kept")
    message = workspace.refused()
    assert "output: " in message
    assert "out exists already and is not empty; name another place" in message
    assert [path.name for path in workspace.output.iterdir()] == ["thesis.tex"]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to the superuser")
def test_output_without_permission(workspace: Workspace) -> None:
    workspace.output.parent.mkdir()
    workspace.output.parent.chmod(0o555)
    message = workspace.refused()
    assert "cannot be written to; check the path and the permissions" in message


@pytest.mark.parametrize("text", ["zzz qqq", ""])
def test_a_document_without_known_words_alone(workspace: Workspace, text: str) -> None:
    # Not bad at all: it is released like any other, also where no bin of a batch is positive.
    workspace.json_lines([text])
    workspace.release(
        {
            "mechanism.epsilon": 100,
            "mechanism.histogram_epsilon": 1,
            "mechanism.compression": {"method": "frequency", "size": 2},
        }
    )
    assert workspace.card()["counts"] == {"documents": 1, "rejected": 0}


# The first is the writing of R, pandas and Spark. It is far behind, where a worker alone reads.
BROKEN_CSV = {
    '"the screen is 24\\""\n5001,"\nName of a person, alpha"': (
        "record 5001 (line 5004) has a quote inside a field that is not quoted"
    ),
    '"open': "record 5000 (line 5002) has a quote that is never closed, before 200 further lines",
}


@pytest.mark.parametrize("text", BROKEN_CSV)
def test_a_broken_quote(workspace: Workspace, text: str) -> None:
    # Kills: one reject for all that follows the quote, which is below any share; a line of a text
    # that is taken for a record; what was read before the fault, published.
    rows = [f'{n},"{"quiet world " * 10}"' for n in range(5000)] + [f"5000,{text}"]
    rows += [f"{n},quiet" for n in range(5002, 5202)]
    (workspace.input / "corpus.csv").write_text("\n".join(["ticket,text", *rows]) + "\n")
    given = {"input.path": "input/*.csv", "input.keep": ["ticket"], "rejects": {"path": "rejects"}}
    message = workspace.refused(given)
    assert f"input/corpus.csv {BROKEN_CSV[text]}; quote" in message
    assert "or give `escape: '\\'` in `input` if backslashes escape them" in message


def test_quotes_that_backslashes_escape(workspace: Workspace) -> None:
    # Kills: an escape that is of the spec alone.
    text = '0,"hello \\"world\\""\n1,"\nName of a person, alpha"\n'
    (workspace.input / "corpus.csv").write_text("ticket,text\n" + text)
    given = {"input.path": "input/*.csv", "input.keep": ["ticket"], "input.escape": "\\"}
    workspace.release(given | {"mechanism.epsilon": 100})
    found = {row["ticket"]: len(row["terms"]) for row in workspace.rows()}
    assert found == {"0": 2, "1": 1}
    comparison = Comparison.of(
        str(workspace.output),
        f"{workspace.input}/corpus.csv",
        str(workspace.folder / "spec.yaml"),
        **dict.fromkeys(("text", "id_", "label", "user")),
        documents=9,
        seed=1,
        compared={},
    )
    assert comparison.sample.documents.texts.to_pylist()[0] == 'hello "world"'


def test_nothing_but_rejects(workspace: Workspace) -> None:
    workspace.json_lines([b"{", b"["])
    message = workspace.refused({"rejects": {"path": "rejects", "max_share": 1}})
    # Kills: a message that leaves a person to look for what is wrong with them.
    assert message.endswith(
        "holds no documents: all 2 records are unreadable (the first is "
        f"{workspace.input}/corpus.jsonl record 0: the line is not valid JSON in UTF-8); fix them"
    )


CALIBRATED = ("--vocabulary", "vocabulary.txt", "--epsilons", "1")
READERS = {
    "input.path": ("release", "spec.yaml", "--dry-run"),
    "init": ("init", "input/*.jsonl", "--want", "counts"),
    "--public": ("provenance", "good.yaml", "--report", "r.json", "--public", "input/*.jsonl"),
    "index": ("index", "build-pool", "input/*.jsonl", "--output", "p", "--provenance", "public"),
    "calibrate": ("calibrate", "bag-of-words", "input/*.jsonl", *CALIBRATED),
}


@pytest.mark.parametrize("name", READERS)
def test_every_reader_refuses_a_table(workspace: Workspace, name: str) -> None:
    # Kills: a command that lists files by itself, with those of deleted rows among them.
    workspace.json_lines(GOOD)
    (workspace.input / "_delta_log").mkdir()
    (workspace.input / "_delta_log" / "00000000000000000000.json").write_text("{}")
    workspace.spec({"input.path": "input/*.jsonl"})
    (workspace.folder / "good.jsonl").write_text('{"text": "hello"}\n')
    workspace.spec({"input.path": "good.jsonl"}, "good.yaml")
    message = workspace.error_of(workspace.run(*READERS[name]))
    assert f"{workspace.input} is a Delta table: its files also hold rows that were" in message
