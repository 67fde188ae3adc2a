"""The release opens in the tools that people have, with the documented columns and types."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds

if TYPE_CHECKING:
    from tests.conftest import Workspace

DOCUMENTS = 400


def release(workspace: Workspace) -> str:
    """A release with kept columns and a map; where it is."""
    workspace.parquet(
        {
            "case": [f"case-{i:05d}" for i in range(DOCUMENTS)],
            "product": pa.array(["card", "loan"] * (DOCUMENTS // 2)).dictionary_encode(),
            "year": pa.array(range(DOCUMENTS), pa.int16()),
            "text": ["quiet world " * (i % 5) for i in range(DOCUMENTS)],
        },
        row_group_size=100,
    )
    workspace.release(
        {
            "input": {
                "path": "input/*.parquet",
                "id": "case",
                "keep": ["product", "year"],
            },
            "mechanism.compression": {"method": "frequency", "size": 3},
            "mechanism.histogram_epsilon": 2,
        }
    )
    return str(workspace.output)


def test_a_frame_of_polars_comes_out_as_it_went_in(workspace: Workspace) -> None:
    # Kills: an exit of 1 with lines of pyarrow, of whose types Polars writes those it cannot take.
    frame = pl.DataFrame(
        {
            "text": ["quiet world"] * 60,
            "key": [f"k{number}" for number in range(60)],
            "product": pl.Series(["card", None] * 30, dtype=pl.Categorical),
            "level": pl.Series(["high", "low"] * 30, dtype=pl.Enum(["low", "high"])),
            "note": [None if n % 3 else f"a string of view {n}" for n in range(60)],
            "tags": pl.Series([["a", None]] * 60, dtype=pl.List(pl.Categorical)),
            "vector": pl.Series([[n, n] for n in range(60)], dtype=pl.Array(pl.Float32, 2)),
            "wide": pl.Series([n * 10**30 for n in range(60)], dtype=pl.Int128),
        }
    )
    path = workspace.folder / "input" / "frame.arrow"
    path.parent.mkdir(exist_ok=True)
    frame.write_ipc(path)
    kept = ["product", "level", "note", "tags", "vector"]
    workspace.release({"input": {"path": "input/*.arrow", "id": "key", "keep": ["key", *kept]}})
    released = pl.read_parquet(f"{workspace.output}/data/*.parquet").sort("id")
    frame = frame.sort("key")
    for name, given in zip(("id", *kept), ("key", *kept), strict=True):
        assert released[name].to_list() == frame[given].to_list(), name


def test_rows_of_a_release(workspace: Workspace) -> None:
    rows = ds.dataset(f"{release(workspace)}/data").to_table()
    ids = rows["id"].to_pylist()
    assert all(re.fullmatch("[0-9a-f]{32}", value) for value in ids)
    assert len(set(ids)) == DOCUMENTS
    # Rows are sorted by ids that tell nothing of the input's order: its rank correlation over 400
    # rows is beyond 4.9 / sqrt(399) with probability 1e-6. In input order it is 1.
    order = rows["year"].to_numpy()
    assert sorted(order) == list(range(DOCUMENTS))
    assert abs(np.corrcoef(order, np.arange(DOCUMENTS))[0, 1]) < 4.9 / np.sqrt(DOCUMENTS - 1)
    for terms, counts in zip(rows["terms"].to_pylist(), rows["counts"].to_pylist(), strict=True):
        assert terms == sorted(set(terms))
        assert len(terms) == len(counts)
        assert all(count > 0 for count in counts)


def test_allow_listed_ids_are_the_inputs(workspace: Workspace) -> None:
    workspace.json_lines([{"text": "quiet", "key": "a-1"}, {"text": "world", "key": 2}])
    workspace.release({"input.id": "key", "input.keep": ["key"]})
    assert [row["id"] for row in workspace.rows()] == ["2", "a-1"]


def test_bins_are_exact_at_high_epsilon(workspace: Workspace) -> None:
    # At epsilon / N = 50 all noise is zero but for a chance of 1e-20: every bin's count is true.
    generator = np.random.default_rng(7)
    words = (workspace.folder / "vocabulary.txt").read_text().split()
    drawn = generator.choice(len(words), (300, 12), p=np.arange(1, 9) / 36)
    workspace.json_lines(
        {"text": " ".join(words[word] for word in row), "key": str(number)}
        for number, row in enumerate(drawn)
    )
    workspace.release(
        {
            "input.id": "key",
            "input.keep": ["key"],
            "mechanism.precision": 1,
            "mechanism.epsilon": 50,
            "mechanism.histogram_epsilon": 50,
            "mechanism.compression": {"method": "frequency", "size": 3},
        }
    )
    output = workspace.output
    bins = pl.read_parquet(output / "compression.parquet").sort("term_id")["bin"].to_numpy()
    weights = pl.read_parquet(output / "vocabulary.parquet").sort("term_id")["weight"].to_numpy()
    truth = np.bincount(drawn.ravel(), minlength=len(words))
    assert (weights == truth).all()
    released = np.zeros((len(drawn), len(words)), dtype=np.int64)
    for row in workspace.rows():
        released[int(row["id"]), row["terms"]] = row["counts"]
    for document, row in enumerate(drawn):
        exact = np.bincount(bins[row], minlength=3)
        assert (np.bincount(bins, weights=released[document], minlength=3) == exact).all()
    # Terms are drawn within their bin by the histogram, so the totals follow the truth: binomial
    # deviations below sqrt(3600 / 4) = 30 each, and 5 of them for alpha = 1e-6 over 8 terms.
    assert np.abs(released.sum(axis=0) - truth).max() < 5.2 * 30
    assert np.corrcoef(released.sum(axis=0), truth)[0, 1] > 0.9
