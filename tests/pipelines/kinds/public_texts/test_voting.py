"""The pool and the rounds that a dry run and a remedy name."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

from quietcorpus.mechanisms.accounting.guarantees import ceiling
from quietcorpus.mechanisms.votes.pool_size import least_rounds
from quietcorpus.mechanisms.votes.pure_votes import PureVotes
from quietcorpus.mechanisms.votes.votes import Votes
from quietcorpus.pipelines.kinds.public_texts.spec import PublicTextsSpec
from quietcorpus.pipelines.kinds.public_texts.voting import few_users, of_room
from quietcorpus.transforms.votes import SearchedLists, Strata, Voting

VOTES = Votes(
    500, Fraction(1), Fraction(1, 10**6)
)  # 500 votes of 22, which stand out from 6,490 on


def voting(guarantee: object = None, **changes: Any) -> Voting:
    manifest = SimpleNamespace(guarantee=guarantee)
    pool: Any = SimpleNamespace(open=lambda: SimpleNamespace(manifest=manifest))
    return replace(Voting(VOTES, pool, 30_000, None), **changes)  # type: ignore[arg-type]


def said(users: int | None = None, **changes: Any) -> list[str]:
    spec: Any = SimpleNamespace(users=users)
    found: PublicTextsSpec = spec
    return of_room(voting(**changes), found, "documents" if users is None else "users")


def test_how_many_documents_a_pool_needs() -> None:
    # 30,000 * 6,490 / 11,000, and 1,000 * 11,000 / 6,490. Kills: the reverse of either, labels that
    # do not divide the documents.
    assert said() == [
        "where votes spread evenly over the pool, texts stand out from about 17,700 documents on; "
        "every 1,000 documents suffice for a pool of about 1,694"
    ]
    (two,) = said(strata=Strata("label", ("a", "b")), smooth=True)
    assert two == (
        "where votes spread evenly over the pool and 2 labels, texts stand out by their own votes "
        "alone from about 35,400 documents on; every 1,000 documents suffice for a pool of about "
        "847"
    )


def test_how_large_a_pool_may_be_for_users() -> None:
    # Kills: a number of users that is not the spec's.
    assert said(2_000) == [
        "where votes spread evenly over the pool, texts stand out of a pool of at most 3,389 by "
        "about 2,000 users; this one has 30,000"
    ]


def test_which_rounds_narrow_a_pool_with_lists() -> None:
    # Kills: rounds for a pool without lists, or for one that was narrowed; no rounds, or those of a
    # Gaussian, where noise is geometric.
    lists = {"search": SearchedLists(300, 30)}
    _, rounds, both = said(**lists)
    found = least_rounds(VOTES, Fraction(100), 1)
    assert found is not None
    assert rounds == (
        f"a first release at epsilon {float(found.first):g} suffices to narrow the pool to those "
        "of its lists of about 100 texts that stand out in a second one at epsilon "
        f"{float(found.second):g} (`quietcorpus index narrow-pool`)"
    )
    assert both == (
        "both at delta 1e-6, with noise multipliers of "
        f"{float(found.noise_multipliers[0]):g} and {float(found.noise_multipliers[1]):g}, cost "
        f"epsilon {ceiling(found.epsilon)} at that delta, by the exact composition of two "
        "Gaussians, which an account of `composition: gaussian` and `approximate_delta: 0` "
        f"counts; a basic one counts epsilon {ceiling(found.first + found.second)}, delta 2e-6"
    )
    assert len(said(**lists, guarantee={"definition": "document"})) == 1
    # Its epsilons add up: 6 * 100 / .9 is above 3 * sqrt(2 * 100) / .1.
    _, pure, both = said(**lists, votes=PureVotes(3, Fraction(1)))
    assert pure.startswith("a first release at epsilon 0.1 suffices to narrow the pool to those")
    assert "in a second one at epsilon 0.9 (" in pure
    assert both.startswith("both together cost epsilon 1, without a delta, by the plain sum")
    assert len(said(search=SearchedLists(30_000, 30))) == 1  # of one text each


def test_rounds_keep_to_the_budget_as_they_are_printed() -> None:
    # Kills: epsilons in six digits, of which 11.1112 passes a budget of 12.345729.
    _, pure, both = said(search=SearchedLists(300, 30), votes=PureVotes(3, Fraction("12.345729")))
    assert "at epsilon 1.234572 suffices" in pure
    assert "at epsilon 11.111157 (" in pure
    assert "cost epsilon 12.345729, without" in both


def test_users_who_are_too_few_for_any_pool() -> None:
    # 295 users' 3,245,000 are for 500 texts. Kills: a doubt of those that are enough.
    assert few_users(voting(), 295) == []
    (doubt,) = few_users(voting(), 294)
    assert doubt.startswith("mechanism.users: where the votes of about 294 users spread evenly, no")
    assert "295 would be enough for a pool of 500 texts" in doubt
    assert few_users(voting(smooth=True), 294) == []
