"""The card of releases of noisy means; those of candidates are in tests/pipelines/card."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tampering import DATA, refused, rewrite

from quietcorpus.pipelines.card.verify import verify

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.mark.slow
def test_a_candidate_is_no_column_of_noisy_means(
    workspace: Workspace, sentences: Callable[..., dict[str, Any]]
) -> None:
    # Kills: a column that only one of the mechanisms releases, asked of both, or let through
    # because another mechanism has it.
    workspace.json_lines(["Police found him. The river rose."] * 40)
    workspace.release_here(sentences(mechanism="truncation", utility=...))
    assert [file.path for file in verify(str(workspace.output)).files] == [DATA]
    rewrite(workspace.output, DATA, lambda t: t.append_column("candidate", pa.array([2] * 40)))
    assert "does not account for: candidate" in refused(workspace.output)
