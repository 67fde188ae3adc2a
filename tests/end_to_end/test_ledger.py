"""A ledger, by the command line: what releases reserve, spend and give back."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from machine import OTHER_KEY
from ruamel.yaml import YAML
from s3_server import BUCKET, S3Server

from quietcorpus.pipelines.kinds.bags import BagOfWordsKind
from quietcorpus.pipelines.kinds.run_files import read_run_files
from quietcorpus.pipelines.ledger.holding import HeldReservation
from quietcorpus.pipelines.release import comparison
from quietcorpus.transforms.errors import InputError, StageError

if TYPE_CHECKING:
    from tests.conftest import Workspace

PRECISION = {"definition": "limited-precision", "precision": 2, "epsilon": 10, "delta": 1e-6}


def opened(workspace: Workspace, *caps: Mapping[str, Any], place: str = "ledger") -> Path:
    """A ledger of the workspace's input; its folder."""
    terms = {"corpus": "input", "caps": [dict(cap) for cap in caps or (PRECISION,)]}
    with (workspace.folder / "caps.yaml").open("w") as stream:
        YAML(typ="safe").dump(terms, stream)
    done = workspace.run("ledger", "init", place, "caps.yaml")
    assert done.returncode == 0, done.stderr
    return workspace.folder / place


def spec(name: str, **changes: Any) -> dict[str, Any]:
    """A release of epsilon 4 with a ledger, at a place of its own."""
    own = {"release": name, "output": f"released/{name}", "ledger": "ledger"}
    return own | {key.replace("__", "."): value for key, value in changes.items()}


