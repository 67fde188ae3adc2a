"""A canary user has a part in word embeddings; the words that only that user has, the user's name
and the name of a team that has no budget are found nowhere that a run writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from canaries import (
    CANARY,
    IDENTIFIER,
    IN_PROCESS,
    SECRETS,
    TWO_WORKERS,
    assert_unseen,
    damage,
    needles_of,
    refused_without_a_word,
)
from embedding_releases import (
    BUDGETS,
    METHODS,
    PRIVATE,
    Record,
    documents,
    embeddings,
    prepare,
    ray_folder,
    vectors_of,
)

if TYPE_CHECKING:
    from tests.conftest import Workspace

pytestmark = pytest.mark.slow

NAME, TEAM = "quill.canary@private-host.example", "vermilionfinch"
CASES: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "sgd-1": ("sgd", {"vocabulary": PRIVATE, "epsilon": 30}, IN_PROCESS),
    "sgd-2": ("sgd", {}, TWO_WORKERS),
    "cooccurrence-1": ("cooccurrence", {"budgets": BUDGETS}, IN_PROCESS),
    "cooccurrence-2": ("cooccurrence", {"vocabulary": PRIVATE}, TWO_WORKERS),
}


def canaries() -> list[Record]:
    """Documents of a user in a team with a budget, of one in a team without, and without a user."""
    whose = [(NAME, "gold"), (f"of {NAME}", TEAM), (None, "gold")]
    return [
        {"text": CANARY, "case": f"{IDENTIFIER}-{number}", "author": author, "team": team}
        for number, (author, team) in enumerate(whose)
    ]


def corpus(workspace: Workspace, texts: list[str]) -> None:
    """The canaries among others, in the second row group."""
    prepare(workspace, texts)
    records: list[Record] = [
        record | {"case": str(number)} for number, record in enumerate(documents(texts))
    ]
    records[25:25] = canaries()
    names = ("text", "case", "author", "team")
    fields = [pa.field(name, pa.string(), metadata={"comment": CANARY}) for name in names]
    schema = pa.schema(fields, metadata={"description": CANARY})
    columns = {name: [record[name] for record in records] for name in names}
    table = pa.table(columns, schema=schema)
    path = workspace.input / "corpus.parquet"
    pq.write_table(table, path, row_group_size=20, use_dictionary=False)


def changes_of(workspace: Workspace, method: str, **block: Any) -> dict[str, Any]:
    return embeddings(workspace, method, **block) | {
        "input": {"path": "input/corpus.parquet", "id": "case"},
        "rejects": {"path": "rejects", "max_share": 0.5},
    }


@pytest.mark.parametrize(
    "case",
    # Two processes write what one does, and a private vocabulary is of either method.
    [pytest.param(case, marks=[pytest.mark.nightly] * case.endswith("-1")) for case in CASES],
)
def test_a_release_tells_nothing_of_the_canary(
    workspace: Workspace, lee_texts: list[str], case: str
) -> None:
    # Kills: a name, a word or a digest's input in a log line, in a staged file that is left, in the
    # temporary folder or in Ray's; a vocabulary that a single user can get a word into.
    method, block, options = CASES[case]
    corpus(workspace, lee_texts)
    changes = changes_of(workspace, method, **block)
    if method == "sgd":
        changes["checkpoints"] = str(workspace.folder / "checkpoints")
    spec = str(workspace.spec(changes))
    needles = needles_of(workspace)
    with ray_folder() as folder:
        environment = {"RAY_TMPDIR": str(folder)}
        done = workspace.run("release", spec, *options, environment=environment)
        assert done.returncode == 0, done.stderr
        assert (folder / "ray").exists() == (case == "sgd-2")
        assert_unseen(needles, folder, workspace.input)
    assert "DEBUG" in done.stderr
    assert_unseen(needles, workspace.folder, workspace.input, done.stdout, done.stderr)
    assert workspace.leftovers() == []
    assert len(list((workspace.folder / "checkpoints").glob("*"))) == (method == "sgd")
    assert workspace.card()["counts"] == {
        "documents": len(documents(lee_texts)) + len(canaries()),
        "rejected": 0,
    }


def test_what_the_search_would_find(workspace: Workspace, lee_texts: list[str]) -> None:
    # The negative control: a public vocabulary that has one of the words.
    corpus(workspace, lee_texts[:100])
    with (workspace.folder / "words.txt").open("a") as stream:
        stream.write("xylocanary\n")
    workspace.release_here(changes_of(workspace, "sgd", users=100, training={"steps": 1}))
    assert "xylocanary" in SECRETS
    assert "xylocanary" in vectors_of(workspace.output)
    with pytest.raises(AssertionError):
        assert_unseen({b"xylocanary"}, workspace.output, workspace.input)


@pytest.mark.parametrize(("method", "workers"), [("sgd", "1"), ("cooccurrence", "2")])
def test_a_failed_release_tells_nothing(
    workspace: Workspace, lee_texts: list[str], method: str, workers: str
) -> None:
    # Kills: text in the message of an error, in a staged file that is left.
    corpus(workspace, lee_texts[:100])
    damage(workspace)
    refused_without_a_word(workspace, changes_of(workspace, method), workers)


@pytest.mark.parametrize("method", METHODS)
def test_a_repeated_identifier_tells_nothing(
    workspace: Workspace, lee_texts: list[str], method: str
) -> None:
    # Kills: users' corpora in which a document counts twice, where an id column is named.
    corpus(workspace, lee_texts[:50])
    table = pq.read_table(workspace.input / "corpus.parquet")
    pq.write_table(pa.concat_tables([table, table]), workspace.input / "corpus.parquet")
    refused_without_a_word(workspace, changes_of(workspace, method), "1")
