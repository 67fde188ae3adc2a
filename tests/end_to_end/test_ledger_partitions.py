"""A ledger's partitions, by the command line: what composes in parallel, and what adds up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from ledgers import PRECISION, opened, records, refusal, shown, spec, used
from machine import OTHER_KEY

if TYPE_CHECKING:
    from tests.conftest import Workspace


def test_documents_are_found_whatever_the_type_of_their_ids(workspace: Workspace) -> None:
    # Kills: 12345678901 and 12345678901.0 for two documents; pandas writes the second where an id
    # is missing in the same column.
    opened(workspace)
    ids = [12345678901 + number for number in range(4)]
    workspace.parquet({"text": ["hello"] * 4, "id": ids}, "day-1.parquet")
    workspace.parquet({"text": ["hello"] * 4, "id": [float(one) for one in ids]}, "day-2.parquet")
    for day in ("1", "2"):
        changes = spec(
            f"day-{day}",
            input={"path": f"input/day-{day}.parquet", "id": "id"},
            ledger={"path": "ledger", "partition": f"day-{day}"},
        )
        if day == "1":
            workspace.release(changes)
    said = refusal(workspace.run("release", str(workspace.spec(changes))))
    assert said.startswith("ledger.partition: 4 documents of day-2 are in day-1 as well (release")


@pytest.mark.slow
def test_partitions_compose_in_parallel_unless_they_share_documents(
    workspace: Workspace,
) -> None:
    # Kills: partitions added up, releases of no partition left out, documents in two of them, ids
    # that are compared under each release's own key.
    folder = opened(workspace)
    days = {"1": ["a", "b"], "2": ["c", "d"], "3": ["e", "b"]}
    for day, ids in days.items():
        records_of = [{"text": f"hello {name}", "id": name} for name in ids]
        workspace.json_lines(records_of, f"day-{day}.jsonl")

    def of(day: str, name: str = "") -> dict[str, Any]:
        return spec(
            name or f"day-{day}",
            input={"path": f"input/day-{day}.jsonl", "id": "id"},
            ledger={"path": "ledger", "partition": f"day-{day}"},
        )

    for day in ("1", "2"):
        workspace.release(of(day))
    assert used(workspace) == 4
    workspace.release(of("1", "day-1-again"))
    assert used(workspace) == 8
    everywhere = spec("all", input={"path": "input/day-?.jsonl"}, mechanism__epsilon=3)
    assert "would pass the cap of 10: 8 is used" in refusal(
        workspace.run("release", str(workspace.spec(everywhere)))
    )
    workspace.release(everywhere | {"mechanism.epsilon": 2})
    assert used(workspace) == 10
    said = refusal(workspace.run("release", str(workspace.spec(of("3")))))
    assert said.startswith("ledger.partition: 1 documents of day-3 are in day-1 as well (release")
    assert not (workspace.folder / "released/day-3").exists()
    assert workspace.leftovers() == []
    other_key = {"QUIETCORPUS_MASTER_KEY": OTHER_KEY}
    stranger = of("2", "stranger") | {"mechanism.epsilon": 1}
    said = refusal(workspace.run("release", str(workspace.spec(stranger)), environment=other_key))
    assert "under another master key" in said
    assert workspace.run("ledger", "verify", "ledger").returncode == 0
    (digests,) = folder.glob("identifiers/00000003-*.bin")
    digests.write_bytes(digests.read_bytes()[:-1] + b"?")
    assert "not the file that was recorded" in refusal(workspace.run("ledger", "verify", "ledger"))
    card = workspace.card(workspace.folder / "released/day-2")
    counted = [card["ledger"][key] for key in ("partition", "disjoint", "identifier")]
    assert counted == ["day-2", "compared", "id"]
    line = not_protected(workspace, "day-2")
    assert line.endswith("in common, and compares the ids of the column 'id'")
    assert (
        "compared by the ids of the column 'id'" in workspace.run("ledger", "show", "ledger").stdout
    )


def month(name: str, column: str | None, **changes: Any) -> dict[str, Any]:
    """A release of one month; both months have the same documents."""
    source = {"path": "input/corpus.jsonl"} | ({"id": column} if column else {})
    own = {"path": "ledger", "partition": name} | changes
    return spec(name, input=source, ledger=own)


@pytest.fixture
def cases(workspace: Workspace) -> Workspace:
    """Documents that two columns tell apart, each by values of its own."""
    workspace.json_lines([{"text": "hello", "case": f"c{n}", "row": f"r{n}"} for n in range(50)])
    return workspace


def not_protected(workspace: Workspace, name: str) -> str:
    """Return the card's sentence on documents that come back."""
    lines = workspace.card(workspace.folder / f"released/{name}")["guarantee"]["not_protected"]
    (found,) = (line for line in lines if "another partition" in line)
    return str(found)


