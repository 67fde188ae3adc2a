"""The identity of a run, by which it may finish what an equal one has begun."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from sentence_releases import Sentences

from quietcorpus.mechanisms.bags.bag_of_words import Accounting
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.pipelines.jobs.kind import Kind, prepare
from quietcorpus.pipelines.kinds.bag_of_words.job import BagOfWordsKind
from quietcorpus.pipelines.kinds.sentence_embeddings.job import SentencesKind
from quietcorpus.pipelines.release import existing as identities
from quietcorpus.pipelines.release.existing import TRIES, identify_run, persistently
from quietcorpus.pipelines.schema.loading import load_spec
from quietcorpus.pipelines.schema.spec import Spec
from quietcorpus.pipelines.storage.claims import MASTER_KEY, Run
from quietcorpus.pipelines.terminal.progress import Steps
from quietcorpus.transforms.errors import (
    InputError,
    NoisyOutcome,
    StageError,
    StoreUnavailable,
    Unavailable,
    WorkerLost,
)
from quietcorpus.transforms.reading.documents import Plan

if TYPE_CHECKING:
    from tests.conftest import Workspace


def test_what_encodes_is_part_of_a_runs_identity(
    workspace: Workspace, sentences: Sentences
) -> None:
    # Kills: a run that finishes another's files with draws of other embeddings.
    spec = load_spec(str(workspace.spec(sentences())))
    kind = prepare(spec)
    assert isinstance(kind, SentencesKind)
    key = ReleaseKey.derive(bytes(32), "test", b"")

    def identity_with(**encoder: str) -> str:
        parameters = replace(kind.parameters, encoder=replace(kind.parameters.encoder, **encoder))
        other = replace(kind, parameters=parameters)
        return identify_run(spec, Plan([], pa.schema([])), other, key).identity

    own = {"precision": "float32", "software": "torch 2"}
    assert identity_with(**own) == identity_with(**own)
    assert identity_with(**own) != identity_with(**own | {"precision": "bfloat16"})
    assert identity_with(**own) != identity_with(**own | {"software": "torch 3"})


@pytest.fixture
def bags(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> tuple[Spec, Kind]:
    monkeypatch.chdir(workspace.folder)
    spec = load_spec(str(workspace.spec()))
    return spec, prepare(spec)


def run_of(spec: Spec, kind: Kind, master: int = 0, corpus: bytes = b"c") -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plan, "corpus_digest", lambda *_: corpus)
        key = ReleaseKey.derive(bytes([master]) * 32, spec.release, corpus)
        return identify_run(spec, Plan([], pa.schema([])), kind, key)


def test_a_claim_asks_for_less_of_the_software_than_a_ledger(
    bags: tuple[Spec, Kind], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a law that every comment changes, by which a retry by a later version is wedged; and a
    # ledger's identity that no comment changes.
    before = run_of(*bags)
    monkeypatch.setattr(identities, "environment_digest", lambda: "later")
    after = run_of(*bags)
    assert (before.law, before.asked) == (after.law, after.asked)
    assert before.identity != after.identity


def test_a_law_is_of_all_that_decides_what_is_drawn(
    bags: tuple[Spec, Kind], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a half-published release that is finished by a run whose draws are others.
    spec, kind = bags
    laws = {run_of(spec, kind).law}
    assert isinstance(kind, BagOfWordsKind)
    for name, value in (("laws", {**kind.laws, "documents": 2}), ("computing", "another")):
        with monkeypatch.context() as patch:
            patch.setattr(BagOfWordsKind, name, value)
            laws.add(run_of(spec, kind).law)
    with monkeypatch.context() as patch:
        patch.setattr(identities, "libraries", lambda: {"numpy": "9"})
        laws.add(run_of(spec, kind).law)
    laws.add(run_of(spec, kind, corpus=b"d").law)
    laws.add(run_of(spec, kind, master=1).law)
    block = spec.mechanism.model_copy(update={"precision": 3})
    laws.add(run_of(spec.model_copy(update={"mechanism": block}), kind).law)
    assert len(laws) == 7


def test_the_law_of_a_kind_that_names_none_is_of_every_byte(
    bags: tuple[Spec, Kind], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a training that another version finishes, whose noise is bound to the software.
    spec, kind = bags
    monkeypatch.setattr(BagOfWordsKind, "laws", None)
    before = run_of(spec, kind).law
    monkeypatch.setattr(identities, "environment_digest", lambda: "later")
    assert run_of(spec, kind).law != before


def test_a_claim_says_what_differs(bags: tuple[Spec, Kind]) -> None:
    # Kills: digests under the corpus's own key, by which all of them differ with the corpus; a spec
    # that differs once a version has more keys; and another release's digests that are the same.
    spec, kind = bags
    own = run_of(spec, kind)
    block = spec.mechanism.model_copy(update={"precision": 3})
    others = {
        "the spec": run_of(spec.model_copy(update={"mechanism": block}), kind),
        "the corpus": run_of(spec, kind, corpus=b"d"),
        MASTER_KEY: run_of(spec, kind, master=1),
    }
    assert {name: own.differences(other) for name, other in others.items()} == {
        name: [name] for name in others
    }
    assert own.differences(own) == []
    elsewhere = run_of(spec.model_copy(update={"release": "another"}), kind)
    assert not set(own.asked.values()) & set(elsewhere.asked.values())
    default = spec.mechanism.model_copy(update={"accounting": Accounting.TIGHT})
    assert run_of(spec.model_copy(update={"mechanism": default}), kind).asked == own.asked


# Tries of a job: how many there are, of which failures, and what each finds of those before.


class Attempts:
    """Attempts that fail so many times, each after a step."""

    def __init__(self, failure: Exception, failures: int) -> None:
        self.numbers: list[int] = []
        self.steps = Steps(3, bar=False)
        self.steps.next("before")
        self._failure, self._failures = failure, failures

    def __call__(self, number: int) -> str:
        self.numbers.append(number)
        self.last = self.steps.next("a pass")
        if len(self.numbers) <= self._failures:
            raise self._failure
        return "made"


@pytest.mark.parametrize("failure", [WorkerLost("x"), StoreUnavailable("x")])
def test_what_may_pass_is_tried_again(failure: Exception, caplog: pytest.LogCaptureFixture) -> None:
    # Kills: a run that a lost worker or a store ends; steps that are counted on with every try; and
    # a repetition of which nobody hears.
    attempts = Attempts(failure, TRIES - 1)
    with caplog.at_level(logging.WARNING, "quietcorpus"):
        assert persistently(attempts, attempts.steps) == "made"
    assert attempts.numbers == list(range(TRIES))
    assert attempts.last == "step 2 of 3: a pass"
    assert [line.split(", ")[1] for line in caplog.messages] == [
        "try 2 of 4",
        "try 3 of 4",
        "try 4 of 4",
    ]


def test_there_is_a_last_try() -> None:
    # Kills: a job that is run for ever, or on a cluster, which repeats by itself.
    for tries in (TRIES, 1):
        attempts = Attempts(WorkerLost("x"), TRIES)
        with pytest.raises(WorkerLost):
            persistently(attempts, attempts.steps, tries)
        assert attempts.numbers == list(range(tries))


@pytest.mark.parametrize("kind", [InputError, NoisyOutcome, StageError, Unavailable, ValueError])
def test_no_other_failure_is_tried_again(kind: type[Exception]) -> None:
    # Kills: a noisy outcome that is drawn twice; a refusal that takes four times as long.
    attempts = Attempts(kind("x"), 1)
    with pytest.raises(kind):
        persistently(attempts, attempts.steps)
    assert attempts.numbers == [0]
