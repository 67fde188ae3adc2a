"""Canaries in releases that a cluster makes."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import pytest
from machine import SURE
from running_clusters import KEPT

from quietcorpus.pipelines.audit.inputs import made_up_words

if TYPE_CHECKING:
    from running_clusters import Cluster

    from tests.conftest import Workspace

pytestmark = pytest.mark.nightly  # the copy is released as any corpus, by the command's options


@pytest.mark.parametrize("cluster", ["spark"], indirect=True)
def test_a_cluster_releases_the_copy(cluster: Cluster, loopback: Workspace) -> None:
    # Kills: a copy that workers do not reach, options of the engine that are not passed on. At
    # epsilon 1, 146 of 200 guesses are to be right; by chance 100 are, seven deviations below.
    loopback.json_lines(["quiet world", ""])
    words = list(itertools.islice(made_up_words(), 400))
    (loopback.folder / "words.txt").write_text("\n".join(words))
    vocabulary = {"public": "words.txt"}
    block = {"kind": "histogram", "precision": 2, "epsilon": 1, "vocabulary": vocabulary}
    spec = str(loopback.spec({"mechanism": block}))
    given = ("--canaries", "400", "--runs", "1", "--work", "private", "--output", "found")
    sure = ("--confidence", str(SURE))
    done = loopback.run("canaries", spec, *given, *sure, *cluster.options, KEPT)
    assert done.returncode == 0, done.stderr
    found = json.loads((loopback.folder / "found" / "canaries.json").read_text())
    assert found["verdict"] == "passed"
    assert found["runs"][0]["right"] > 100
    assert [path for path in (loopback.folder / "private").rglob("*") if path.is_file()] == []
