"""A kind of release that is added from outside, by the registry alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from machine import SURE

import quietcorpus as qc
from quietcorpus.evaluation.audits.findings import Exact, Sampled
from quietcorpus.indexes.tokens.tokenizer import tokenize
from quietcorpus.mechanisms.accounting.guarantees import LimitedPrecision, Spending
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.noise.geometric import DenseNoise
from quietcorpus.pipelines import registry
from quietcorpus.pipelines.card import model as card
from quietcorpus.pipelines.card.mechanism import FileFormat, Mechanism, Promise
from quietcorpus.pipelines.card.parameters import LimitedPrecisionParameters
from quietcorpus.pipelines.jobs.job import Job, release_documents
from quietcorpus.pipelines.jobs.kind import Account, Kind
from quietcorpus.pipelines.kinds.histogram.checks import exact_law
from quietcorpus.pipelines.registry import KindParts
from quietcorpus.pipelines.schema.mechanism import MechanismSpec
from quietcorpus.pipelines.schema.values import Epsilon
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.privatizers.rows import Released, document_addresses, identified
from quietcorpus.transforms.reading.documents import Documents
from quietcorpus.transforms.shards import Tally, Written

if TYPE_CHECKING:
    from tests.conftest import Workspace

KIND = "lengths"
EPSILON = Fraction(2)
HERE = __name__
PARTS = KindParts(
    block=f"{HERE}:LengthsSpec",
    mechanism=f"{HERE}:LengthsMechanism",
    resolve=f"{HERE}:LengthsKind.resolve",
    audits=f"{HERE}:audits",
    columns=("length",),
)


class LengthsSpec(MechanismSpec):
    """The block of the spec: a release of how many words each document has, under noise."""

    kind: Literal["lengths"]
    epsilon: Epsilon


class LengthsMechanism(Mechanism):
    """The block of the card."""

    kind: Literal["lengths"]
    epsilon: float

    @property
    def promise(self) -> Promise:
        return Promise(LimitedPrecisionParameters)

    @property
    def files(self) -> Mapping[str, FileFormat]:
        return {"data": FileFormat("`length`, the noisy number of words", ("id", "length"))}


class LengthsPrivatizer:
    """Adds noise of the two-sided geometric law to the number of a document's words."""

    row_group_rows = documents_at_once = 1024

    def __init__(self, epsilon: Fraction, key: ReleaseKey) -> None:
        self._noise = DenseNoise(epsilon, 1)
        self._stream = key.stage(KIND, 1, epsilon=epsilon)

    def release(self, documents: Documents) -> Released:
        tokens = tokenize(documents.texts)
        offsets = np.asarray(tokens.offsets)
        lengths = np.diff(offsets).astype(np.int32)
        addresses = document_addresses(
            self._stream, documents, np.arange(len(lengths) + 1), lengths
        )
        noisy = lengths + self._noise.sample(self._stream, addresses)[:, 0]
        columns = {"length": pa.array(noisy, pa.int64())}
        return Released(identified(self._stream, addresses, columns), int(lengths.sum()), True)

    def take(self, rows: pa.Table, order: Any) -> pa.Table:
        return rows.take(pa.array(order))


class LengthsParameters(NamedTuple):
    """The parameters that each worker makes its privatizer from."""

    epsilon: Fraction

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return (pa.field("length", pa.int64()),)

    def privatizer(self, key: ReleaseKey, _: Any = None) -> LengthsPrivatizer:
        return LengthsPrivatizer(self.epsilon, key)


@dataclass(frozen=True)
class LengthsKind(Kind):
    """The job."""

    epsilon: Fraction
    passes = 1
    computing = ""
    has_documents = True
    artefacts: tuple[card.UsedArtefact, ...] = ()

    @classmethod
    def resolve(cls, spec: LengthsSpec, _: int) -> LengthsKind:
        return cls(spec.epsilon)

    @property
    def cost(self) -> LimitedPrecision:
        return LimitedPrecision(1, self.epsilon, Fraction(0))

    def build(self, pipeline: beam.Pipeline, job: Job) -> None:
        release_documents(pipeline, job, LengthsParameters(self.epsilon))

    def check(self, tally: Tally) -> None:
        if not tally.known:
            raise InputError("input: no document has a word")

    def account(self, files: Sequence[Written]) -> Account:
        limits = ["the words themselves are not released, and nothing says that they are not"]
        return Account([Spending("documents", self.cost)], self.cost, {}, limits)


