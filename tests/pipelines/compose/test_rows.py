"""The graph of a transform: what its rows wait for."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.pipeline import AppliedPTransform, PipelineVisitor
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from composed import SEEN, Doc, as_documents, doc, run, written

from quietcorpus.beam import (
    LearnEmbeddings,
    PrivatizeBags,
    ReleaseHistogram,
    ReleaseUserHistogram,
    SelectVocabulary,
)
from quietcorpus.pipelines.jobs.notices import SAMPLE, doubts
from quietcorpus.transforms.composed.release_rows import AsRows
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.steps import DoubtKept

PRIVATE = {"private": {"epsilon": 1, "delta": 1e-4}}
GIVEN: dict[str, Any] = {"precision": 1, "epsilon": 1, "text": "body", "id": "number"}
OF_USERS: dict[str, Any] = {
    "user": "product",
    "users": 10**6,
    "epsilon": 4,
    "delta": 1e-7,
    "vocabulary": {"private": {"epsilon": 1, "delta": 1e-8, "words": 9}},
    "text": "body",
    "id": "number",
}
OF_DOCUMENTS = {key: own for key, own in OF_USERS.items() if not key.startswith("user")} | {
    "unit": "document",
    "documents": 10**6,
}


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
    ("name", "tables"),
    [
        *(("bags", 3), ("histogram", 1), ("vocabulary", 1)),
        *(("of users", 1), ("of documents", 1), ("embeddings", 1)),
    ],
)
def test_rows_wait_for_every_check(name: str, tables: int) -> None:
    # Kills: rows that wait for one check alone, which no run shows where the engine happens to make
    # the other one first.
    make = {
        "bags": lambda: PrivatizeBags(
            "t", **GIVEN, vocabulary=PRIVATE, compression={"method": "none"}, keep=["product"]
        ),
        "histogram": lambda: ReleaseHistogram("t", **GIVEN, vocabulary=PRIVATE),
        "vocabulary": lambda: SelectVocabulary("t", **GIVEN, delta=1e-4),
        "of users": lambda: ReleaseUserHistogram("t", **OF_USERS),
        "of documents": lambda: ReleaseUserHistogram("t", **OF_DOCUMENTS),
        "embeddings": lambda: LearnEmbeddings("t", **OF_USERS),
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
        assert ("used/look at kept fields" in labels) == (name == "bags")
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


KEPT = {
    "kept-addresses": ("e-mail addresses", "zqx{}@host.example"),
    "kept-text": ("free text", "they called me zqx{} times a day"),
}


def kept(reason: str, documents: int) -> list[dict[str, Any]]:
    """Rows with a kept field that must be accepted by this name."""
    return [doc(n, "the report", KEPT[reason][1].format(n)) for n in range(documents)]


def of_product(accept: Sequence[Any]) -> DoubtKept:
    """Return the step that looks at the field."""
    looks = partial(doubts, keep=["product"], accept=accept, key="t: keep")
    return DoubtKept(["product"], SAMPLE, looks)


def look_at(bundles: Iterable[Sequence[dict[str, Any]]], look: DoubtKept) -> None:
    """Give a worker's step these bundles."""
    for bundle in bundles:
        if bundle:
            list(look.process(as_documents(bundle)))
        list(look.finish_bundle())


@pytest.mark.parametrize("reason", KEPT)
def test_kept_fields_that_are_refused_unless_accepted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, reason: str
) -> None:
    # Kills: no look at kept fields; a look that only warns; rows that reach a sink before it; a
    # name that accepts another reason, or none; an error or a warning that quotes a value.
    (tmp_path / "vocabulary.txt").write_text("fires\nreport\n")
    public = {"vocabulary": {"public": str(tmp_path / "vocabulary.txt")}}
    given = GIVEN | public | {"compression": {"method": "none"}, "keep": ["product"]}
    looks, _ = KEPT[reason]
    other = next(name for name in KEPT if name != reason)
    with pytest.raises(Exception, match="PrivatizeBags") as raised:
        run(tmp_path, kept(reason, 40), PrivatizeBags("t", **given, accept=[other]))
    said = f"PrivatizeBags: keep: 'product' looks like {looks}, and would be released as it is; "
    remedy = f"drop it from the list, or accept it by name: `accept: [{reason}]`"
    assert said + remedy in str(raised.value)
    assert not (tmp_path / SEEN).exists()
    found = run(tmp_path, kept(reason, 40), PrivatizeBags("t", **given, accept=[reason]))
    assert len(found["rows"]) == 40
    assert f"'product' looks like {looks}, and will be released as it is" in caplog.text
    assert "zqx" not in str(raised.value) + caplog.text


@pytest.mark.parametrize("reason", KEPT)
@pytest.mark.parametrize(
    "sizes", [[0, 40], [1] * 40, [9, 31], [SAMPLE]], ids=["empty", "of one", "few", "whole"]
)
def test_kept_fields_in_bundles_of_any_size(reason: str, sizes: list[int]) -> None:
    # Kills: a look at a worker's first bundle alone, which may be empty or too small to tell; a
    # look that waits for more documents than there are.
    rows = iter(kept(reason, sum(sizes)))
    bundles = [[next(rows) for _ in range(size)] for size in sizes]
    with pytest.raises(InputError, match=f"^t: keep: 'product' looks like {KEPT[reason][0]}, "):
        look_at(bundles, of_product([]))


def test_a_look_at_kept_fields_ends_and_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    # Kills: a warning for every bundle; a look at every document of a corpus.
    look = of_product(["kept-addresses"])
    with caplog.at_level(logging.WARNING):
        look_at([kept("kept-addresses", SAMPLE // 2)] * 4, look)
    assert caplog.text.count("looks like e-mail addresses") == 1
    look_at([kept("kept-text", 40)], look)
