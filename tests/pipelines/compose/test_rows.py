"""The graph of a transform: what its rows wait for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.pipeline import AppliedPTransform, PipelineVisitor
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from composed import Doc, written

from quietcorpus.beam import LearnEmbeddings, PrivatizeBags, ReleaseHistogram, SelectVocabulary
from quietcorpus.transforms.composed.release import AsRows

PRIVATE = {"private": {"epsilon": 1, "delta": 1e-4}}
GIVEN: dict[str, Any] = {"precision": 1, "epsilon": 1, "text": "body", "id": "number"}


def upstream(collection: beam.PCollection) -> set[str]:
    """Return the labels of all steps that a collection comes from."""
    step = collection.producer
    before = [*step.main_inputs.values(), *(side.pvalue for side in step.side_inputs)]
    found = {step.full_label}
    return found.union(*(upstream(one) for one in before if isinstance(one, beam.PCollection)))


class _Waiting(PipelineVisitor):
    """Collects the steps that give rows."""

    def __init__(self) -> None:
        self.found: list[AppliedPTransform] = []

    def visit_transform(self, node: AppliedPTransform) -> None:
        if isinstance(getattr(node.transform, "fn", None), AsRows):
            self.found.append(node)


@pytest.mark.parametrize(
    ("name", "tables"), [("bags", 3), ("histogram", 1), ("vocabulary", 1), ("embeddings", 1)]
)
def test_rows_wait_for_every_check(name: str, tables: int) -> None:
    # Kills: rows that wait for one check alone, which no run shows where the engine happens to make
    # the other one first.
    make = {
        "bags": lambda: PrivatizeBags(
            "t", **GIVEN, vocabulary=PRIVATE, compression={"method": "none"}
        ),
        "histogram": lambda: ReleaseHistogram("t", **GIVEN, vocabulary=PRIVATE),
        "vocabulary": lambda: SelectVocabulary("t", **GIVEN, delta=1e-4),
        "embeddings": lambda: LearnEmbeddings(
            "t",
            user="product",
            users=10**6,
            epsilon=4,
            delta=1e-7,
            vocabulary={"private": {"epsilon": 1, "delta": 1e-8, "words": 9}},
            text="body",
            id="number",
        ),
    }[name]
    pipeline = beam.Pipeline()
    pipeline | beam.Create([Doc(1, "a", "b", "c")]) | "used" >> make()
    waiting = _Waiting()
    pipeline.visit(waiting)
    assert len(waiting.found) == tables
    released = 0
    for node in waiting.found:
        checks, *once = node.side_inputs
        labels = " ".join(upstream(checks.pvalue))
        assert "used/unique ids/" in labels
        assert "used/refuse copies" in labels
        released += sum("used/each once" in " ".join(upstream(one.pvalue)) for one in once)
    assert released == (name == "bags")  # rows of documents, which are compared with those read


def test_transforms_share_an_input(tmp_path: Path) -> None:
    # Kills: a graph in which the local engine fuses a step that rows wait for with one that waits
    # for rows, and so never comes to an end; seen with a public vocabulary and no histogram.
    (tmp_path / "vocabulary.txt").write_text("fires\nreport\n")
    public = {"vocabulary": {"public": str(tmp_path / "vocabulary.txt")}}
    bags = PrivatizeBags("t", **GIVEN, **public, compression={"method": "none"})
    counted = ReleaseHistogram("t", **GIVEN, **public)
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        rows = pipeline | beam.Create([Doc(n, "the report", "b", "c") for n in range(9)])
        found = {"bags": (rows | bags).rows, "terms": (rows | counted).rows}
        for name, output in found.items():
            numbers = output | f"count {name}" >> beam.combiners.Count.Globally()
            numbers | f"write {name}" >> beam.io.WriteToText(str(tmp_path / name))
    assert written(tmp_path, "bags") == [9]
    assert written(tmp_path, "terms") == [2]
