"""From a spec to a Beam graph, and one DoFn on one record of invented text.

    QUIETCORPUS_MASTER_KEY=$(openssl rand -hex 32) python examples/one_dofn.py

It follows `quietcorpus release` from the spec to the first record, and writes no release.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import apache_beam as beam

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.pipelines.environment.keys import WorkerKey, configured_master_key
from quietcorpus.pipelines.jobs.job import Job
from quietcorpus.pipelines.jobs.kind import prepare
from quietcorpus.pipelines.schema.loading import as_spec
from quietcorpus.transforms.histogram import _CountTerms
from quietcorpus.transforms.reading.sources import plan
from quietcorpus.transforms.shards import RejectLog, make_shards
from quietcorpus.transforms.staged import KEPT_NOWHERE
from quietcorpus.transforms.vocabulary import load

SPEC = """
release: trial
input: {path: corpus.jsonl}
output: released
mechanism: {kind: histogram, precision: 3, epsilon: 2, vocabulary: {public: words.txt}}
"""


def main() -> None:
    """Print the steps of a release's graph, and what one DoFn makes of one record."""
    Path("corpus.jsonl").write_text('{"text": "A fee, and a late fee"}\n')
    Path("words.txt").write_text("fee\nlate\nloan\n")
    Path("spec.yaml").write_text(SPEC)

    # The launcher: a checked spec, its kind, a plan of the corpus, and the key of the release.
    spec = as_spec("spec.yaml")
    kind = prepare(spec)
    planned = plan(spec.corpus)
    master = configured_master_key()
    assert master, "set QUIETCORPUS_MASTER_KEY"
    corpus = planned.corpus_digest(spec.corpus)
    key = ReleaseKey.derive(master, spec.release, corpus)

    # The graph: the kind builds it, and nothing runs.
    shards = make_shards(planned.splits, key.stage("shards", 1))
    source = WorkerKey(spec.release, corpus, key.fingerprint)
    pipeline = beam.Pipeline()
    kind.build(pipeline, Job(spec, planned, shards, source, "staging"))
    for step in pipeline.transforms_stack[0].parts:
        print(step.full_label)

    # A worker: one DoFn on one record. `process.__wrapped__` has no guard, so that an exception
    # keeps its message and its traceback, which may quote the text.
    counter = _CountTerms(spec.corpus, source, RejectLog(), None, KEPT_NOWHERE)
    words = load(kind.vocabulary.public, kind.vocabulary.tokenizer)
    (counts, parts), *_ = _CountTerms.process.__wrapped__(counter, planned.splits[0], words)
    print(dict(zip(words.terms.to_pylist(), counts.tolist(), strict=True)), "of the parts", parts)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        main()
