"""Releases with an index of rescaled vectors: what cards say of epsilon, and what commands take."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from card_schema import assert_valid

from quietcorpus.pipelines.card.verify import verify

if TYPE_CHECKING:
    from tests.conftest import Workspace

GOOD = ["4 2", "alpha 1 0.5", "beta -1 2", "gamma 0.25 -3", "delta 2 1"]


@pytest.mark.slow
def test_a_card_says_that_distances_are_rescaled(
    workspace: Workspace, words: Callable[..., dict[str, Any]]
) -> None:
    # Kills: a map that the card does not name, distances before it, a README that is silent.
    (workspace.folder / "v.txt").write_text("".join(f"{line}\n" for line in GOOD))
    for name, options in (("plain", ()), ("mapped", ("--rescale", "covariance:lambda=0.5"))):
        done = workspace.run(
            *("index", "build", "v.txt", "--provenance", "public", "--output", name, *options)
        )
        assert done.returncode == 0, done.stderr
    workspace.parquet({"text": ["alpha beta", "gamma delta"]})
    index = str(workspace.folder / "mapped")
    workspace.release(words(index=index, epsilon=2))
    card = workspace.card()
    assert_valid(card)
    verify(str(workspace.output))
    assert card["meaning"]["rescaled"] == {"by": "covariance", "lambda": "1/2"}
    stated, plain = (
        json.loads((workspace.folder / name / "manifest.json").read_text())["distances"]
        for name in ("mapped", "plain")
    )
    assert stated["euclidean"]["mean"] != plain["euclidean"]["mean"]
    assert card["meaning"]["mean_distance"] == float(stated["euclidean"]["mean"])
    readme = (workspace.output / "README.md").read_text()
    assert "The index's vectors were rescaled by covariance (lambda 1/2)." in readme
