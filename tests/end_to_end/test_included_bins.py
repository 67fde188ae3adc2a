"""`include: [bins]`: a row holds what the mechanism released, beside what is made from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from tests.conftest import Workspace

DOCUMENTS, BINS = 3000, 3
COMPRESSED: dict[str, Any] = {
    "mechanism.compression": {"method": "frequency", "size": BINS},
    "mechanism.histogram_epsilon": 2,
}


@pytest.fixture
def workspace(workspace: Workspace) -> Workspace:
    """A workspace whose documents are of two words, some of none."""
    workspace.parquet(
        {
            "case": list(range(DOCUMENTS)),
            "text": ["quiet " * (n % 5) + "world " * (n % 3) for n in range(DOCUMENTS)],
        },
        row_group_size=1100,
    )
    return workspace


def released(workspace: Workspace, changes: dict[str, Any]) -> list[dict[str, Any]]:
    own = {"input": {"path": "input/*.parquet", "id": "case", "keep": ["case"]}}
    workspace.release(own | changes)
    rows = pq.read_table(workspace.output / "data").to_pylist()
    assert len(rows) == DOCUMENTS
    return sorted(rows, key=lambda row: row["id"])


@pytest.mark.parametrize("changes", [{}, COMPRESSED], ids=["every term", "compressed"])
def test_the_rest_of_a_row_is_made_from_its_bins(
    workspace: Workspace, changes: dict[str, Any]
) -> None:
    # Kills: bins of another row (they are shuffled with it), other noise than the counts', bins
    # that are clipped, or numbered otherwise than the map.
    rows = released(workspace, changes | {"mechanism.include": ["bins"]})
    bins = np.array([row["bins"] for row in rows])
    terms = pq.read_table(workspace.output / "vocabulary.parquet").num_rows
    of = (
        pq.read_table(workspace.output / "compression.parquet")["bin"].to_numpy()
        if changes
        else np.arange(terms)
    )
    assert bins.shape == (DOCUMENTS, of.max() + 1)
    assert bins.min() < 0
    for row, own in zip(rows, bins, strict=True):
        counted = np.bincount(of[row["terms"]], row["counts"], len(own))
        assert counted.tolist() == np.maximum(own, 0).tolist()
    # At rate 2 a value has a deviation of .6: a sum over all documents is 5 of them (sqrt(3000)
    # times .6) off with a probability below 1e-6.
    true = sum(n % 5 + n % 3 for n in range(DOCUMENTS))
    assert abs(bins.sum() - true) < 5 * 0.602 * np.sqrt(bins.size)
    verified = workspace.run("verify", "released/out")
    assert verified.returncode == 0, verified.stderr


def test_they_cost_nothing_and_change_nothing(workspace: Workspace) -> None:
    # Kills: a second draw for the bins, and a card that does not say that they are there.
    without = released(workspace, COMPRESSED)
    card = workspace.card()
    assert "include" not in card["mechanism"]
    workspace.output.rename(workspace.folder / "without")
    rows = released(workspace, COMPRESSED | {"mechanism.include": ["bins"]})
    assert [{k: v for k, v in row.items() if k != "bins"} for row in rows] == without
    own = workspace.card()
    assert own["mechanism"].pop("include") == ["bins"]
    assert own["mechanism"] == card["mechanism"]
    assert own["budget"] == card["budget"]
    assert "`bins`, the noisy count of every bin" in (workspace.output / "README.md").read_text()
