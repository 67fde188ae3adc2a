"""Made-up corpora of audits: what one user has is nowhere together, and no noise is in the sums."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quietcorpus.mechanisms.bags.histogram import Histogram
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.users.clipped_sum import ClippedSum
from quietcorpus.mechanisms.votes.pure_votes import PureVotes
from quietcorpus.mechanisms.votes.votes import Votes
from quietcorpus.pipelines.audit import built
from quietcorpus.pipelines.kinds.histogram import checks as histogram
from quietcorpus.pipelines.kinds.public_texts import checks as public_texts
from quietcorpus.pipelines.kinds.user_histogram import user_changes
from quietcorpus.pipelines.kinds.word_embeddings.spec import WordEmbeddingsSpec
from quietcorpus.pipelines.runners.engine import Engine
from quietcorpus.pipelines.terminal.progress import Observer, Steps

SPEC = WordEmbeddingsSpec.model_validate(
    {
        **{"kind": "word-embeddings", "method": "cooccurrence", "user": "by", "users": 1000},
        **{"epsilon": 50, "delta": 1e-5, "vocabulary": {"public": "nowhere"}},
    }
)


class _Bundles(beam.DoFn):
    def process(self, element: int) -> Iterator[tuple[int, int]]:
        yield threading.get_ident(), element


def test_documents_of_a_user_lie_apart(tmp_path: Path) -> None:
    # Kills: one file, one split, one type or spelling of users' names, a name that two write alike.
    rows = [{built.TEXT: str(number), "by": built.user(7)} for number in range(30)]
    job = built._job(SPEC, rows, str(tmp_path / "corpus"), ReleaseKey.fresh())
    assert len(job.plan.splits) == 9
    files = sorted((tmp_path / "corpus-in").iterdir())
    types = [pq.read_schema(file).field("by").type for file in files]
    assert types == [pa.int64(), pa.large_string(), pa.float64()]
    alike = pa.array([float(built.user(7))]).cast(pa.string()).to_pylist()
    assert alike != [built.user(7)]
    names = {name for file in files for name in pq.read_table(file)["by"].to_pylist()}
    assert names == {int(built.user(7)), f"{built.user(7)}.0", float(built.user(7))}


def test_a_job_has_several_bundles(tmp_path: Path) -> None:
    # Kills: one bundle, in which a bound on each would be a bound on all.
    def build(pipeline: beam.Pipeline) -> None:
        seen = pipeline | beam.Create(range(8)) | beam.ParDo(_Bundles())
        first = seen | beam.Keys() | beam.Map(str)
        first | beam.io.WriteToText(str(tmp_path / "threads"))

    Engine(built._BUNDLES, 1).run(build, Observer(0, Steps(1, bar=False)))
    lines = [line for file in tmp_path.glob("threads*") for line in file.read_text().split()]
    assert len(lines) == 8
    assert len(set(lines)) > 1


@pytest.mark.parametrize(
    ("mechanism", "silence"),
    [
        (Votes(2, Fraction(1), Fraction(1, 10**6)), public_texts._silent),
        (PureVotes(2, Fraction(1)), public_texts._silent),
        (ClippedSum(Fraction(1)), lambda own: built.silent(own, user_changes.SilentSum)),
        (Histogram(3, Fraction(1)), lambda own: built.silent(own, histogram._Silent)),
    ],
    ids=lambda own: type(own).__name__,
)
def test_a_silent_mechanism_is_the_same_but_for_its_noise(
    mechanism: object, silence: Callable[[Any], object]
) -> None:
    # Kills: a mechanism of other parameters in place of the one that is audited.
    silenced = silence(mechanism)
    assert isinstance(silenced, type(mechanism))
    assert vars(silenced).items() >= {
        (name, getattr(mechanism, name))
        for name in mechanism.__dataclass_fields__  # type: ignore[attr-defined]
    }
