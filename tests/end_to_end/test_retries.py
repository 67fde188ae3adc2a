"""One draw per document and release: retries repeat it, anything else draws anew."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
from apache_beam.runners.portability.fn_api_runner import fn_runner
from machine import MASTER_KEY, OTHER_KEY
from retries import FailsOnce, run_on, tables

import quietcorpus.pipelines.jobs.job
from quietcorpus.pipelines.schema.loading import load_spec

if TYPE_CHECKING:
    from tests.conftest import Workspace

CHANGES: dict[str, Any] = {
    "input.path": "input/*",
    "mechanism.compression": {"method": "random", "size": 3},
    "mechanism.histogram_epsilon": 2,
}


@pytest.fixture
def several_files(workspace: Workspace) -> Workspace:
    """A corpus of six splits and as many shards; equal documents among them."""
    (workspace.input / "corpus.jsonl").unlink()
    words = ["quiet", "hello", "alpha", "unheard", "beta gamma"]
    for number in range(4):
        texts = [f"{words[i % 5]} {words[(i * number) % 5]}" for i in range(40)]
        lines = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
        if number % 2:
            (workspace.input / f"{number}.jsonl.gz").write_bytes(gzip.compress(lines))
        else:
            (workspace.input / f"{number}.jsonl").write_bytes(lines)
    workspace.parquet({"text": ["quiet island"] * 40}, "4.parquet")
    with pa.ipc.new_stream(str(workspace.input / "5.arrow"), pa.schema({"text": pa.string()})) as s:
        s.write_table(pa.table({"text": ["quiet island", "hello"] * 20}), max_chunksize=15)
    return workspace


PORTABLE = ["--runner=PortableRunner", "--job_endpoint=embed", "--environment_type=LOOPBACK"]


@pytest.mark.slow
def test_the_engine_does_not_matter(several_files: Workspace) -> None:
    # One, two and three local processes, and Beam's portable runner, the road to every cluster.
    released = []
    for name, options in [*((n, ["--workers", n]) for n in "123"), ("portable", PORTABLE)]:
        several_files.release(CHANGES | {"output": f"released/{name}"}, *options)
        released.append(tables(several_files.output.with_name(name)))
    assert len([path for path in released[0] if path.startswith("data/")]) == 6
    assert {"vocabulary.parquet", "compression.parquet"} < set(released[0])
    assert all(tables == released[0] for tables in released)
    # The negative control: another key, or none, draws anew.
    several_files.environment["QUIETCORPUS_MASTER_KEY"] = OTHER_KEY
    several_files.release(CHANGES | {"output": "released/other"})
    other = tables(several_files.output.with_name("other"))
    assert all(other[path] != content for path, content in released[0].items())


def test_retried_and_repeated_bundles_do_not_matter(
    several_files: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(several_files.folder)
    monkeypatch.setenv("QUIETCORPUS_MASTER_KEY", MASTER_KEY)
    spec = load_spec(str(several_files.spec(CHANGES)))
    once = run_on(fn_runner.FnApiRunner(), spec, several_files.folder / "once")
    twice = run_on(fn_runner.FnApiRunner(bundle_repeat=1), spec, several_files.folder / "twice")
    monkeypatch.setattr(quietcorpus.pipelines.jobs.job, "ReleaseShards", FailsOnce)
    staging = several_files.folder / "retried"
    retried = run_on(BundleBasedDirectRunner(), spec, staging)
    assert len(list(staging.glob("failed-*"))) == 2
    assert once == twice == retried


TERMS = 8
EACH = 40
DOCUMENTS = 2500


def noise(workspace: Workspace, name: str, **changes: Any) -> npt.NDArray[np.int64]:
    """The noise that equal documents got, by the documents' order: (DOCUMENTS, TERMS).

    Every term occurs so often that no noisy count is clipped (probability below 1e-12 in all).
    """
    spec = {
        "input.id": "number",
        "input.keep": ["number"],
        "output": f"released/{name}",
        "mechanism.precision": 1,
        "mechanism.epsilon": 1,
    }
    workspace.release(spec | {key.replace("__", "."): value for key, value in changes.items()})
    rows = sorted(workspace.rows(workspace.output.with_name(name)), key=lambda r: int(r["id"]))
    assert all(row["terms"] == list(range(TERMS)) for row in rows)
    return np.array([row["counts"] for row in rows]) - EACH


def correlation(first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]) -> float:
    return float(np.corrcoef(first.ravel(), second.ravel())[0, 1])


# For independent noise a correlation over n pairs is normal with deviation 1 / sqrt(n), but for
# terms of order 1/n; |r| passes 4.9 deviations with probability below 1e-6. Noise that shares its
# uniform bits has r near 1, half of it near 0.5, and 0.035 of shared variance is still found.
BOUND = 4.9 / np.sqrt(DOCUMENTS * TERMS)


@pytest.mark.slow
def test_noise_is_drawn_anew(workspace: Workspace) -> None:
    text = " ".join(["alpha beta delta gamma hello island quiet world"] * EACH)
    workspace.json_lines({"text": text, "number": number} for number in range(DOCUMENTS))
    first = noise(workspace, "first")
    # Equal documents at different positions, and different terms.
    assert abs(correlation(first[:-1], first[1:])) < BOUND
    assert abs(correlation(first[:, :-1], first[:, 1:])) < BOUND
    # Another release id, another epsilon, another precision at the same rate.
    for name, changes in {
        "release": {"release": "other"},
        "epsilon": {"mechanism__epsilon": 1.5},
        "precision": {"mechanism__precision": 2, "mechanism__epsilon": 2},
    }.items():
        assert abs(correlation(first, noise(workspace, name, **changes))) < BOUND
    # The negative control: the same again.
    assert (first == noise(workspace, "again")).all()
    # The right noise: E|Z| = 2 a / (1 - a^2) at a = exp(-1); its relative deviation is below 1 %.
    a = np.exp(-1)
    assert np.abs(first).mean() == pytest.approx(2 * a / (1 - a**2), rel=0.05)
