"""Every bad input ends with one line that names key or file, value and remedy; exit code 2."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from machine import WORKERS

from quietcorpus.pipelines.evaluate.comparison import Comparison

if TYPE_CHECKING:
    from tests.conftest import Workspace

GOOD = [f"quiet world {'alpha ' * (i % 7)}" for i in range(50)]


def invalid_utf8(*values: bytes) -> pa.Array:
    """A string column that holds these bytes, valid or not."""
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())


def test_missing_input(workspace: Workspace) -> None:
    message = workspace.refused({"input.path": "input/absent.parquet"})
    assert "input.path: no file matches" in message
    assert "input/absent.parquet; check the path" in message


def test_pattern_without_a_match(workspace: Workspace) -> None:
    message = workspace.refused({"input.path": "input/*.parquet"})
    assert "input.path: no file matches" in message
    assert "input/*.parquet; check the path or the glob" in message


def test_unreadable_parquet(workspace: Workspace) -> None:
    (workspace.input / "corpus.parquet").write_bytes(b"not a parquet file at all")
    message = workspace.refused({"input.path": "input/*.parquet"})
    assert "input.path: " in message
    assert "input/corpus.parquet is not a readable Parquet file" in message
    assert "write it again" in message


def test_truncated_parquet(workspace: Workspace) -> None:
    path = workspace.parquet({"text": GOOD})
    path.write_bytes(path.read_bytes()[:-100])
    message = workspace.refused({"input.path": "input/*.parquet"})
    assert "input/corpus.parquet is not a readable Parquet file" in message


# Two processes: `test_canary.py` has the same corpus.
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


def test_malformed_json_lines_above_the_stated_share(workspace: Workspace) -> None:
    workspace.json_lines([*GOOD, b'{"text": "cut o', b"[1]"])
    message = workspace.refused({"rejects": {"path": "rejects", "max_share": 0.02}})
    assert "2 of 52 records are unreadable, more than the tolerated share of 0.02" in message
    assert "input/corpus.jsonl record 50: the line is not valid JSON" in message
    assert "raise rejects.max_share" in message


def test_malformed_json_line_without_a_place_for_rejects(workspace: Workspace) -> None:
    workspace.json_lines([*GOOD, b"{"])
    message = workspace.refused()
    assert "1 of 51 records are unreadable" in message
    assert "name a place in rejects.path" in message


def test_missing_text_column(workspace: Workspace) -> None:
    workspace.parquet({"body": GOOD, "author": GOOD})
    message = workspace.refused({"input.path": "input/*.parquet"})
    assert "input.text: " in message
    assert "corpus.parquet has no column 'text'; it has 'body', 'author'" in message


def test_missing_text_column_in_json_lines(workspace: Workspace) -> None:
    workspace.json_lines([{"body": text} for text in GOOD])
    message = workspace.refused()
    assert "input.text: " in message
    assert "corpus.jsonl has no column 'text'; check the spelling" in message


def test_null_texts(workspace: Workspace) -> None:
    workspace.parquet({"text": [*GOOD, None]})
    message = workspace.refused({"input.path": "input/*.parquet"})
    assert "1 of 51 records are unreadable" in message
    assert "corpus.parquet record 50: the text is null" in message


def test_text_column_that_is_no_string(workspace: Workspace) -> None:
    workspace.parquet({"text": [1, 2, 3]})
    message = workspace.refused({"input.path": "input/*.parquet"})
    assert "input.text: text in " in message
    assert "corpus.parquet is of type int64, not string; name the column" in message


def test_json_text_that_is_no_string(workspace: Workspace) -> None:
    workspace.json_lines([*GOOD, {"text": 7}])
    assert "record 50: the text is not a string" in workspace.refused()


def test_invalid_utf8_in_parquet(workspace: Workspace) -> None:
    workspace.parquet({"text": invalid_utf8(b"quiet", b"wor\xffld")})
    message = workspace.refused({"input.path": "input/*.parquet"})
    assert "corpus.parquet record 1: the text is not valid UTF-8" in message


def test_invalid_utf8_in_json_lines(workspace: Workspace) -> None:
    workspace.json_lines([*GOOD, b'{"text": "wor\xffld"}'])
    assert "record 50: the line is not valid JSON in UTF-8" in workspace.refused()


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_empty_corpus(workspace: Workspace, content: bytes) -> None:
    (workspace.input / "corpus.jsonl").write_bytes(content)
    message = workspace.refused()
    assert "input.path: " in message
    assert "input/corpus.jsonl holds no documents" in message


def test_empty_parquet(workspace: Workspace) -> None:
    workspace.parquet({"text": pa.array([], pa.string())})
    message = workspace.refused({"input.path": "input/*.parquet"})
    assert "input/*.parquet holds no documents" in message


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


@pytest.mark.parametrize(
    "value", [0, -1, float("nan"), float("inf"), "4"], ids=["zero", "negative", "nan", "inf", "str"]
)
def test_epsilon_that_is_not_positive_and_finite(workspace: Workspace, value: Any) -> None:
    message = workspace.refused({"mechanism.epsilon": value})
    assert f"spec.yaml: mechanism.epsilon: {value!r} is not" in message
    assert "give a positive" in message


@pytest.mark.parametrize("value", [0, 2.5])
def test_precision_that_is_no_positive_integer(workspace: Workspace, value: Any) -> None:
    message = workspace.refused({"mechanism.precision": value})
    assert f"mechanism.precision: {value!r} is not allowed; give a positive whole" in message


def test_more_bins_than_terms(workspace: Workspace) -> None:
    message = workspace.refused(
        {
            "mechanism.compression": {"method": "random", "size": 9},
            "mechanism.histogram_epsilon": 1,
        }
    )
    assert "mechanism.compression.size: 9 is larger than the vocabulary of 8 terms" in message
    assert "give at most 8" in message


def test_more_bins_than_terms_of_a_private_vocabulary(workspace: Workspace) -> None:
    # Only the run can tell how many terms there are.
    workspace.json_lines(["quiet world"] * 500)
    message = workspace.refused(
        {
            "mechanism.vocabulary": {"private": {"epsilon": 8, "delta": 1e-6}},
            "mechanism.compression": {"method": "frequency", "size": 3},
            "mechanism.histogram_epsilon": 1,
        }
    )
    assert "mechanism.compression.size: 3 is larger than the vocabulary of 2 terms" in message


def test_unknown_key(workspace: Workspace) -> None:
    message = workspace.refused({"mechanism.compression.sise": 100})
    assert (
        "spec.yaml: mechanism.compression.sise: unknown key, did you mean size? allowed" in message
    )
    assert "method, size, embedding" in message


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


def test_output_below_a_file(workspace: Workspace) -> None:
    message = workspace.refused({"output": "vocabulary.txt/out"})
    assert "vocabulary.txt cannot be written to; check the path and the permissions" in message


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to the superuser")
def test_output_without_permission(workspace: Workspace) -> None:
    workspace.output.parent.mkdir()
    workspace.output.parent.chmod(0o555)
    message = workspace.refused()
    assert "cannot be written to; check the path and the permissions" in message


def test_output_inside_the_input(workspace: Workspace) -> None:
    message = workspace.refused({"input.path": "input/*.jsonl", "output": "input/out"})
    assert "output: " in message
    assert "input/out overlaps with the input" in message
    assert "keep them apart" in message


def test_kept_column_that_does_not_exist(workspace: Workspace) -> None:
    workspace.parquet({"text": GOOD, "author": GOOD})
    message = workspace.refused({"input.path": "input/*.parquet", "input.keep": ["product"]})
    assert "input.keep: " in message
    assert "corpus.parquet has no column 'product'; it has 'text', 'author'" in message


def test_vocabulary_with_duplicates(workspace: Workspace) -> None:
    (workspace.folder / "vocabulary.txt").write_text("alpha\nbeta\nalpha\n")
    message = workspace.refused()
    assert "mechanism.vocabulary.public: " in message
    assert "vocabulary.txt holds 'alpha' more than once" in message
    assert "list every term once" in message


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


def test_an_empty_parquet_file_among_good_ones(workspace: Workspace) -> None:
    # An upload that failed. Kills: skipping every file without bytes.
    workspace.parquet({"text": GOOD})
    (workspace.input / "failed.parquet").write_bytes(b"")
    assert "failed.parquet is not a readable Parquet file" in workspace.refused(
        {"input.path": "input/*.parquet"}
    )


def test_nothing_but_rejects(workspace: Workspace) -> None:
    workspace.json_lines([b"{", b"["])
    message = workspace.refused({"rejects": {"path": "rejects", "max_share": 1}})
    # Kills: a message that leaves a person to look for what is wrong with them.
    assert message.endswith(
        "holds no documents: all 2 records are unreadable (the first is "
        f"{workspace.input}/corpus.jsonl record 0: the line is not valid JSON in UTF-8); fix them"
    )


def test_an_output_nobody_knows(workspace: Workspace) -> None:
    workspace.json_lines(GOOD)
    assert "file system that is not known" in workspace.refused({"output": "foo://bucket/out"})


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


def test_a_folder_as_input(workspace: Workspace) -> None:
    workspace.json_lines(GOOD)
    assert "is a folder; give a glob" in workspace.refused({"input.path": "input"})


def test_rejects_that_cannot_be_written(workspace: Workspace) -> None:
    workspace.json_lines(GOOD)
    (workspace.folder / "file").write_text("")
    message = workspace.refused({"rejects": {"path": "file/rejects"}})
    assert "rejects.path: " in message
    assert "cannot be written to" in message


def test_a_csv_header_that_repeats_a_name(workspace: Workspace) -> None:
    (workspace.input / "corpus.csv").write_text("text,text\na,b\n")
    assert "repeats a value" in workspace.refused({"input.path": "input/*.csv"})