def shown(workspace: Workspace, place: str = "ledger") -> dict[str, Any]:
    """The first account, and the open reservations."""
    done = workspace.run("ledger", "show", place, "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    return {**content["accounts"][0], "open": [one["release"] for one in content["open"]]}


def used(workspace: Workspace, place: str = "ledger") -> float:
    epsilon: float = shown(workspace, place)["used"]["epsilon"]
    return epsilon


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """The one line of a refusal; that of a cap which is reached has a code of its own."""
    assert done.returncode == (3 if "would pass the cap" in done.stderr else 2), done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("quietcorpus: error: ")
    return last.removeprefix("quietcorpus: error: ")


@pytest.fixture
def corpus(workspace: Workspace) -> Workspace:
    workspace.json_lines(["hello quiet world", "alpha beta gamma", "quiet island"])
    return workspace


def test_card_and_ledger_agree(corpus: Workspace) -> None:
    # Kills: a commit of another card, a card that names another record, a release that is counted
    # twice or not at all, `verify` that looks at one side alone.
    folder = opened(corpus)
    corpus.release(spec("one"))
    opening, reservation, commit = records(folder)
    card = (corpus.folder / "released/one/release.json").read_bytes()
    assert commit["card_sha256"] == hashlib.sha256(card).hexdigest()
    assert json.loads(card)["ledger"] == {
        "reservation": 1,
        "record_sha256": hashlib.sha256((folder / "00000001.json").read_bytes()).hexdigest(),
    }
    assert (reservation["release"], reservation["charges"][0]["epsilon"]) == ("one", "4")
    assert opening["corpus"] == str(corpus.input)
    assert used(corpus) == 4
    for arguments in (("ledger", "verify", "ledger"), ("verify", "released/one")):
        assert corpus.run(*arguments).returncode == 0
    assert corpus.run("verify", "released/one", "--ledger", "ledger").returncode == 0
    seals = subprocess.run(
        "sha256sum -c *.sha256", shell=True, cwd=folder, capture_output=True, check=False
    )
    assert seals.returncode == 0
    events = json.loads(corpus.run("ledger", "history", "ledger", "--json").stdout)
    assert [one["event"] for one in events] == ["opening", "reservation", "commit"]
    # Another ledger knows nothing of it, and a card that was altered is seen from both sides.
    opened(corpus, place="other")
    said = refusal(corpus.run("verify", "released/one", "--ledger", "other"))
    assert "has not committed record 1" in said
    path = corpus.folder / "released/one/release.json"
    path.write_bytes(card.replace(b'"created": "2', b'"created": "1'))
    assert "not the one that was committed" in refusal(corpus.run("ledger", "verify", "ledger"))
    said = refusal(corpus.run("verify", "released/one", "--ledger", "ledger"))
    assert "not the one that was committed" in said or "README" in said
    # Nor may it say of itself that it was made from the one that was committed.
    made = {"card_sha256": commit["card_sha256"], "factors": 1, "starts": 1, "passes": 1}
    path.write_text(json.dumps(json.loads(card) | {"reconstruction": made}))
    assert "not the one that was committed" in refusal(corpus.run("ledger", "verify", "ledger"))
    said = refusal(corpus.run("verify", "released/one", "--ledger", "ledger"))
    assert "was reconstructed from a release that" in said or "README" in said


def test_a_cap_is_not_passed(corpus: Workspace) -> None:
    # Kills: a release before its reservation, a refusal that spends, `>=` for `>`; the end of a
    # schedule that its scheduler takes for a mistake in the spec.
    folder = opened(corpus)
    for name in ("one", "two"):
        corpus.release(spec(name))
    done = corpus.run("release", str(corpus.spec(spec("three"))))
    said = refusal(done)
    assert done.returncode == 3
    assert said == (
        "ledger: limited-precision privacy at N = 2: epsilon 4 would pass the cap of 10: 8 is "
        "used, by one, two; ask for less, or end the schedule"
    )
    assert not (corpus.folder / "released/three").exists()
    assert len(records(folder)) == 5
    # What is left may be spent to the end, at another N by the theorem: two times 1.
    last = spec("last", mechanism__precision=1, mechanism__epsilon=1)
    corpus.release(last)
    assert used(corpus) == 10
    assert shown(corpus)["left"]["epsilon"] == 0
    assert shown(corpus)["releases"][-1]["theorem"] == "group privacy, from N = 1"


def test_nothing_is_read_before_it_is_reserved(corpus: Workspace) -> None:
    # Kills: a reservation after the run. Of this input no record is readable.
    folder = opened(corpus)
    corpus.json_lines([b"{"], "corpus.jsonl")
    corpus.run("release", str(corpus.spec(spec("one"))))
    assert [one["record"] for one in records(folder)] == ["opening", "reservation"]
    assert shown(corpus)["open"] == ["one"]
    # It is mended, and the same command goes on with what was reserved.
    corpus.json_lines(["hello"], "corpus.jsonl")
    corpus.release(spec("one"))
    assert [one["record"] for one in records(folder)] == ["opening", "reservation", "commit"]
    assert used(corpus) == 4


def started(workspace: Workspace, changes: Mapping[str, Any], folder: Path) -> Any:
    """A release that was stopped as its reservation appeared."""
    path = workspace.spec(changes, "slow.yaml")
    reserved = folder / f"{len(records(folder)):08d}.json"
    process = subprocess.Popen(
        workspace.command("release", str(path), "--quiet"),
        cwd=workspace.folder,
        env=workspace.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not reserved.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGSTOP)
    return process


def test_a_run_that_was_killed_keeps_its_reservation(corpus: Workspace) -> None:
    # Kills: a second reservation by the same run, a budget that a crash gives back, a resumption
    # by another spec.
    folder = opened(corpus)
    process = started(corpus, spec("one"), folder)
    process.kill()
    process.communicate()
    assert shown(corpus)["open"] == ["one"]
    assert used(corpus) == 4
    other = spec("one", mechanism__epsilon=5)
    assert "reserved on" in refusal(corpus.run("release", str(corpus.spec(other))))
    other_key = {"QUIETCORPUS_MASTER_KEY": OTHER_KEY}
    again = corpus.run("release", str(corpus.spec(spec("one"))), environment=other_key)
    assert "under another master key" in refusal(again)
    corpus.release(spec("one"))
    assert used(corpus) == 4
    assert [one["record"] for one in records(folder)] == ["opening", "reservation", "commit"]
    # At another place it is told what differs, and not to give back what is spent.
    moved = refusal(corpus.run("release", str(corpus.spec(spec("one", output="released/moved")))))
    assert moved.startswith("ledger: release one is committed, and was reserved on ")
    assert "for another output, " in moved
    assert "release-reservation" not in moved


def test_what_was_given_back_is_not_published(corpus: Workspace) -> None:
    # Kills: a run that publishes without its budget, because its reservation is looked at once.
    folder = opened(corpus)
    process = started(corpus, spec("one"), folder)
    give_back = ("ledger", "release-reservation", "ledger", "one", "--reason", "stuck")
    assert corpus.run(*give_back).returncode == 0
    assert used(corpus) == 0
    os.kill(process.pid, signal.SIGCONT)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 2
    assert "given back meanwhile; nothing may be published" in said
    assert not (corpus.folder / "released/one").exists()
    assert records(folder)[-1]["reason"] == "stuck"
    # It may be reserved again, and spent then for good.
    corpus.release(spec("one"))
    assert used(corpus) == 4
    assert "is committed" in refusal(corpus.run(*give_back))
    assert "--reason" in corpus.run("ledger", "release-reservation", "ledger", "one").stderr


def test_a_release_is_made_again_at_no_cost_if_it_is_the_same(corpus: Workspace) -> None:
    # Kills: a second charge for the same bytes, and none for other ones.
    folder = opened(corpus)
    corpus.release(spec("one"))
    output = corpus.folder / "released/one"
    before = (output / "release.json").read_bytes()
    output.rename(corpus.folder / "released/lost")
    corpus.release(spec("one"))
    assert (output / "release.json").read_bytes() == before
    assert len(records(folder)) == 3
    output.rename(corpus.folder / "released/lost-too")
    corpus.json_lines(["hello quiet world", "alpha beta", "quiet island"])
    said = refusal(corpus.run("release", str(corpus.spec(spec("one")))))
    assert "is committed, of other documents or by other software" in said
    assert not output.exists()


def test_a_counted_release_that_is_not_at_its_place(corpus: Workspace) -> None:
    # Kills: a release that is lost, or hidden, and a verification that passes; one that ends as
    # for a record that is not as it was; a second one that hides behind it.
    opened(corpus)
    for name in ("one", "two"):
        corpus.release(spec(name))
    output, elsewhere = (corpus.folder / "released" / name for name in ("one", "moved"))
    output.rename(elsewhere)
    done = corpus.run("ledger", "verify", "ledger")
    assert done.returncode == 1, done.stderr
    assert done.stderr.splitlines()[-1] == (
        "quietcorpus: error: ledger: 1 of 2 releases are not at their places; one: committed, "
        f"not at its place {output}; put it back, or release.json alone"
    )
    assert "verified" not in done.stdout
    found = json.loads(corpus.run("ledger", "verify", "ledger", "--json").stdout)
    assert [(one["wrong"], one["missing"]) for one in found] == [(False, True), (False, False)]
    assert found[1]["says"] == "committed, and its card agrees"
    # What was moved by intent is checked where it is, and its card stays where it was.
    assert corpus.run("verify", str(elsewhere), "--ledger", "ledger").returncode == 0
    output.mkdir()
    (output / "release.json").write_bytes((elsewhere / "release.json").read_bytes())
    assert corpus.run("ledger", "verify", "ledger").returncode == 0
    # A card that does not agree is told first.
    (output / "release.json").unlink()
    second = corpus.folder / "released/two/release.json"
    second.write_text(second.read_text() + " ")
    assert "not the one that was committed" in refusal(corpus.run("ledger", "verify", "ledger"))


def test_a_reservation_without_a_release_is_no_fault(corpus: Workspace) -> None:
    # Kills: a run under way, or one that died, taken for a release that is lost.
    folder = opened(corpus)
    process = started(corpus, spec("one"), folder)
    process.kill()
    process.communicate()
    assert corpus.run("ledger", "verify", "ledger").returncode == 0


PRIVATE = {
    "mechanism.vocabulary": {"private": {"epsilon": 1, "delta": 1e-7}},
    "mechanism.precision": 2,
}
COSTLY = PRECISION | {"epsilon": 5}


def test_a_refusal_that_tells_a_noisy_outcome_has_spent_its_budget(corpus: Workspace) -> None:
    # Kills: a corpus that is touched for another draw under one reservation, such a reservation
    # that is given back, a refusal that is repeated at a cost, or counted as a release.
    folder = opened(corpus, COSTLY)
    wanted = spec("one", **PRIVATE)
    told = "no term's noisy frequency reaches the threshold"
    assert told in refusal(corpus.run("release", str(corpus.spec(wanted))))
    assert [one["record"] for one in records(folder)] == ["opening", "reservation", "refusal"]
    assert used(corpus) == 5
    assert (shown(corpus)["open"], shown(corpus)["releases"][0]["state"]) == ([], "refused")
    assert told in refusal(corpus.run("release", str(corpus.spec(wanted))))
    assert len(records(folder)) == 3

    given = corpus.run("ledger", "release-reservation", "ledger", "one", "--reason", "none")
    assert "telling that spent its budget" in refusal(given)
    os.utime(next(corpus.input.iterdir()), (1, 1))
    assert "give another try an id of its own" in refusal(
        corpus.run("release", str(corpus.spec(wanted)))
    )
    assert "would pass the cap of 5" in refusal(
        corpus.run("release", str(corpus.spec(spec("two", **PRIVATE))))
    )
    for command in ("verify", "history"):
        done = corpus.run("ledger", command, "ledger")
        assert done.returncode == 0, done.stderr
        assert "refus" in done.stdout
    assert len(records(folder)) == 3


def test_any_failure_of_a_run_that_noise_decides_has_spent_its_budget(workspace: Workspace) -> None:
    # The message that an id repeats tells that terms have passed the threshold. Kills: a type of
    # error that is told unspent, and another draw on a corpus that was mended since.
    folder = opened(workspace, COSTLY)
    cases = [{"text": "hello quiet world", "case": max(n, 1)} for n in range(300)]
    workspace.json_lines(cases)
    wanted = spec("one", input={"path": "input/corpus.jsonl", "id": "case"}, **PRIVATE)
    for _ in range(2):
        assert "input.id" in refusal(workspace.run("release", str(workspace.spec(wanted))))
        assert [one["record"] for one in records(folder)] == ["opening", "reservation", "refusal"]
    given = workspace.run("ledger", "release-reservation", "ledger", "one", "--reason", "none")
    assert "telling that spent its budget" in refusal(given)
    workspace.json_lines(cases[1:])
    said = refusal(workspace.run("release", str(workspace.spec(wanted))))
    assert "give another try an id of its own" in said
    # The negative control: with a public vocabulary, the same message tells nothing of the noise.
    public = opened(workspace, place="second")
    workspace.json_lines(cases)
    plain = spec("two", input=wanted["input"], ledger="second")
    assert "input.id" in refusal(workspace.run("release", str(workspace.spec(plain))))
    workspace.json_lines(cases[1:])
    workspace.release(plain)
    assert [one["record"] for one in records(public)] == ["opening", "reservation", "commit"]


def test_a_run_that_was_killed_draws_on_no_other_corpus(workspace: Workspace) -> None:
    # Kills: a reservation that follows the corpus where a run tells of its noise before it ends.
    opened(workspace, COSTLY)
    workspace.json_lines(["hello quiet world"] * 300)
    wanted = spec("one", **PRIVATE)
    with pytest.MonkeyPatch.context() as patch:  # as if it died before it could write a record
        patch.setattr(HeldReservation, "refuse", lambda self, **_: None)
        patch.setattr(BagOfWordsKind, "check", failing)
        with pytest.raises(StageError, match="as told"):
            workspace.release_here(wanted | {"ledger": f"{workspace.folder}/ledger"})
    os.utime(next(workspace.input.iterdir()), (1, 1))
    said = refusal(workspace.run("release", str(workspace.spec(wanted))))
    assert "as its noise decides whether there is a release, of other documents" in said


def failing(*_: object, **__: object) -> None:
    raise StageError("as told")


def test_what_cannot_be_spent_is_not_told(workspace: Workspace) -> None:
    # Kills: an outcome that is told though its budget was given back or cannot be written, also by
    # the error that Python keeps beside the one that is raised.
    opened(workspace, COSTLY)
    wanted = spec("one", **PRIVATE) | {"ledger": f"{workspace.folder}/ledger"}
    workspace.json_lines(["hello quiet world"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HeldReservation, "refuse", failing)
        with pytest.raises(StageError) as raised:
            workspace.release_here(wanted)
    assert str(raised.value).startswith("ledger: the run failed, and its budget could not be spent")
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


def test_a_run_whose_failure_was_told_may_end_well(workspace: Workspace) -> None:
    # Kills: a budget that is spent for nothing because a worker died; a second charge.
    folder = opened(workspace, COSTLY)
    workspace.json_lines(["hello quiet world"] * 300)
    wanted = spec("one", **PRIVATE) | {"ledger": f"{workspace.folder}/ledger"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BagOfWordsKind, "check", failing)
        with pytest.raises(StageError, match="as told"):
            workspace.release_here(wanted)
    workspace.release_here(wanted)
    assert [one["record"] for one in records(folder)][2:] == ["refusal", "commit"]
    assert used(workspace) == 5
    assert shown(workspace)["releases"][0]["state"] == "committed"
    assert workspace.run("verify", "released/one", "--ledger", "ledger").returncode == 0
    assert workspace.run("ledger", "verify", "ledger").returncode == 0


def test_a_partition_that_noise_decides_is_compared_before_it_is_drawn(
    workspace: Workspace,
) -> None:
    # Kills: ids that are compared at the end alone, so that a refusal tells of documents that
    # another partition has paid for; a refused partition whose documents are free in another one; a
    # comparison that spends; one that is made anew, or charged, as the run is repeated.
    folder = opened(workspace, COSTLY)

    def of(name: str, **changes: Any) -> dict[str, Any]:
        part = name[:3]
        source = {"path": f"input/{part}.jsonl", "id": "case"}
        return spec(name, input=source, ledger={"path": "ledger", "partition": part}, **changes)

    for name, cases in {"jan": [1, 2], "feb": [2, 3], "mar": [4, 4], "apr": [5]}.items():
        texts = [{"text": "hello quiet world", "case": case} for case in cases]
        workspace.json_lines(texts, f"{name}.jsonl")

    def refused(name: str, **changes: Any) -> str:
        return refusal(workspace.run("release", str(workspace.spec(of(name, **changes)))))

    told = "no term's noisy frequency reaches the threshold"
    for _ in range(2):
        assert told in refused("jan", **PRIVATE)
        kinds = [one["record"] for one in records(folder)]
        assert kinds == ["opening", "reservation", "comparison", "refusal"]
    shared = "1 documents of feb are in jan as well (release jan)"
    assert shared in refused("feb", **PRIVATE)
    assert "repeats values" in refused("mar", **PRIVATE)
    assert [one["record"] for one in records(folder)][4:] == ["reservation"] * 2
    # The negative control: documents of their own, at the price of one partition.
    assert told in refused("apr", **PRIVATE)
    assert used(workspace) == 5
    assert "would pass the cap of 5: 5 is used" in refused("jan-again", **PRIVATE)
    for name in ("feb", "mar"):  # nothing was told, so it is given back
        back = ("ledger", "release-reservation", "ledger", name, "--reason", "no partition")
        assert workspace.run(*back).returncode == 0
    # Nor do ids that are compared at the end meet those of a refused partition.
    assert "1 documents of feb are in jan as well" in refused("feb")
    assert workspace.run("ledger", "verify", "ledger").returncode == 0
    assert "in no other partition" in workspace.run("ledger", "history", "ledger").stdout
    (digests,) = folder.glob("identifiers/00000001-*.bin")
    digests.unlink()
    assert "is missing, or not the file" in refusal(workspace.run("ledger", "verify", "ledger"))
    assert workspace.leftovers() == []


def test_documents_that_came_after_the_comparison_are_charged_to_all(
    workspace: Workspace,
) -> None:
    # Kills: a refusal that is charged to the partition that was compared, whatever it tells of.
    folder = opened(workspace, COSTLY)
    place = f"{workspace.folder}/ledger"
    workspace.json_lines([{"text": "hello quiet world", "case": 1}], "jan.jsonl")
    compare = HeldReservation.compare

    def changing(self: HeldReservation, identifiers: bytes) -> None:
        compare(self, identifiers)
        workspace.json_lines([{"text": "hello quiet world", "case": 2}] * 2, "jan.jsonl")

    wanted = spec("jan", input={"path": "input/jan.jsonl", "id": "case"}, **PRIVATE)
    wanted["ledger"] = {"path": place, "partition": "jan"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HeldReservation, "compare", changing)
        with pytest.raises(InputError):
            workspace.release_here(wanted)
    assert [one["record"] for one in records(folder)][2:] == ["comparison", "refusal"]
    assert records(folder)[-1]["documents"] == "unknown"
    other = spec("feb", input=wanted["input"], ledger={"path": "ledger", "partition": "feb"})
    said = refusal(workspace.run("release", str(workspace.spec(other))))
    assert "would pass the cap of 5: 5 is used, by jan" in said


def test_a_corpus_that_changes_during_the_comparison_costs_nothing(workspace: Workspace) -> None:
    # Kills: ids of files that came later, which would be kept for a partition that never had them.
    folder = opened(workspace, COSTLY)
    workspace.json_lines([{"text": "hello quiet world", "case": 1}], "jan.jsonl")

    def changed(*arguments: Any) -> object:
        workspace.json_lines([{"text": "hello quiet world", "case": 2}], "jan.jsonl")
        return read_run_files(*arguments)

    wanted = spec("jan", input={"path": "input/jan.jsonl", "id": "case"}, **PRIVATE)
    wanted["ledger"] = {"path": f"{workspace.folder}/ledger", "partition": "jan"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "read_run_files", changed)
        with pytest.raises(StageError, match="were changed, added or deleted"):
            workspace.release_here(wanted)
    assert [one["record"] for one in records(folder)] == ["opening", "reservation"]


def test_a_partition_that_was_compared_is_published(workspace: Workspace) -> None:
    # Kills: a commit whose ids are not those that were compared; a passed comparison that is no
    # release of the same bytes.
    folder = opened(workspace, COSTLY)
    workspace.json_lines([{"text": "hello quiet world", "case": case} for case in range(300)])
    source = {"path": "input/corpus.jsonl", "id": "case"}
    own = {"path": "ledger", "partition": "jan"}
    wanted = spec("jan", input=source, ledger=own, **PRIVATE)
    workspace.release(wanted)
    kinds = [one["record"] for one in records(folder)]
    assert kinds == ["opening", "reservation", "comparison", "commit"]
    assert records(folder)[2]["identifiers_sha256"] == records(folder)[3]["identifiers_sha256"]
    alone = wanted | {"output": "released/again", "ledger": ...}
    workspace.release(alone)
    (one,), (other,) = (
        list((workspace.folder / "released" / name / "data").iterdir()) for name in ("jan", "again")
    )
    assert one.read_bytes() == other.read_bytes()


def test_partitions_compose_in_parallel_unless_they_share_documents(
    workspace: Workspace,
) -> None:
    # Kills: partitions added up, releases of no partition left out, documents in two of them, ids
    # that are compared under each release's own key.
    folder = opened(workspace)
    days = {"1": ["a", "b"], "2": ["c", "d"], "3": ["e", "b"]}
    for day, ids in days.items():
        records_of = [{"text": f"hello {name}", "id": name} for name in ids]
        workspace.json_lines(records_of, f"day-{day}.jsonl")

    def of(day: str, name: str = "") -> dict[str, Any]:
        return spec(
            name or f"day-{day}",
            input={"path": f"input/day-{day}.jsonl", "id": "id"},
            ledger={"path": "ledger", "partition": f"day-{day}"},
        )

    for day in ("1", "2"):
        workspace.release(of(day))
    assert used(workspace) == 4
    workspace.release(of("1", "day-1-again"))
    assert used(workspace) == 8
    everywhere = spec("all", input={"path": "input/day-?.jsonl"}, mechanism__epsilon=3)
    assert "would pass the cap of 10: 8 is used" in refusal(
        workspace.run("release", str(workspace.spec(everywhere)))
    )
    workspace.release(everywhere | {"mechanism.epsilon": 2})
    assert used(workspace) == 10
    said = refusal(workspace.run("release", str(workspace.spec(of("3")))))
    assert said.startswith("ledger.partition: 1 documents of day-3 are in day-1 as well (release")
    assert not (workspace.folder / "released/day-3").exists()
    assert workspace.leftovers() == []
    other_key = {"QUIETCORPUS_MASTER_KEY": OTHER_KEY}
    stranger = of("2", "stranger") | {"mechanism.epsilon": 1}
    said = refusal(workspace.run("release", str(workspace.spec(stranger)), environment=other_key))
    assert "under another master key" in said
    assert workspace.run("ledger", "verify", "ledger").returncode == 0
    (digests,) = folder.glob("identifiers/00000003-*.bin")
    digests.write_bytes(digests.read_bytes()[:-1] + b"?")
    assert "not the file that was recorded" in refusal(workspace.run("ledger", "verify", "ledger"))
    card = workspace.card(workspace.folder / "released/day-2")
    counted = [card["ledger"][key] for key in ("partition", "disjoint", "identifier")]
    assert counted == ["day-2", "compared", "id"]
    line = not_protected(workspace, "day-2")
    assert line.endswith("in common, and compares the ids of the column 'id'")
    assert (
        "compared by the ids of the column 'id'" in workspace.run("ledger", "show", "ledger").stdout
    )


def month(name: str, column: str | None, **changes: Any) -> dict[str, Any]:
    """A release of one month; both months have the same documents."""
    source = {"path": "input/corpus.jsonl"} | ({"id": column} if column else {})
    own = {"path": "ledger", "partition": name} | changes
    return spec(name, input=source, ledger=own)


@pytest.fixture
def cases(workspace: Workspace) -> Workspace:
    """Documents that two columns tell apart, each by values of its own."""
    workspace.json_lines([{"text": "hello", "case": f"c{n}", "row": f"r{n}"} for n in range(50)])
    return workspace


def not_protected(workspace: Workspace, name: str) -> str:
    """Return the card's sentence on documents that come back."""
    lines = workspace.card(workspace.folder / f"released/{name}")["guarantee"]["not_protected"]
    (found,) = (line for line in lines if "another partition" in line)
    return str(found)


@pytest.mark.parametrize(
    ("first", "second"), [(None, "case"), ("case", None), ("case", "row"), ("row", "case")]
)
def test_partitions_whose_ids_cannot_be_compared_are_refused(
    cases: Workspace, first: str | None, second: str | None
) -> None:
    # Kills: partitions that are taken for disjoint because no id of the one is one of the other,
    # when the other has none, or those of another column; a plan that does not say so.
    folder = opened(cases, PRECISION | {"epsilon": 100})
    cases.release(month("jan", first))
    path = str(cases.spec(month("feb", second)))
    foreseen = cases.run("ledger", "plan", path)
    for said in (foreseen.stdout.splitlines()[-1], refusal(cases.run("release", path))):
        assert "ledger.partition: other partitions " in said
        assert said.endswith("do as they do, or leave ledger.partition out: it adds up then")
        for column in filter(None, (first, second)):
            assert f"the column {column!r}" in said
    assert refusal(foreseen) == "ledger: feb would be refused"
    assert len(records(folder)) == 3
    assert not (cases.folder / "released/feb").exists()
    # What was given back fixes nothing, and what is of no partition can be of any sort.
    cases.release(month("all", second) | {"ledger": "ledger"})
    assert used(cases) == 8


def test_partitions_without_ids_add_up(cases: Workspace) -> None:
    # Kills: partitions that compose in parallel though nothing tells whether they share a
    # document; a plan or a table of another sum, or a card that says that ids were compared.
    opened(cases, PRECISION | {"epsilon": 4})
    cases.release(month("jan", None))
    path = str(cases.spec(month("feb", None)))
    foreseen = cases.run("ledger", "plan", path)
    for said in (foreseen.stdout, refusal(cases.run("release", path))):
        assert "epsilon 4 would pass the cap of 4: 4 is used, by jan" in said
    assert shown(cases)["partitions"] == {}
    assert shown(cases)["releases"][0]["disjoint"] == "unknown"
    card = cases.card(cases.folder / "released/jan")
    assert card["ledger"]["partition"] == "jan"
    assert card["ledger"]["disjoint"] == "unknown"
    line = not_protected(cases, "jan")
    assert line.endswith("nothing tells which do, and the ledger adds the partitions up")


def test_the_publisher_may_declare_that_no_document_comes_back(cases: Workspace) -> None:
    # Kills: a declaration that is not repeated by card, table and history, or that changes nothing.
    opened(cases, PRECISION | {"epsilon": 4})
    for name in ("jan", "feb"):
        cases.release(month(name, None, disjoint="declared"))
    assert used(cases) == 4
    assert set(shown(cases)["partitions"]) == {"jan", "feb"}
    assert {one["disjoint"] for one in shown(cases)["releases"]} == {"declared"}
    for command in ("show", "history"):
        assert (
            "declared to share no document, and nothing checked it"
            in cases.run("ledger", command, "ledger").stdout
        )
    assert cases.card(cases.folder / "released/feb")["ledger"]["disjoint"] == "declared"
    said = "the publisher declared that none does, and nothing checked it"
    assert said in not_protected(cases, "feb")
    assert said in (cases.folder / "released/feb/README.md").read_text()
    assert cases.run("ledger", "verify", "ledger").returncode == 0
    refused = refusal(cases.run("release", str(cases.spec(month("mar", "case")))))
    assert "declared to share no document, and nothing checked it" in refused
    undeclared = str(cases.spec(month("feb", None)))
    assert "other ledger" in refusal(cases.run("release", undeclared, "--if-exists=ok"))


def test_a_plan_spends_nothing(corpus: Workspace) -> None:
    # Kills: specs that are planned each by itself, a plan that writes.
    folder = opened(corpus)
    corpus.release(spec("one"))
    paths = [str(corpus.spec(spec(name), f"{name}.yaml")) for name in ("one", "two", "three")]
    before = sorted(folder.iterdir())
    done = corpus.run("ledger", "plan", *paths)
    assert refusal(done) == "ledger: three would be refused"
    lines = done.stdout.splitlines()
    assert "in the ledger already" in lines[1]
    assert lines[2].endswith("limited-precision privacy at N = 2: epsilon 8 of 10")
    assert lines[4].startswith("refused   three: ledger: limited-precision privacy at N = 2: ")
    assert sorted(folder.iterdir()) == before
    fits = corpus.run("ledger", "plan", *paths[:2], "--json")
    assert fits.returncode == 0
    assert [one["known"] for one in json.loads(fits.stdout)] == [True, False]
    bare = corpus.spec({"release": "bare"}, "bare.yaml")
    assert "ledger: missing" in refusal(corpus.run("ledger", "plan", str(bare)))


def test_other_units_and_places_are_refused(corpus: Workspace) -> None:
    folder = opened(corpus, {"definition": "sentence", "epsilon": 5})
    said = refusal(corpus.run("release", str(corpus.spec(spec("one")))))
    assert said.startswith("ledger: it has no account for limited-precision local privacy (tokens")
    assert said.endswith("; its accounts are sentence-level privacy")
    (corpus.folder / "elsewhere").mkdir()
    (corpus.folder / "elsewhere/a.jsonl").write_text('{"text": "hello"}\n')
    opened(corpus, place="second")
    moved = spec("one", input={"path": "elsewhere/*.jsonl"}, ledger="second")
    said = refusal(corpus.run("release", str(corpus.spec(moved))))
    assert "in which input.path" in said
    assert "does not lie" in said
    for place, message in (
        ("nowhere", "holds no ledger; open one with"),
        ("input/led", "lies in the input"),
        ("released/one/led", "lies in the output"),
    ):
        changes = spec("one", ledger=place, input={"path": "input/*.jsonl"})
        assert message in refusal(corpus.run("release", str(corpus.spec(changes))))
    keyless = {"QUIETCORPUS_MASTER_KEY": None}
    path = str(corpus.spec(spec("one")))
    said = refusal(corpus.run("release", path, environment=keyless))
    assert said.startswith("ledger: nothing goes on from there without the same master key")
    assert len(records(folder)) == len(records(corpus.folder / "second")) == 1
    assert not (corpus.folder / "released").exists()
    assert "holds a ledger already" in refusal(corpus.run("ledger", "init", "second", "caps.yaml"))


def test_what_was_released_without_the_ledger_is_not_taken_for_counted(corpus: Workspace) -> None:
    # Kills: `--if-exists=ok` for a release that no ledger counts.
    folder = opened(corpus)
    corpus.release(spec("one", ledger=...))
    path = str(corpus.spec(spec("one")))
    said = refusal(corpus.run("release", path, "--if-exists=ok"))
    assert "other ledger" in said
    assert len(records(folder)) == 1


def test_a_ledger_that_was_tampered_with_is_of_no_use(corpus: Workspace) -> None:
    folder = opened(corpus)
    corpus.release(spec("one"))
    path = folder / "00000001.json"
    path.write_text(path.read_text().replace('"epsilon": "4"', '"epsilon": "1"'))
    second = str(corpus.spec(spec("two")))
    for arguments in (("ledger", "verify", "ledger"), ("release", second)):
        said = refusal(corpus.run(*arguments))
        assert "is damaged: record 1 is not the one that its seal is of" in said
    assert not (corpus.folder / "released/two").exists()


def test_a_ledger_in_an_object_store(corpus: Workspace, s3: S3Server) -> None:
    # Kills: a backend by which nothing is exclusive; a reader's credentials taken for a writer's.
    corpus.environment |= s3.environment
    place = f"s3://{BUCKET}/ledgers/mine"
    terms = {"corpus": "input", "caps": [PRECISION]}
    with (corpus.folder / "caps.yaml").open("w") as stream:
        YAML(typ="safe").dump(terms, stream)
    assert corpus.run("ledger", "init", place, "caps.yaml").returncode == 0
    corpus.release(spec("one", ledger=place))
    assert used(corpus, place) == 4
    verified = corpus.run("ledger", "verify", place)
    assert verified.returncode == 0, verified.stderr
    reader = s3.environment_of("reader")
    seen = corpus.run("ledger", "show", place, environment=reader)
    assert seen.returncode == 0, seen.stderr
    path = str(corpus.spec(spec("two", ledger=place)))
    said = refusal(corpus.run("release", path, environment=reader))
    assert said.startswith(f"ledger: {place}")
    assert "write" in said
    assert used(corpus, place) == 4
    give_back = ("ledger", "release-reservation", place, "one", "--reason", "x")
    assert "is committed" in refusal(corpus.run(*give_back))
