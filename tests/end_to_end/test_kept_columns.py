"""Allow-listed columns come out as they went in, beside the right rows; no other column does."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import quietcorpus as qc

if TYPE_CHECKING:
    from tests.conftest import Workspace

DOCUMENTS = 3000


def columns() -> dict[str, Any]:
    """Columns of many types, whose values all tell the row's number."""
    numbers = range(DOCUMENTS)
    moment = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    return {
        "key": pa.array(numbers, pa.uint32()),
        "dictionary": pa.array([f"{n % 1500}" for n in numbers]).dictionary_encode(),
        "large": pa.array([f"L{n}" for n in numbers], pa.large_string()),
        "view": pa.array([f"a long enough string {n}" for n in numbers], pa.string_view()),
        "time": pa.array([moment + datetime.timedelta(n) for n in numbers]),
        "decimal": pa.array([Decimal(n) / 4 for n in numbers], pa.decimal128(12, 2)),
        "list": [[n, n + 1] for n in numbers],
        "struct": [{"a": n, "b": None} for n in numbers],
        "struct in a struct": [{"a": {"b.c": n}} for n in numbers],
        "map": pa.array([[("k", n)] for n in numbers], pa.map_(pa.string(), pa.int64())),
        "float16": pa.array([n % 9 for n in numbers]).cast(pa.float16()),
        "list of a size": pa.array([[n, 1] for n in numbers], pa.list_(pa.int32(), 2)),
        "binary": [b"\xff%d" % n for n in numbers],
        "null": [None if n % 2 else n for n in numbers],
        "fresh id": [f"F{n}" for n in numbers],
        "a.b": pa.array(numbers),
    }


def test_kept_columns_of_every_type(workspace: Workspace) -> None:
    # Kills: a check of statistics or types that knows not all that can be copied.
    kept = columns()
    texts = ["quiet " * (n % 3) for n in range(DOCUMENTS)]
    workspace.parquet({"text": texts, "private": texts} | kept, row_group_size=1200)
    workspace.release({"input": {"path": "input/*.parquet", "id": "key", "keep": list(kept)}})
    (path,) = workspace.output.glob("data/*.parquet")
    released = pq.read_table(path)
    names = ["id", *(name for name in kept if name != "key")]
    assert released.schema.names == [*names, "terms", "counts"]
    released = released.sort_by("id")
    assert released["id"].type == pa.uint32()
    for name in names:
        given = kept["key" if name == "id" else name]
        expected = pa.array(given) if isinstance(given, list) else given
        assert released[name].to_pylist() == expected.to_pylist(), name
    qc.verify(workspace.output)


def test_a_copy_of_the_text_is_not_kept(workspace: Workspace) -> None:
    # Kills: a look that comes after the reservation, or not at all; a message that quotes.
    texts = [f"xylocanary {n} wrote to the bank and nobody answered" for n in range(40)]
    workspace.json_lines([{"text": text, "body": text.upper()} for text in texts])
    caps = {"definition": "limited-precision", "precision": 2, "epsilon": 10, "delta": 0}
    (workspace.folder / "caps.yaml").write_text(json.dumps({"corpus": "input", "caps": [caps]}))
    assert workspace.run("ledger", "init", "ledger", "caps.yaml").returncode == 0
    ledger = sorted(workspace.folder.glob("ledger/**/*"))
    message = workspace.refused({"input.keep": ["body"], "ledger": "ledger"})
    assert message.startswith("input.keep: 'body' repeats the text, or long parts of it, which no")
    assert "xylocanary" not in message
    assert sorted(workspace.folder.glob("ledger/**/*")) == ledger != []


def test_copies_are_found_wherever_they_stand(workspace: Workspace) -> None:
    # Kills: a look at the beginning of a file alone, which cannot be split.
    texts = [f"xylocanary {n} wrote to the bank and nobody answered" for n in range(DOCUMENTS)]
    notes = [text if n >= 2048 else "loan" for n, text in enumerate(texts)]
    workspace.json_lines(
        [{"text": text, "note": note} for text, note in zip(texts, notes, strict=True)]
    )
    message = workspace.refused({"input.keep": ["note"]})
    assert message.startswith("input.keep: 'note' repeats the text, or long parts of it, which no")
    assert "xylocanary" not in message


def test_a_column_of_addresses_is_kept_with_a_warning(workspace: Workspace) -> None:
    workspace.json_lines([{"text": "quiet", "by": f"xylo{n}@host.example"} for n in range(40)])
    message = workspace.refused({"input.keep": ["by"], "accept": ["kept-text"]})
    assert message == (
        "input.keep: 'by' looks like e-mail addresses, and would be released as it is; drop it "
        "from the list, or accept it by name: `accept: [kept-addresses]`"
    )
    done = workspace.release({"input.keep": ["by"]})
    assert "WARNING input.keep: 'by' looks like e-mail addresses, and will be" in done.stderr
    assert "xylo" not in done.stderr
    # Kills: --strict that refuses weak guarantees alone.
    changes = {"input.keep": ["by"], "output": "released/other"}
    workspace.output = workspace.output.with_name("other")
    message = workspace.refused(changes, "--strict")
    assert message.startswith("--strict: input.keep: 'by' looks like e-mail addresses, and will be")
    assert message.endswith(", unless everyone may read it")


def test_nothing_is_kept_that_is_not_listed(workspace: Workspace) -> None:
    workspace.parquet({"text": ["quiet"] * 9} | {k: v[:9] for k, v in columns().items()})
    workspace.release({"input": {"path": "input/*.parquet", "id": "key"}})
    (path,) = workspace.output.glob("data/*.parquet")
    assert pq.read_schema(path).names == ["id", "terms", "counts"]
    assert workspace.card()["columns"] == []


@pytest.mark.parametrize("rejected", ["text", "dictionary"])
def test_values_of_rejected_records_are_not_kept(workspace: Workspace, rejected: str) -> None:
    # Kills: a dictionary that is written whole, with the values of records that are not there.
    workspace.parquet(
        {
            "text": ["quiet", None, "world"],
            "product": pa.array(["card", "marker7731", "loan"]).dictionary_encode()
            if rejected == "dictionary"
            else ["card", "marker7731", "loan"],
        }
    )
    workspace.release(
        {
            "input": {"path": "input/*.parquet", "keep": ["product"]},
            "rejects": {"path": "rejects", "max_share": 0.5},
        }
    )
    (path,) = workspace.output.glob("data/*.parquet")
    column = pq.read_table(path, read_dictionary=["product"])["product"]
    values = [value for chunk in column.chunks for value in chunk.dictionary.to_pylist()]
    assert sorted(values) == ["card", "loan"]
