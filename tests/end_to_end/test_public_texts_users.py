"""Releases of public texts that protect users: what they hold and promise, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from card_schema import assert_valid
from machine import SURE
from public_pools import INPUT, TOPICS, Release, Texts, share_of, sums_met
from tampering import card as card_change
from tampering import refused, restate
from users_on_topics import LABELLED, LAW, LOUD, OF_TEAMS, OF_USERS, USERS, corpus

import quietcorpus as qc
from quietcorpus.indexes.documents.pool import open_pool
from quietcorpus.mechanisms.accounting.guarantees import Spending, UserPrivacy
from quietcorpus.mechanisms.users.clipped_sum import STEPS
from quietcorpus.pipelines.card.model import Card
from quietcorpus.pipelines.card.verify import verify
from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.caps import Terms
from quietcorpus.transforms.errors import InputError

if TYPE_CHECKING:
    from tests.conftest import Workspace


KINDS = {"users": OF_USERS, "teams": OF_TEAMS, "strata": OF_USERS | LABELLED}


@pytest.fixture(scope="module", params=KINDS)
def released(request: pytest.FixtureRequest, release_public_texts: Release) -> Workspace:
    """A release for users, for users with budgets, or in strata, that nobody may change."""
    return release_public_texts(corpus, **KINDS[request.param])


@pytest.mark.slow
def test_a_loud_user_counts_for_one(released: Workspace, pool: Path) -> None:
    # 59 users write on law, once each, and one writes twice as much on sport. Kills: documents that
    # vote for themselves, texts of the corpus, texts that are altered on the way. With some 25,000
    # votes of a topic in a stratum, five texts by noise alone, at 1,100 each, would take a fifth of
    # the weight: a chance below 1e-7.
    public = open_pool(str(pool)).texts.to_pylist()
    rows = pq.read_table(released.output / "texts.parquet").to_pylist()
    names = list(TOPICS)
    for row in rows:
        assert row["text"].encode() == public[row["id"]].encode()
    strata = "strata" in released.card()["mechanism"]
    for label in ("gold", "silver") if strata else (None,):
        assert share_of(rows, ["law"], label) > 0.8
    noisy = pq.read_table(released.output / "votes.parquet")["votes"].to_numpy().reshape(-1, 40)
    deviation = float(Fraction(released.card()["mechanism"]["noise_multiplier"])) * STEPS
    sport = noisy[:, 8 * names.index("sport") :][:, :8]
    assert np.abs(sport).max() < STEPS + 7 * deviation


def test_the_card_is_of_users_and_tells_no_number(released: Workspace) -> None:
    # Kills: counts on the card or in the README, a promise of documents, a statement that excepts
    # numbers which are not there.
    made = verify(str(released.output))
    assert made.counts is None
    card = released.card()
    assert_valid(card)
    stated = card["guarantee"]
    assert stated["definition"] == "user-level differential privacy"
    assert stated["unit"] == "all documents of one user"
    assert "numbers of documents" not in stated["statement"]
    assert Fraction(stated["parameters"]["epsilon_exact"]) <= 8
    assert any("under several names" in line for line in stated["not_protected"])
    assert not any("the unit is one document" in line for line in stated["not_protected"])
    mechanism = {name: own for name, own in card["mechanism"].items() if "software" not in name}
    told = json.dumps([mechanism, stated, card["budget"]])
    assert not re.search(r"\b(59|60|113|172)\b", told)
    readme = (released.output / "README.md").read_text()
    assert not re.search(r"\b(113|172)\b", readme.split("Artefacts:")[0])
    assert "a user's together a norm of 512 at most" in readme
    assert card["mechanism"]["users"] == USERS


def test_budgets_are_on_the_card(released: Workspace) -> None:
    # Kills: a group that is stated to have spent what another did, norms that nobody can check.
    card = released.card()
    groups = {g["name"]: g["epsilon"] for g in card["budget"]["total"]["groups"]}
    norms = card["mechanism"]["norms"]
    if "budgets" in card["mechanism"]:
        assert 1.9 < groups["silver"] <= 2
        assert 7.9 < groups["gold"] <= 8
        assert 0 < norms["silver"] < norms["gold"] == STEPS
        assert any("who has no budget" in line for line in card["guarantee"]["not_protected"])
    else:
        assert groups == {}
        assert norms == {"": STEPS}


def cheaper(content: dict[str, Any]) -> None:
    """Have the card promise half of epsilon throughout, in words as in numbers."""
    total = Card.model_validate(content).budget.total.guarantee
    assert isinstance(total, UserPrivacy)
    groups = tuple((name, own / 2) for name, own in total.groups)
    promised = UserPrivacy(total.epsilon / 2, total.delta, groups)
    restate(content, [Spending("votes", promised)], promised, counted=False)


def longer(content: dict[str, Any]) -> None:
    """Have the card say that users of each group may give a little more."""
    norms = content["mechanism"]["norms"]
    norms.update({name: norm + 1 for name, norm in norms.items()})


COSTS = "the noise that the card tells costs more than it says"
TAMPERED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "counts": (
        lambda card: card.update(counts={"documents": 172, "rejected": 0}),
        "guarantee: its words do not match the budget",
    ),
    "half of epsilon": (cheaper, COSTS),
    "a longer norm": (longer, COSTS),
    "another group": (lambda card: card["mechanism"]["norms"].update(bronze=512), COSTS),
    "no norms": (
        lambda card: card["mechanism"].pop("norms"),
        "mechanism: norms is missing, or does not belong",
    ),
    "longer votes": (lambda card: card["mechanism"].update(vote=512), COSTS),
    "another threshold": (lambda card: card["mechanism"].update(least_votes=1), COSTS),
    "no users": (
        lambda card: card["mechanism"].pop("user"),
        "mechanism: it does not give such a guarantee",
    ),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_card_that_was_changed_is_refused(released: Workspace, tmp_path: Path, name: str) -> None:
    # Kills: each check of the card's numbers.
    copied = shutil.copytree(released.output, tmp_path / "release")
    change, message = TAMPERED[name]
    card_change(change)(copied)
    assert message in refused(copied)


@pytest.mark.slow
def test_adding_a_user_changes_sums_by_one_vector(
    workspace: Workspace, public_texts: Texts, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The exact sums, as the noise meets them, with and without each of some users, from encoder to
    # sum. Kills: an embedding or a search that depends on other users' documents, a norm for each
    # label or split, a budget that is another's.
    from quietcorpus.transforms.users.votes import UserVoting

    met = sums_met(monkeypatch, UserVoting)
    # Roundings are of a release: in one of one corpus, they are the same with and without a user.
    monkeypatch.setattr(
        "quietcorpus.transforms.reading.documents.Plan.corpus_digest", lambda *_: b"one corpus"
    )
    rows = [
        {"text": text, "author": f"user-{n % 4}", "team": ("gold", "silver")[n % 2]}
        for n, text in enumerate([*LAW[:12], *LOUD[:12], "", "a text of no topic " * 200])
    ]

    def sums(kept: Sequence[dict[str, str]], size: int, name: str) -> np.ndarray:
        columns = {key: [row[key] for row in kept] for key in ("text", "author", "team")}
        workspace.parquet(columns, row_group_size=size)
        block = public_texts(**OF_TEAMS, **LABELLED)
        workspace.release_here(INPUT | {"output": f"released/{name}"} | block)
        return met.pop()

    whole = sums(rows, 100, "whole")
    np.testing.assert_array_equal(sums(rows[::-1], 3, "divided"), whole)
    norms = workspace.card(workspace.output.with_name("whole"))["mechanism"]["norms"]
    for user, team in (("user-0", "gold"), ("user-1", "silver")):
        rest = [row for row in rows if row["author"] != user]
        change = whole - sums(rest, 7, f"without-{user}")
        squares = int((change**2).sum())
        assert 0.9 * norms[team] ** 2 < squares <= norms[team] ** 2


@pytest.mark.slow
def test_the_ledger_charges_the_account_of_users(workspace: Workspace, public_texts: Texts) -> None:
    # Kills: a charge to documents, a cap that is passed, a unit that is another column's.
    corpus(workspace)
    caps = [
        {"definition": "user", "epsilon": 10, "delta": 1e-5},
        {"definition": "document", "epsilon": 10, "delta": 1e-5},
    ]
    terms = Terms.model_validate({"corpus": str(workspace.input), "caps": caps})
    place = Ledger.init(str(workspace.folder / "ledger"), terms).uri
    workspace.release_here(INPUT | {"ledger": place} | public_texts(**OF_USERS))
    first = workspace.card()
    spent = qc.ledger.show(place)["accounts"]
    by_title = {account["account"]: account for account in spent}
    assert set(by_title) == {"user-level privacy", "document-level privacy"}, spent
    charged = json.dumps(by_title["user-level privacy"])
    assert first["budget"]["total"]["epsilon_exact"] in charged
    again = {"release": "again", "output": "released/again", "ledger": place}
    with pytest.raises(InputError, match=r"ledger: .*user-level privacy"):
        workspace.release_here(INPUT | again | public_texts(**OF_USERS))
    other = public_texts(**OF_USERS | {"user": "team", "epsilon": 1})
    with pytest.raises(InputError, match="users of the column"):
        workspace.release_here(INPUT | again | other)


def test_users_without_a_budget_are_left_out(workspace: Workspace, public_texts: Texts) -> None:
    # The loudest have no budget, or no name: nothing of what they write stands out. A group whose
    # budget buys nothing is named before the run. Kills: a budget for whoever states none.
    own = [f"user-{number}" for number in range(59)] + [f"more-{n}" for n in range(113)]
    teams = ["gold"] * 59 + ["bronze", None, "silver"] * 37 + ["bronze"] * 2
    corpus(workspace, author=own, team=teams)
    budgets = {"column": "team", "epsilon": {"gold": 8, "silver": 1e-6}}
    changes = INPUT | public_texts(**OF_TEAMS | {"budgets": budgets})
    workspace.release_here(changes)
    rows = pq.read_table(workspace.output / "texts.parquet").to_pylist()
    assert share_of(rows, ["law"], None) > 0.8
    groups = workspace.card()["guarantee"]["parameters"]["groups"]
    assert {g["name"]: g["epsilon_exact"] for g in groups}["silver"] == "0"


def test_a_corpus_of_nobody_is_released_as_noise(workspace: Workspace, public_texts: Texts) -> None:
    # Kills: an error, or a table less, that tells that there is nobody.
    corpus(workspace, author=[None] * 172)
    workspace.release_here(INPUT | public_texts(**OF_USERS))
    verify(str(workspace.output))
    noisy = pq.read_table(workspace.output / "votes.parquet")["votes"].to_numpy()
    deviation = float(Fraction(workspace.card()["mechanism"]["noise_multiplier"])) * STEPS
    assert 0 < np.abs(noisy).max() < 7 * deviation


def test_a_large_delta_is_warned_of(workspace: Workspace, public_texts: Texts) -> None:
    # Kills: a delta that protects nobody, judged by the threshold of documents alone.
    corpus(workspace)
    workspace.release_here(INPUT | public_texts(**OF_USERS | {"delta": 2e-3}))
    first = workspace.card()["guarantee"]["not_protected"][0]
    assert first.startswith("any one of about 1,000 users with certainty: delta, 0.002, is not ")


@pytest.mark.slow
def test_an_audit_runs_and_can_fail(
    workspace: Workspace, public_texts: Texts, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: an audit of documents in place of users, or of the largest group alone.
    from quietcorpus.mechanisms.votes import user_votes

    corpus(workspace)
    monkeypatch.chdir(workspace.folder)
    spec = str(workspace.spec(INPUT | public_texts(**OF_TEAMS)))
    found = qc.audit(spec, confidence=SURE)
    assert found["passed"]
    names = [one["name"] for one in found["audits"]]
    assert names == [
        *(f"a user's votes: group {group}" for group in ("silver", "gold")),
        "votes of documents without a part",
        *(f"accounting: group {group}" for group in ("silver", "gold")),
        *(f"votes, with and without a user: group {group}" for group in ("silver", "gold")),
    ]
    real = user_votes.clipped
    monkeypatch.setattr(user_votes, "clipped", lambda votes, bits, _: real(votes, bits))
    wrong = {one["name"]: one["verdict"] for one in qc.audit(spec, confidence=SURE)["audits"]}
    assert wrong["a user's votes: group silver"] == "failed"
    assert wrong["votes, with and without a user: group silver"] == "failed"
    assert wrong["a user's votes: group gold"] == "passed"
