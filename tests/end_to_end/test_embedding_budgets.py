"""Budgets from a column of numbers, and users who leave when theirs is spent."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from embedding_releases import (
    Record,
    digests_of,
    documents,
    embeddings,
    prepare,
    release_all,
    write_corpus,
)

from quietcorpus.mechanisms.accounting.privacy_loss import epsilon_of
from quietcorpus.pipelines.card.verify import verify

if TYPE_CHECKING:
    from tests.conftest import Workspace

LEVELS = {"column": "team", "levels": [60, 7.5]}
TRAINING = {"steps": 40, "lot": 30, "participation": "steps"}
# The number of each user in turn, and the level that it buys.
NUMBERS = ("60", "7.5", "59.9", "1e9", "7.49", "nothing", None)
BOUGHT = ("60", "7.5", "7.5", "60", None, None, None)


def with_numbers(texts: list[str], shown: tuple[str | None, ...]) -> list[Record]:
    """Each user's documents, with one of these in the column of budgets."""
    return [
        record | {"team": shown[int(record["author"].removeprefix("user-")) % len(shown)]}
        for record in documents(texts)
    ]


@pytest.fixture
def prepared(workspace: Workspace, lee_texts: list[str]) -> Workspace:
    prepare(workspace, lee_texts)
    return workspace


def released(workspace: Workspace, records: list[Record], method: str, **block: Any) -> Any:
    """The digests of a release's files, and its card."""
    write_corpus(workspace, records)
    output = f"out-{len(list(workspace.folder.glob('released/*')))}"
    release_all(workspace, embeddings(workspace, method, **block), output)
    place = workspace.output.with_name(output)
    verify(str(place))
    return digests_of(place), workspace.card(place)


@pytest.mark.slow
@pytest.mark.usefixtures("one_corpus")
def test_a_number_buys_the_largest_level_below_it(
    prepared: Workspace, lee_texts: list[str]
) -> None:
    # Kills: the nearest level, a budget above the number, users below the least level who have a
    # part all the same, numbers that change a byte by themselves.
    block = {"budgets": LEVELS}
    given, card = released(prepared, with_numbers(lee_texts, NUMBERS), "cooccurrence", **block)
    bought, _ = released(prepared, with_numbers(lee_texts, BOUGHT), "cooccurrence", **block)
    assert given == bought
    groups = {g["name"]: g["epsilon"] for g in card["budget"]["total"]["groups"]}
    assert groups.keys() == {"60", "7.5"}
    assert 7 < groups["7.5"] <= 7.5
    assert 59 < groups["60"] <= 60
    # The negative control: one user with a budget.
    changed = with_numbers(lee_texts, ("7.5", *NUMBERS[1:]))
    assert released(prepared, changed, "cooccurrence", **block)[0] != given


@pytest.mark.slow
def test_users_leave_before_their_budget_is_passed(
    prepared: Workspace, lee_texts: list[str]
) -> None:
    # Kills: a group that goes on, a lower rate as well, a card that says what it would have cost to
    # stay.
    block = {"budgets": {**LEVELS, "levels": [8, 4]}, "training": TRAINING}
    records = with_numbers(lee_texts, ("8", "4"))
    _, card = released(prepared, records, "sgd", **block)
    groups = {g["name"]: g for g in card["mechanism"]["groups"]}
    rates = {Fraction(g["sampling_rate"]) for g in groups.values()}
    assert rates == {Fraction(1, 10)}
    assert groups["8"]["last_step"] == 40
    last = groups["4"]["last_step"]
    assert 0 < last < 40
    noise, delta = Fraction(card["mechanism"]["noise_multiplier"]), Fraction("2e-5")
    spent = {g["name"]: Fraction(g["epsilon_exact"]) for g in card["budget"]["total"]["groups"]}
    assert spent["4"] == epsilon_of(Fraction(1, 10), noise, last, delta) <= 4
    assert epsilon_of(Fraction(1, 10), noise, last + 1, delta) > 4
