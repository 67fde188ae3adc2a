"""What a release tells, and when: it reserves, reads, commits, warns, and publishes, in this order.

Whatever follows from noise is told once it is paid for, and numbers of protected records are not
told at all.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from golden_releases import HERE, TEXTS, fixed, spec_of

from quietcorpus.pipelines.kinds.public_texts.voting import PublicTextsKind
from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.caps import as_terms
from quietcorpus.pipelines.ledger.reservation import HeldReservation
from quietcorpus.pipelines.release import run as module
from quietcorpus.pipelines.release.recorder import recorded
from quietcorpus.pipelines.release.run import release
from quietcorpus.pipelines.runners.engine import Engine
from quietcorpus.pipelines.schema.loading import load_spec
from quietcorpus.pipelines.schema.spec import Spec
from quietcorpus.pipelines.storage.publishing import Folder
from quietcorpus.transforms.errors import NoisyOutcome, StageError
from quietcorpus.transforms.run_files import read_run_files

CAP = {"definition": "document", "epsilon": 20, "delta": 1e-3}
WARNING = "warned of the outcome"


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with fixed(tmp_path_factory.mktemp("order")):
        yield


def counted(name: str) -> Spec:
    """A release of documents' votes, whose ledger has room for one."""
    Ledger.init(
        f"{HERE}/ledger-{name}", as_terms({"corpus": f"{HERE}/corpus.parquet", "caps": [CAP]})
    )
    spec_of("public-texts")
    own = {"ledger": f"{HERE}/ledger-{name}", "output": f"{HERE}/out-{name}"}
    Path("spec.yaml").write_text(json.dumps(json.loads(Path("spec.yaml").read_text()) | own))
    return load_spec("spec.yaml")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a release does, in order."""
    found: list[str] = []

    def noting(owner: Any, name: str, event: str) -> None:
        real = getattr(owner, name)

        def called(*given: Any, **named: Any) -> Any:
            found.append(event)
            return real(*given, **named)

        monkeypatch.setattr(owner, name, called)

    noting(Ledger, "reserve", "reserve")
    noting(Engine, "run", "read")
    noting(HeldReservation, "commit", "commit")
    noting(HeldReservation, "refuse", "refuse")
    noting(Folder, "publish", "publish")

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if WARNING in record.getMessage():
                found.append("warn")

    handler = Handler()
    logger = logging.getLogger("quietcorpus.release")
    logger.addHandler(handler)
    monkeypatch.setattr(PublicTextsKind, "noticed", lambda *_: [WARNING])
    monkeypatch.setattr(logger, "disabled", False)
    return found


def test_a_budget_is_reserved_before_reading_and_spent_before_anything_is_told(
    told: list[str],
) -> None:
    # Kills: a commit after publishing; a warning that tells of the outcome, and could be read of a
    # run whose commit fails; noise that is drawn before its budget is reserved.
    release(counted("order"), Engine([], 1), lambda: told.append("may exist"))
    assert told == ["reserve", "read", "commit", "warn", "publish", "may exist"]


def test_a_release_whose_commit_fails_tells_nothing(
    told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a publication or a warning that does not wait for the ledger.
    def failing(*_: object) -> None:
        raise StageError("as told")

    monkeypatch.setattr(HeldReservation, "commit", failing)
    with pytest.raises(StageError, match="as told"):
        release(counted("failed"), Engine([], 1), lambda: told.append("may exist"))
    assert told == ["reserve", "read"]
    assert not Path("out-failed").exists()


@pytest.mark.parametrize(
    ("error", "spent"), [(NoisyOutcome("as told"), ["refuse"]), (StageError("as told"), [])]
)
def test_a_noisy_outcome_is_spent_in_every_kind(
    told: list[str], error: Exception, spent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a refusal by noise that is told unspent, where a kind does not say that noise decides.
    def failing(*_: object) -> None:
        raise error

    monkeypatch.setattr(PublicTextsKind, "check", failing)
    name = type(error).__name__
    with pytest.raises(type(error), match="as told"):
        release(counted(name), Engine([], 1), lambda: None)
    assert told == ["reserve", "read", *spent]


def in_the_open(files: Any) -> Any:
    return [replace(files[0], sealed=False), *files[1:]]


def without_a_split(tally: Any) -> Any:
    return replace(tally, parts=tally.parts[1:])


def touched(*_: object) -> None:
    os.utime("corpus.parquet")


@pytest.mark.parametrize(
    ("owner", "name", "fault", "said"),
    [
        (PublicTextsKind, "finish", lambda _, __, files: in_the_open(files), "in the open"),
        (PublicTextsKind, "check", touched, "were changed, added or deleted"),
        (
            module,
            "read_run_files",
            lambda *given: (read_run_files(*given)[0], without_a_split(read_run_files(*given)[1])),
            "the engine lost a part",
        ),
    ],
    ids=["an open file", "a changed corpus", "a lost split"],
)
def test_what_is_not_whole_is_neither_paid_for_nor_published(
    told: list[str],
    owner: Any,
    name: str,
    fault: Any,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    # Kills: checks that have tests of their own, and that no release asks for.
    monkeypatch.setattr(owner, name, fault)
    with pytest.raises(StageError, match=said):
        release(counted(request.node.callspec.id.replace(" ", "-")), Engine([], 1), lambda: None)
    assert told == ["reserve", "read"]


NUMBERS = {"bag-of-words": True, "public-texts": False, "public-texts, users": False}


@pytest.mark.parametrize("name", NUMBERS)
def test_protected_numbers_are_in_no_metric_and_no_summary(name: str) -> None:
    # Kills: the exact number of documents, where one document is protected or one user, in the
    # numbers that metrics are made of, in the summary or on the card.
    shown: list[dict[str, int]] = []
    place = f"{Path.cwd()}/summary-{name}.json"
    with recorded(place) as run:

        def progress(numbers: Any) -> None:
            shown.append(dict(numbers))
            run.progress(numbers)

        card = release(spec_of(name), Engine([], 1), lambda: None, on_progress=progress)
        run.published(card)
    summary = json.loads(Path(place).read_text())
    told = [own["documents"] for own in shown if "documents" in own]
    assert (max(told, default=0) >= len(TEXTS)) is NUMBERS[name]
    assert bool(told) is NUMBERS[name]
    assert (summary.get("documents") == len(TEXTS)) is NUMBERS[name]
    assert ("documents" in summary, card.counts is not None) == (NUMBERS[name],) * 2
    assert "rejects" not in summary or NUMBERS[name]
