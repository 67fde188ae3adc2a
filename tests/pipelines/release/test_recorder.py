"""The record of a run: how its summary tells each way in which a run ends."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.caps import as_terms
from quietcorpus.pipelines.release import recorder
from quietcorpus.pipelines.release.describe import schema
from quietcorpus.pipelines.release.recorder import recorded
from quietcorpus.pipelines.runners.engine import GraphIsValid
from quietcorpus.pipelines.schema.loading import as_spec
from quietcorpus.pipelines.schema.spec import Spec
from quietcorpus.transforms.errors import (
    CapReached,
    ClaimHeld,
    DeadlinePassed,
    InputError,
    NoisyOutcome,
    StageError,
    StoreUnavailable,
    Unavailable,
)
from quietcorpus.transforms.outages import Requests

SECRET = "the patient's name"


def weekly(folder: Path, **more: str) -> Spec:
    mechanism = {
        "kind": "histogram",
        "precision": 2,
        "epsilon": 1,
        "vocabulary": {"public": "terms.txt"},
    }
    places = {"input": {"path": f"{folder}/in/*"}, "output": f"{folder}/out", **more}
    return as_spec({"release": "weekly", **places, "mechanism": mechanism})


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    return weekly(tmp_path)


def end(
    place: str, spec: Spec | None, error: BaseException | None, *, publishing: bool = False
) -> None:
    """End a run of a spec, or of none that could be read, by an error."""
    with recorded(place) as run:
        if spec:
            run.describe(spec)
        if publishing:
            run.publishing(lambda: None)()
        if error:
            raise error


def ended(
    place: Path, spec: Spec | None, error: BaseException, *, publishing: bool = False
) -> dict[str, Any]:
    """The summary of such a run."""
    with pytest.raises(type(error)):
        end(str(place), spec, error, publishing=publishing)
    content: dict[str, Any] = json.loads(place.read_text())
    jsonschema.Draft202012Validator(json.loads(schema())).validate(content)
    return content


@pytest.mark.parametrize(
    ("error", "outcome", "code", "reason"),
    [
        (InputError(SECRET), "refused", 2, "bad_input"),
        (CapReached(SECRET), "refused", 3, "cap_reached"),
        (NoisyOutcome(SECRET), "refused", 2, "noisy_outcome"),
        (ClaimHeld(SECRET), "failed", 1, "claimed"),
        (StoreUnavailable(SECRET), "failed", 1, "store_unavailable"),
        (ConnectionResetError(SECRET), "failed", 1, "store_unavailable"),
        (DeadlinePassed(SECRET), "failed", 1, "deadline"),
        (Unavailable(SECRET), "failed", 1, "unavailable"),
        (StageError(SECRET), "failed", 1, "failure"),
        (ValueError(SECRET), "failed", 1, "failure"),
        (KeyboardInterrupt(SECRET), "interrupted", 130, "interrupted"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_every_end_has_a_reason(
    tmp_path: Path, spec: Spec, error: BaseException, outcome: str, code: int, reason: str
) -> None:
    # Kills: an end without a summary, a reason by the wrong class, a message in the summary.
    content = ended(tmp_path / "summary.json", spec, error)
    assert (content["outcome"], content["exit_code"], content["reason"]) == (outcome, code, reason)
    assert content["release"] == "weekly"
    assert "patient" not in json.dumps(content)
    assert content.keys() & {"documents", "rejects", "cost", "ledger", "card_sha256"} == set()


def test_the_steps_of_a_run(tmp_path: Path, spec: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: a step that is counted twice, or into another; the last one left out.
    place, now = tmp_path / "summary.json", [0.0]
    monkeypatch.setattr(recorder, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def run() -> None:
        with recorded(str(place)) as found:
            found.describe(spec)
            now[0] += 0.1
            found.step("releasing")
            now[0] += 0.2
            raise StageError(SECRET)

    with pytest.raises(StageError):
        run()
    content = json.loads(place.read_text())
    assert content["steps"] == {"preparing": 0.1, "releasing": 0.2}
    assert content["seconds"] == 0.3


def test_what_workers_did_again_is_in_the_summary(tmp_path: Path, spec: Spec) -> None:
    # Kills: silent retries; those of this process alone; the sum of all looks at a growing number.
    place = tmp_path / "summary.json"
    before = Requests.repeated
    try:
        with recorded(str(place)) as run:
            run.describe(spec)
            run.progress({"repeated": 1, "requests": 2})
            run.progress({"documents": 9})
            run.progress({"repeated": 3, "requests": 5})
            Requests.repeated += 1
    finally:
        Requests.repeated = before
    content = json.loads(place.read_text())
    assert (content["retries"], content["repeated_parts"]) == (6, 3)


def test_a_spec_that_cannot_be_read(tmp_path: Path) -> None:
    # Kills: a bad spec that is told as bad input, or a run without a spec that tells nothing.
    content = ended(tmp_path / "summary.json", None, InputError("spec.yaml: release: missing"))
    assert (content["outcome"], content["reason"]) == ("refused", "bad_spec")
    assert "release" not in content


def test_a_release_that_may_exist(tmp_path: Path, spec: Spec) -> None:
    # Kills: a failure while it is published, of which a machine would take it that nothing was.
    content = ended(tmp_path / "s", spec, StageError("x"), publishing=True)
    assert (content["outcome"], content["exit_code"]) == ("unknown", 1)


def test_a_dry_run(tmp_path: Path, spec: Spec) -> None:
    content = ended(tmp_path / "s", spec, GraphIsValid())
    assert (content["outcome"], content["exit_code"], "reason" in content) == ("valid", 0, False)


def test_two_runs_have_ids_of_their_own(tmp_path: Path, spec: Spec) -> None:
    ids = {ended(tmp_path / "s", spec, InputError("x"))["run"] for _ in range(2)}
    assert len(ids) == 2


@pytest.mark.parametrize("name", ["", "/summary.json", "/data/x"])
def test_a_summary_does_not_lie_in_the_release(tmp_path: Path, spec: Spec, name: str) -> None:
    # Kills: a summary among the files of a release, which `verify` then refuses.
    with pytest.raises(InputError, match=r"^summary: .* lies in the output"):
        end(spec.output + name, spec, None)
    assert not Path(spec.output).exists()


def test_a_summary_that_cannot_be_written_changes_nothing(
    tmp_path: Path, spec: Spec, caplog: pytest.LogCaptureFixture
) -> None:
    # Kills: a run that ends by the failure of its summary, and silence about that.
    (tmp_path / "file").write_text("no folder")
    with caplog.at_level(logging.WARNING), pytest.raises(StageError, match="mine"):
        end(f"{tmp_path}/file/summary.json", spec, StageError("mine"))
    assert "could not be written" in caplog.text


@pytest.fixture
def counted(tmp_path: Path) -> Spec:
    """A spec with a ledger, whose one account has room for four releases like it."""
    cap = {"definition": "limited-precision", "precision": 2, "epsilon": 4}
    ledger = str(tmp_path / "ledger")
    Ledger.init(ledger, as_terms({"corpus": f"{tmp_path}/in", "caps": [cap]}))
    return weekly(tmp_path, ledger=ledger)


def test_the_accounts_of_a_ledger(tmp_path: Path, counted: Spec) -> None:
    # Kills: a run that is refused at a cap, and does not tell what is left; a run that is to end
    # now, and asks a ledger first.
    (account,) = ended(tmp_path / "s", counted, CapReached("x"))["accounts"]
    assert (account["cap"], account["left"]) == ({"epsilon": 4, "delta": 0},) * 2
    assert "charged" not in account
    for error in (KeyboardInterrupt(), DeadlinePassed("x"), ConnectionResetError()):
        assert "accounts" not in ended(tmp_path / "s", counted, error)


def test_a_ledger_that_cannot_be_read_changes_nothing(tmp_path: Path, counted: Spec) -> None:
    # Kills: a run that ends by the failure to read its accounts, or without a summary.
    (tmp_path / "ledger" / "00000000.json").write_text("{}")
    content = ended(tmp_path / "s", counted, StageError("mine"))
    assert (content["reason"], "accounts" in content) == ("failure", False)
