"""Guarantees that mean little: a warning before anything is read, the same sentence on the card,
and with --strict no release."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from embedding_releases import WORDS, digests_of, embeddings, prepare, release_all
from machine import MASTER_KEY

if TYPE_CHECKING:
    from tests.conftest import Workspace

WARNING = "WARNING not protected: "
NOWHERE = {"input.path": "input/nothing-*.jsonl"}
BAG = {"mechanism.compression": {"method": "frequency", "size": 2}}
PER_ENTRY = BAG | {"mechanism.accounting": "per-entry", "mechanism.histogram_epsilon": 0.5}
HISTOGRAM = {"mechanism.kind": "histogram", "mechanism.compression": ...}
PASSAGE = "a passage of one document against a reader who knows everything else: "
WEAK: dict[str, tuple[dict[str, Any], str]] = {
    # Each stage alone is at most 10 here.
    "sum": (
        BAG | {"mechanism.epsilon": 10, "mechanism.histogram_epsilon": 1},
        f"{PASSAGE}epsilon, 11, is above 10, so that even odds may become 60,000 to 1",
    ),
    "per-entry": (
        PER_ENTRY | {"mechanism.epsilon": 250},
        f"{PASSAGE}epsilon, 1000.5, is above 10, so that even odds may become 10^435 to 1",
    ),
    "histogram": (
        HISTOGRAM | {"mechanism.epsilon": 10.5},
        f"{PASSAGE}epsilon, 10.5, is above 10, so that even odds may become 37,000 to 1",
    ),
    "one token": (
        HISTOGRAM | {"mechanism.epsilon": 6, "mechanism.precision": 1},
        "one replaced word of one document against a reader who knows everything else: twice "
        "epsilon, 12, is above 10, so that even odds may become 163,000 to 1",
    ),
    "delta": (
        HISTOGRAM | {"mechanism.vocabulary": {"private": {"epsilon": 4, "delta": 1e-4}}},
        "passages with certainty: delta, 0.0001, is above 1e-5, and a mechanism that published "
        "one document in 10,000 whole would keep to it",
    ),
}


REASONS = {
    ", is above 10, so": "large-epsilon",
    "not below 1 / users": "large-delta",
    "a chance of 1 (": "unchanged-words",
}


def warnings(done: Any) -> list[str]:
    lines = done.stderr.splitlines()
    return [line.removeprefix(WARNING) for line in lines if line.startswith(WARNING)]


def reason_of(said: str) -> str | None:
    """The name under which a weakness is accepted, if it must be."""
    for sign, reason in REASONS.items():
        if sign in said:
            return reason
    return None


def assert_said(workspace: Workspace, changes: dict[str, Any]) -> list[str]:
    """Return the warnings, once each: on the terminal, first on the card, and in its README."""
    done = workspace.release(changes)
    said = warnings(done)
    assert said
    assert len(set(said)) == len(said)
    assert workspace.card()["guarantee"]["not_protected"][: len(said)] == said
    text = (workspace.output / "README.md").read_text()
    assert all(f"- {line}\n" in text for line in said)
    assert workspace.run("verify", "released/out").returncode == 0
    return said


def assert_refused(
    workspace: Workspace, changes: dict[str, Any], said: str, reason: str | None = None
) -> None:
    """There is no release, and nothing was read: the input is not even there.

    That is so for a weakness with a reason, unless it is accepted by name, and for another one
    with --strict.
    """
    given = [] if reason else ["--strict"]
    message = workspace.refused(changes | NOWHERE | {"accept": []}, *given)
    assert message.startswith("mechanism: " if reason else "--strict: ")
    assert f"not protected: {said}; " in message
    if reason:
        assert message.endswith(f", or accept it by name: `accept: [{reason}]`")


@pytest.mark.parametrize("name", WEAK)
def test_a_guarantee_that_means_little(workspace: Workspace, name: str) -> None:
    # Kills: no warning, a stage's epsilon in place of the total, a warning on the terminal alone.
    changes, said = WEAK[name]
    workspace.json_lines(["quiet world hello", "quiet world"] * 300)
    assert assert_said(workspace, changes) == [said]
    # Kills: --strict that warns and goes on, or that reads first.
    workspace.output = workspace.output.with_name("other")
    assert_refused(workspace, changes | {"output": "released/other"}, said, reason_of(said))


def test_the_warning_comes_before_anything_is_read(workspace: Workspace) -> None:
    # Kills: a warning once the budget is spent.
    changes, said = WEAK["per-entry"]
    done = workspace.run("release", str(workspace.spec(changes | NOWHERE)))
    assert "nothing-" in workspace.error_of(done, 4)
    assert warnings(done) == [said]


STRONG: dict[str, dict[str, Any]] = {
    "sum": BAG | {"mechanism.epsilon": 9, "mechanism.histogram_epsilon": 1},
    "per-entry": PER_ENTRY | {"mechanism.epsilon": 2},
    "one token": HISTOGRAM | {"mechanism.epsilon": 5, "mechanism.precision": 1},
    "delta": HISTOGRAM | {"mechanism.vocabulary": {"private": {"epsilon": 4, "delta": 1e-5}}},
}


@pytest.mark.parametrize("name", STRONG)
def test_a_guarantee_at_the_threshold(workspace: Workspace, name: str) -> None:
    # Kills: a warning about everything, which nobody reads; --strict that refuses everything.
    workspace.json_lines(["quiet world hello", "quiet world"] * 300)
    done = workspace.release(STRONG[name], "--strict")
    assert "WARNING" not in done.stderr


def test_a_key_that_can_be_guessed(workspace: Workspace) -> None:
    # Kills: a variable that was left over from a test, of which nobody hears, and no reader.
    workspace.environment |= {
        "QUIETCORPUS_MASTER_KEY": "00" * 32,
        "QUIETCORPUS_ALLOW_WEAK_KEY": "1",
    }
    workspace.json_lines(["quiet world hello"] * 20)
    said = "anything: the master key can be guessed, and with it every noise is known"
    assert assert_said(workspace, {}) == [said]
    workspace.output = workspace.output.with_name("other")
    assert_refused(workspace, {"output": "released/other"}, said)
    # The negative control: the variable alone is no weakness.
    workspace.environment["QUIETCORPUS_MASTER_KEY"] = MASTER_KEY
    done = workspace.release({"output": "released/other"}, "--strict")
    assert "WARNING" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("method", ["sgd", "cooccurrence"])
def test_users_who_contribute_nothing(
    workspace: Workspace, lee_texts: list[str], method: str
) -> None:
    # Kills: a group whose budget is spent on nothing, and nobody hears of it; the wrong group.
    prepare(workspace, lee_texts)
    budgets = {"column": "team", "epsilon": {"gold": 60, "silver": 0.0001}}
    block: dict[str, Any] = {"users": 40_000, "budgets": budgets, "few_users": "accept"}
    if method == "sgd":
        block["training"] = {"steps": 5, "lot": 100, "participation": "steps"}
    changes = embeddings(workspace, method, **block)
    changes["input.path"] = NOWHERE["input.path"]
    done = workspace.run("release", str(workspace.spec(changes)))
    said = "silver: so small that its users contribute nothing to the release; raise it, or lower"
    warned = [line for line in done.stderr.splitlines() if "contribute nothing" in line]
    assert len(warned) == 1
    assert said in warned[0]
    message = workspace.refused(changes, "--strict")
    assert said in message
    assert message.startswith("--strict: ")


def test_a_sentence_at_an_epsilon_that_means_little(
    workspace: Workspace, sentences: Callable[..., dict[str, Any]]
) -> None:
    # Kills: a kind that is not asked.
    said = (
        "one sentence of one document against a reader who knows everything else: epsilon, 25, is "
        "above 10, so that even odds may become 10^11 to 1"
    )
    done = workspace.run("release", str(workspace.spec(sentences(epsilon=25) | NOWHERE)))
    assert warnings(done) == [said]
    assert_refused(workspace, sentences(epsilon=25), said, reason_of(said))
    done = workspace.run("release", str(workspace.spec(sentences(epsilon=10) | NOWHERE)))
    assert warnings(done) == []


UNCHANGED = r"most words(.*): the typical word .* with a chance of (0\.\d+|1) \(.*N_w\), above 0\.5"


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["madlib", "brr"])
def test_words_that_come_back_unchanged(
    workspace: Workspace, words: Callable[..., dict[str, Any]], mechanism: str
) -> None:
    # Kills: an epsilon of words that is looked at without their index, and another word than the
    # typical one.
    workspace.json_lines(["the police in the city"] * 5)
    theirs = {"madlib": "brr", "brr": "madlib"}[mechanism]
    matching = {"matching": {"mechanism": theirs, "epsilon": 100}}
    (said,) = assert_said(workspace, words(mechanism=mechanism, epsilon=matching))
    ((where, chance),) = re.findall(UNCHANGED, said)
    assert where == ""
    (typical,) = workspace.card()["meaning"]["typical"]
    assert float(chance) == pytest.approx(typical["unchanged"]["median"], abs=0.01)
    assert float(chance) > 0.5
    changes = words(mechanism=mechanism, epsilon=matching) | {"output": "released/other"}
    workspace.output = workspace.output.with_name("other")
    assert_refused(workspace, changes, said, reason="unchanged-words")

    hidden = {"epsilon": 0.01, "mechanism": mechanism}
    done = workspace.release(words(**hidden) | {"output": "released/hidden"}, "--strict")
    assert "WARNING" not in done.stderr


@pytest.mark.slow
def test_words_of_short_documents(
    workspace: Workspace, words: Callable[..., dict[str, Any]]
) -> None:
    # Kills: long documents alone, whose words share little; the shortest that is known to be weak.
    workspace.json_lines(["the police in the city"] * 5)
    (said,) = assert_said(workspace, words(epsilon=..., document_epsilon=1000))
    ((where, _),) = re.findall(UNCHANGED, said)
    (longest,) = re.findall(r" of a document of (\d+) words or fewer", where)
    weak = [
        one["document_words"]
        for one in workspace.card()["meaning"]["typical"]
        if one["unchanged"]["median"] > 0.5
    ]
    assert int(longest) == max(weak)
    assert len(weak) < 4


@pytest.mark.slow
def test_the_word_of_a_document_of_one(
    workspace: Workspace, words: Callable[..., dict[str, Any]]
) -> None:
    # Kills: typical lengths alone: one word has the whole epsilon, ten words have a tenth each.
    changes = words(epsilon=..., document_epsilon=40)
    done = workspace.run("release", str(workspace.spec(changes | NOWHERE)))
    (said,) = warnings(done)
    ((where, chance),) = re.findall(UNCHANGED, said)
    assert where == " of a document of one word, perhaps of any below 10"
    assert float(chance) > 0.5
    assert_refused(workspace, changes, said)


def test_embedded_words_that_come_back_unchanged(
    workspace: Workspace, sentences: Callable[..., dict[str, Any]], word_index: Any
) -> None:
    # Kills: the one kind of metric privacy that asks nobody.
    changes = sentences(mechanism="madlib", utility=..., epsilon=100, index=str(word_index))
    done = workspace.run("release", str(workspace.spec(changes | NOWHERE)))
    (said,) = warnings(done)
    assert re.fullmatch(UNCHANGED, said)
    assert_refused(workspace, changes, said, reason_of(said))


FEW = (
    r"the vectors' worth, of which no guarantee speaks: about 50 users are too few for so much "
    r"noise, (\d+) to a standard deviation of it where ([\d,]+) are needed"
)


@pytest.mark.parametrize("method", ["sgd", "cooccurrence"])
def test_too_few_users(workspace: Workspace, lee_texts: list[str], method: str) -> None:
    # Kills: noise that is published as vectors, where nobody said so.
    prepare(workspace, lee_texts[:50])
    block = {"users": 50, "epsilon": 4, "few_users": ...}
    block |= {"training": {"steps": 5}} if method == "sgd" else {}
    message = workspace.refused(embeddings(workspace, method, **block))
    assert message.startswith("mechanism.users: the vectors' worth, ")
    assert message.endswith(", which protects them less, or say `few_users: accept`")

    changes = embeddings(workspace, method, **block | {"few_users": "accept"})
    done = workspace.run("release", str(workspace.spec(changes | NOWHERE)))
    (said,) = warnings(done)
    found = re.fullmatch(FEW, said)
    assert found
    assert int(found[1]) < 100
    assert found[2] == {"sgd": "5,000", "cooccurrence": "1,000"}[method]
    assert said in message
    assert_refused(workspace, changes, said)


@pytest.mark.slow
def test_users_enough(workspace: Workspace, lee_texts: list[str]) -> None:
    # Kills: a rule that refuses all, or that looks at users without their noise.
    prepare(workspace, lee_texts)
    for method in ("sgd", "cooccurrence"):
        block = {"users": 40_000, "epsilon": 4, "training": ..., "few_users": ...}
        changes = embeddings(workspace, method, **block) | NOWHERE
        changes["input"] = {"path": NOWHERE["input.path"]}
        done = workspace.run("release", str(workspace.spec(changes)))
        assert "nothing-" in workspace.error_of(done, 4)
        assert "WARNING" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("method", ["sgd", "cooccurrence"])
def test_who_accepts_few_users_draws_the_same(
    workspace: Workspace, lee_texts: list[str], method: str
) -> None:
    # Kills: a key that changes no law and yet the noise: the same question, answered twice.
    prepare(workspace, lee_texts)
    block: dict[str, Any] = {"users": 40_000, "few_users": ...}
    block |= {"training": {"steps": 2}} if method == "sgd" else {}
    release_all(workspace, embeddings(workspace, method, **block), "first")
    release_all(workspace, embeddings(workspace, method, **block | {"few_users": "accept"}), "two")
    first, two = (digests_of(workspace.output.with_name(name)) for name in ("first", "two"))
    assert first == two


def test_few_words_that_stand_out_of_the_noise(workspace: Workspace, lee_texts: list[str]) -> None:
    # Only the noisy counts tell. Kills: words that are left out, and the card does not say so.
    prepare(workspace, lee_texts)
    said = assert_said(workspace, embeddings(workspace, "cooccurrence", epsilon=2))
    kept = workspace.card()["mechanism"]["vocabulary_size"]
    assert kept < WORDS / 2
    assert said[1:] == [
        f"the vectors' worth, of which no guarantee speaks: {kept} of {WORDS} words stand out of "
        "the noise; the others are left out"
    ]
    # The negative control: more of them do.
    changes = embeddings(workspace, "cooccurrence", epsilon=90) | {"output": "released/more"}
    done = workspace.release(changes)
    assert "the others are left out" not in "".join(warnings(done))


def test_what_is_accepted_stands_on_the_card(workspace: Workspace) -> None:
    # Kills: a reason that is accepted in silence, or one that accepts another.
    workspace.json_lines(["quiet world hello"] * 30)
    weak = HISTOGRAM | {"mechanism.epsilon": 10.5}
    message = workspace.refused(weak | {"accept": ["large-delta", "kept-text"]})
    assert message.endswith("or accept it by name: `accept: [large-epsilon]`")
    done = workspace.release(weak | {"accept": ["large-epsilon"]}, "--strict")
    assert len(warnings(done)) == 1
    card = workspace.card()
    assert card["accepted"] == ["large-epsilon"]
    line = (
        "what is refused otherwise, and the publisher has accepted by name: large-epsilon (an "
        "epsilon above 10, of a whole unit)"
    )
    assert card["guarantee"]["not_protected"][1] == line
    for name in ("README.md", "page.html"):
        assert line in (workspace.output / name).read_text()
    assert workspace.run("verify", "released/out").returncode == 0
    asked = workspace.spec(weak | {"accept": ["large-epsilon"], "output": "released/other"})
    done = workspace.run("release", str(asked), "--dry-run")
    assert "accepted  large-epsilon: an epsilon above 10, of a whole unit\n" in done.stdout


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_delta_above_one_in_the_documents(workspace: Workspace, form: str) -> None:
    # Kills: a delta by which one document may be published whole; a refusal that spends where
    # the files state their numbers, or another run that goes on with what was spent.
    texts = ["quiet world hello"] * 30
    if form == "jsonl":
        workspace.json_lines(texts)
    else:
        workspace.parquet({"text": texts})
    caps = {"definition": "limited-precision", "precision": 2, "epsilon": 9, "delta": 0.5}
    terms = {"corpus": "input", "caps": [caps]}
    (workspace.folder / "caps.yaml").write_text(json.dumps(terms))
    assert workspace.run("ledger", "init", "ledger", "caps.yaml").returncode == 0
    private = {"private": {"epsilon": 4, "delta": 0.1}}
    changes = HISTOGRAM | {"mechanism.vocabulary": private, "input.path": f"input/*.{form}"}
    message = workspace.refused(changes | {"ledger": "ledger", "accept": []})
    assert message == (
        "mechanism: not protected: any one of more than 10 documents with certainty: delta, 0.1, "
        "is above 1 / documents; lower delta, or accept it by name: `accept: [large-delta]`"
    )
    shown = workspace.run("ledger", "show", "ledger", "--json").stdout
    # JSON Lines do not state how many there are: noise was drawn, so the budget is spent, and the
    # same run goes on with it.
    assert ('"state": "refused"' in shown) == (form == "jsonl")
    assert ('"release": "test"' in shown) == (form == "jsonl")
    workspace.release(changes | {"accept": ["large-delta"], "ledger": "ledger"})
