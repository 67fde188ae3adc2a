"""Candidates and a release of sentence embeddings where neither PyTorch nor Ray is installed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest
from machine import without
from sentence_releases import INPUT, corpus

if TYPE_CHECKING:
    from tests.conftest import Workspace

pytestmark = pytest.mark.slow


def test_from_public_texts_to_a_release(workspace: Workspace, lee_texts: list[str]) -> None:
    # Kills: a step between them that imports PyTorch or asks for Ray, a runtime of which the card
    # says nothing, two workers that embed otherwise than one; the text or the vector of another
    # candidate.
    lacking = without(workspace, "torch", "sentence_transformers", "transformers", "ray")
    workspace.parquet({"text": lee_texts[:150]}, "public.parquet")

    def run(*arguments: str) -> str:
        done = workspace.run(*arguments, environment=lacking, fresh=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(
        *("index", "build-candidates", "input/public.parquet", "--output", "candidates"),
        *("--provenance=public", "--candidates=40", "--clusters=4", "--projections=20"),
        *("--least-sentences=7", "--most-sentences=5", "--keep-text"),
    )
    named = pq.ParquetFile(workspace.folder / "candidates" / "documents.parquet").read()
    texts = named["text"].to_pylist()
    assert set(texts) <= set(lee_texts[:150])
    recoded = np.load(workspace.folder / "candidates" / "recoded.npy")
    corpus(workspace, lee_texts[150:162])
    mechanism = {"kind": "sentence-embeddings", "mechanism": "deep-candidate"}
    mechanism |= {"candidates": "candidates", "epsilon": 10, "include": ["text", "recoded"]}
    made = []
    for workers in (1, 2):
        output = f"released/by-{workers}"
        changes = {"input": INPUT, "mechanism": mechanism, "output": output}
        run("release", str(workspace.spec(changes)), f"--workers={workers}")
        run("verify", output)
        folder = workspace.folder / output
        made.append({path.name: path.read_bytes() for path in (folder / "data").iterdir()})
        rows = workspace.rows(folder)
        assert all(row["text"] == texts[row["candidate"]] for row in rows)
        assert len({row["text"] for row in rows}) > 1
        assert all(row["recoded"] == recoded[row["candidate"]].tolist() for row in rows)
        card = json.loads((folder / "release.json").read_text())
        assert card["mechanism"]["encoder_software"].startswith("onnxruntime ")
        assert card["mechanism"]["encoder_precision"] == "float32"
        readme = (folder / "README.md").read_text()
        assert "its `text`: a public document's, not the document's own, and `recoded`" in readme
    assert made[0] == made[1]