def audits(kind: LengthsKind) -> list[Exact | Sampled]:
    return [exact_law("lengths: the noise's law", kind.epsilon, 1, DenseNoise(kind.epsilon, 1))]


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))
    registry.register(KIND, PARTS)


@pytest.fixture
def spec(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(workspace.folder)
    return {
        "release": "lengths-1",
        "input": {"path": "input/corpus.jsonl"},
        "output": "released/lengths",
        "mechanism": {"kind": KIND, "epsilon": 2},
    }


def test_a_kind_from_outside_is_released_verified_and_described(spec: dict[str, Any]) -> None:
    # Kills: a list of kinds beside the registry, in the spec, the card, the job or the check.
    made = qc.release(spec)
    assert qc.verify("released/lengths") == made
    assert made.mechanism == LengthsMechanism(kind=KIND, epsilon=2.0)
    assert made.budget.total.epsilon_exact == "2"
    assert made.guarantee.not_protected[-3].startswith("the words themselves")
    readme = Path("released/lengths/README.md").read_text()
    assert "`length`, the noisy number of words" in readme
    assert "| kind | lengths |" in readme
    lengths = pq.read_table("released/lengths/data", columns=["length"])["length"].to_pylist()
    assert len(lengths) == 4


def test_its_audit_runs_and_can_fail(spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: an audit of another kind in its place, or of none.
    assert qc.audit(spec, confidence=SURE)["passed"]
    real = DenseNoise
    monkeypatch.setattr(f"{HERE}.DenseNoise", lambda rate, size: real(2 * rate, size))
    assert not qc.audit(spec)["passed"]


def test_it_may_have_no_canaries(spec: dict[str, Any]) -> None:
    with pytest.raises(qc.InputError, match="canaries: there are none for the kind lengths"):
        qc.canaries(spec)


def test_its_keys_are_checked_like_all_others(spec: dict[str, Any]) -> None:
    for block, message in (
        ({"kind": KIND}, "mechanism.epsilon: missing"),
        ({"kind": KIND, "epsilon": 1, "delta": 1}, "mechanism.delta: unknown key"),
        ({"kind": "length", "epsilon": 1}, "'length' is not a kind, did you mean lengths?"),
    ):
        with pytest.raises(qc.InputError, match=message):
            qc.release(spec | {"mechanism": block})


def test_a_card_of_a_kind_that_is_not_registered_is_refused(
    spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    qc.release(spec)
    monkeypatch.delitem(registry._KINDS, KIND)
    with pytest.raises(
        qc.InputError, match="'lengths' is not a kind of release that is known here"
    ):
        qc.verify("released/lengths")


def test_a_name_is_taken_once() -> None:
    with pytest.raises(ValueError, match="bag-of-words is registered already"):
        registry.register("bag-of-words", PARTS)


@pytest.mark.parametrize("kind", registry.forms())
def test_every_part_of_a_kind_is_there(kind: str) -> None:
    # Kills: a part that was moved, which nothing but its use would show.
    for part in fields(KindParts):
        if part.name != "columns":
            assert callable(registry.part(kind, part.name))


def test_no_column_of_its_data_is_copied_from_the_input(spec: dict[str, Any]) -> None:
    # Kills: a kept column under the name of a released one, for a kind that is not listed here.
    kept = spec["input"] | {"keep": ["length"]}
    with pytest.raises(qc.InputError, match="'length' is a name that releases use themselves"):
        qc.release(spec | {"input": kept})


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("bag-of-words", {"include": ["bins"]}),
        ("words", {}),
        (
            "sentence-embeddings",
            {"mechanism": "deep-candidate", "dimensions": 2, "include": ["recoded"]},
        ),
        (KIND, {}),
    ],
)
def test_the_registry_has_the_columns_of_the_data(kind: str, values: dict[str, Any]) -> None:
    # Kills: a released column whose name a kept one may have.
    data = registry.part(kind, "mechanism").model_construct(**values).files["data"]
    assert data.columns == ("id", *registry._KINDS[kind].columns)