@pytest.mark.parametrize(
    ("first", "second"), [(None, "case"), ("case", None), ("case", "row"), ("row", "case")]
)
def test_partitions_whose_ids_cannot_be_compared_are_refused(
    cases: Workspace, first: str | None, second: str | None
) -> None:
    # Kills: partitions that are taken for disjoint because no id of the one is one of the other,
    # when the other has none, or those of another column; a plan that does not say so.
    folder = opened(cases, PRECISION | {"epsilon": 100})
    cases.release(month("jan", first))
    path = str(cases.spec(month("feb", second)))
    foreseen = cases.run("ledger", "plan", path)
    for said in (foreseen.stdout.splitlines()[-1], refusal(cases.run("release", path))):
        assert "ledger.partition: other partitions " in said
        assert said.endswith("do the same, or leave ledger.partition out: the costs then add up")
        for column in filter(None, (first, second)):
            assert f"the column {column!r}" in said
    assert refusal(foreseen) == "ledger: feb would be refused"
    assert len(records(folder)) == 3
    assert not (cases.folder / "released/feb").exists()
    # What was given back fixes nothing, and what is of no partition can be of any sort.
    cases.release(month("all", second) | {"ledger": "ledger"})
    assert used(cases) == 8


def test_partitions_without_ids_add_up(cases: Workspace) -> None:
    # Kills: partitions that compose in parallel though nothing tells whether they share a
    # document; a plan or a table of another sum, or a card that says that ids were compared.
    opened(cases, PRECISION | {"epsilon": 4})
    cases.release(month("jan", None))
    path = str(cases.spec(month("feb", None)))
    foreseen = cases.run("ledger", "plan", path)
    for said in (foreseen.stdout, refusal(cases.run("release", path))):
        assert "epsilon 4 would pass the cap of 4: 4 is used, by jan" in said
    assert shown(cases)["partitions"] == {}
    assert shown(cases)["releases"][0]["disjoint"] == "unknown"
    card = cases.card(cases.folder / "released/jan")
    assert card["ledger"]["partition"] == "jan"
    assert card["ledger"]["disjoint"] == "unknown"
    line = not_protected(cases, "jan")
    assert line.endswith("nothing tells which do, and the ledger adds the partitions up")


def test_the_publisher_may_declare_that_no_document_comes_back(cases: Workspace) -> None:
    # Kills: a declaration that is not repeated by card, table and history, or that changes nothing.
    opened(cases, PRECISION | {"epsilon": 4})
    for name in ("jan", "feb"):
        cases.release(month(name, None, disjoint="declared"))
    assert used(cases) == 4
    assert set(shown(cases)["partitions"]) == {"jan", "feb"}
    assert {one["disjoint"] for one in shown(cases)["releases"]} == {"declared"}
    for command in ("show", "history"):
        assert (
            "declared to share no document, and nothing checked it"
            in cases.run("ledger", command, "ledger").stdout
        )
    assert cases.card(cases.folder / "released/feb")["ledger"]["disjoint"] == "declared"
    said = "the publisher declared that none does, and nothing checked it"
    assert said in not_protected(cases, "feb")
    assert said in (cases.folder / "released/feb/README.md").read_text()
    assert cases.run("ledger", "verify", "ledger").returncode == 0
    refused = refusal(cases.run("release", str(cases.spec(month("mar", "case")))))
    assert "declared to share no document, and nothing checked it" in refused
    undeclared = str(cases.spec(month("feb", None)))
    assert "other ledger" in refusal(cases.run("release", undeclared, "--if-exists=ok"))
