"""The mechanism of `kind: histogram` with `user` on the card, and what is checked of its like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from fractions import Fraction
from typing import Any, Literal, Protocol

import pyarrow as pa

from quietcorpus.mechanisms.accounting.concentrated import rho_of
from quietcorpus.mechanisms.accounting.filters import Concentrated
from quietcorpus.mechanisms.accounting.guarantees import Spending, UserPrivacy
from quietcorpus.transforms.errors import InputError

from ...card.costs import (
    check_cost,
    courses_of_norms,
    is_accountable,
    is_solved_alike,
    within_deviations,
)
from ...card.limits import OF_NAMES, are_named, budget_limits, check_budgets, promised, spendable
from ...card.mechanism import FileFormat, Mechanism, Product, Promise
from ...card.model import Card, UsedArtefact
from ...card.parameters import Rational, UserParameters, exacts
from ...card.rows import VOCABULARY_FORMAT, check_vocabulary, misfit_of
from ...card.statements import NUMBERS, WHETHER
from ...card.weakness import Weakness, of_noise, of_users
from ...schema.blocks import GroupBudgets
from ...storage import layout
from .spec import ContributionsSpec

STAGE = "word counts"
LEAST_ON_NOISE = 30
"""Users needed per standard deviation of a count: of a word that one in ten uses, three of them."""


class CountsUsers(Protocol):
    """A mechanism on a card that counts users' words."""

    users: int
    epsilon: float | None
    budgets: dict[str, Any] | None
    delta: float
    vocabulary: dict[str, Any]
    noise_multiplier: str


class UserHistogramMechanism(Mechanism):
    """A release of a histogram of users' words."""

    kind: Literal["histogram"]
    user: str
    users: int
    epsilon: float | None = None
    budgets: dict[str, Any] | None = None
    delta: float
    contributions: dict[str, int]
    vocabulary: dict[str, Any]
    tokenizer: str
    vocabulary_size: int
    noise_multiplier: Rational
    norms: dict[str, int]
    deviation: float
    software: str

    @property
    def promise(self) -> Promise:
        """Return the form of user-level privacy."""
        return Promise(UserParameters)

    @property
    def product(self) -> Product:
        """Return the sort of product that the release is."""
        return "statistics"

    @property
    def proofs(self) -> tuple[str, ...]:
        """Return the modules with the proofs of its noise."""
        chosen = ("users/user_vocabulary",) if "private" in self.vocabulary else ()
        return ("users/word_counts", "users/clipped_sum", *chosen, "noise/gaussian")

    @property
    def notes(self) -> list[str]:
        """Return the README's note on what a count is of."""
        bound = ContributionsSpec.model_validate(self.contributions)
        times = "once" if bound.weight == 1 else f"up to {bound.weight:,} times"
        return [
            f"A weight is a sum over users: each counts a word {times}, and counts less of each "
            f"if that is more than {bound.items:,} words would be in full. Noise of a standard "
            f"deviation of {self.deviation:,.4g} is on every weight."
        ]

    def limits(
        self, spendings: Sequence[Spending[Any]], artefacts: Sequence[UsedArtefact]
    ) -> list[str]:
        """Return the lines on what counts do not hide."""
        return user_limits(are_named(self.budgets))

    def results(self, block: Any) -> tuple[Set[str], Set[str]]:
        """Return the number of words, and the noise."""
        found = {"vocabulary_size", "noise_multiplier", "norms", "deviation", "software"}
        return found, set()

    @property
    def used(self) -> list[tuple[str, str]]:
        """Return the vocabulary, if it is public."""
        public = self.vocabulary.get("public")
        return [("vocabulary", public)] if public is not None else []

    @property
    def files(self) -> Mapping[str, FileFormat]:
        """Return the format of the words, with their counts."""
        return {layout.VOCABULARY: VOCABULARY_FORMAT}

    @property
    def required(self) -> tuple[str, ...]:
        """Return the path of the words."""
        return (layout.VOCABULARY,)

    def weaknesses(self, card: Card) -> tuple[Sequence[Weakness], Sequence[Weakness]]:
        """Return those of delta before, and those of the noise after."""
        total = card.budget.total.guarantee
        assert isinstance(total, UserPrivacy)
        on_noise = self.users / self.deviation
        return of_users(total.delta, self.users), of_noise(self.users, on_noise, LEAST_ON_NOISE)

    def misfit(self, name: str, rows: pa.Table, tables: Mapping[str, pa.Table]) -> str | None:
        """Return the fault of the words' rows; None if there is none."""
        least = within_deviations(self.deviation) + 1  # a count is rounded
        return misfit_of(rows, self.vocabulary, self.tokenizer, least)

    def charged(self, stages: Sequence[Any]) -> Concentrated | None:
        """Return what a filter charges for the noise of counts, and the vocabulary."""
        own = Concentrated(rho_of(Fraction(self.noise_multiplier)))
        return own + charged_for_vocabulary(self, stages)


def user_limits(named: bool | None) -> list[str]:
    """Return the lines on what sums over users do not hide; `named` is that of `budget_limits`."""
    return [
        f"{NUMBERS}, which this card states",
        *OF_NAMES,
        f"{WHETHER}: a corpus without a word of the vocabulary, with too many unreadable records, "
        "or with an identifier twice, makes none",
        "anything from whoever runs the release and sees the text",
        *budget_limits(named),
    ]


def charged_for_vocabulary(mechanism: CountsUsers, stages: Sequence[Any]) -> Concentrated:
    """Return what a filter charges for the vocabulary: nothing for a public one."""
    # The module imports optional packages.
    from quietcorpus.mechanisms.users.user_vocabulary import UserVocabulary

    private = mechanism.vocabulary.get("private")
    if private is None:
        return Concentrated(Fraction(0))
    cost = Fraction(stages[0].epsilon_exact), Fraction(stages[0].delta_exact)
    return UserVocabulary(private["words"], *cost).concentrated


Budgets = Mapping[str, Fraction]
Solved = tuple[dict[str, Any], Mapping[str, Fraction]]
"""The noise that solves a budget, as a card states it, and the epsilon that each group spends."""


def of_norms(budgets: Budgets, delta: Fraction) -> Solved:
    """Solve for the norms of one sum."""
    # The module imports optional packages.
    from quietcorpus.mechanisms.users.group_norms import GroupNorms

    norms = GroupNorms.solved(budgets, delta)
    noise = str(norms.mechanism.noise_multiplier)
    return {"noise_multiplier": noise, "norms": dict(norms.most)}, norms.spent


def are_solved(
    mechanism: CountsUsers, card: Card, solve: Callable[[Budgets, Fraction], Solved]
) -> bool:
    """Tell whether noise and spending are those that `solve` finds for budgets and a delta."""
    *before, stage = (one.parameters.guarantee for one in card.budget.stages)
    assert isinstance(stage, UserPrivacy)
    total = card.budget.total.guarantee
    if not isinstance(total, UserPrivacy) or total.delta not in exacts(mechanism.delta):
        return False
    cost = sum((one.epsilon for one in before), start=Fraction(0))
    for budgets in spendable(mechanism.epsilon or 0, mechanism.budgets, cost):
        stated, spent = solve(budgets, stage.delta)
        found = card.mechanism.model_dump(mode="json", include=set(stated))
        if found == stated and stage == promised(spent, stage.delta, mechanism.budgets):
            return True
    return False


def check_total(uri: str, mechanism: CountsUsers, card: Card, stage: str) -> None:
    """Check that the budget is the mechanism's, and ends in a stage; raises InputError."""
    total = card.budget.total
    assert isinstance(total, UserParameters)
    if card.budget.stages[-1].stage != stage:
        raise InputError(f"{uri}: budget: its stages are not the mechanism's")
    check_budgets(uri, total, mechanism.budgets)
    most = total.epsilon if mechanism.epsilon is None else mechanism.epsilon
    if mechanism.delta != total.delta or most < total.epsilon:
        raise InputError(f"{uri}: mechanism: epsilon or delta is not the budget's")
    if {file.rows for file in card.files} != {card.mechanism.vocabulary_size}:  # type: ignore[attr-defined]
        raise InputError(f"{uri}: mechanism: vocabulary_size is not the number of words")


def names_of(budgets: Mapping[str, Any] | None) -> Set[str]:
    """Return the names of the groups of users; one of no name, if they have no budgets."""
    if budgets is None:
        return {""}
    return GroupBudgets.model_validate(budgets).of_groups.keys()


def are_norms(norms: Mapping[str, int], budgets: Mapping[str, Any] | None) -> bool:
    """Tell whether norms are those of the groups, and the largest is the clipping norm."""
    # The module imports optional packages.
    from quietcorpus.mechanisms.users.clipped_sum import STEPS

    return max(norms.values(), default=0) == STEPS and norms.keys() == names_of(budgets)


def check(output: str, card: Card) -> None:
    """Check what the noise costs, and the numbers of the budget; raises InputError."""
    mechanism, uri = card.mechanism, f"{output}/{layout.CARD}"
    assert isinstance(mechanism, UserHistogramMechanism)
    check_vocabulary(uri, mechanism.vocabulary, card.budget.stages[:-1])
    stage = card.budget.stages[-1].parameters
    assert isinstance(stage, UserParameters)
    check_cost(uri, stage, courses_of_norms(mechanism.noise_multiplier, mechanism.norms))
    check_total(uri, mechanism, card, STAGE)
    if not is_accountable():
        return
    if mechanism.deviation != deviation_of(mechanism.contributions, mechanism.noise_multiplier):
        raise InputError(f"{uri}: mechanism: deviation is not that of the noise")
    if not are_norms(mechanism.norms, mechanism.budgets):
        raise InputError(f"{uri}: mechanism: norms are not those of the budgets' groups")
    if is_solved_alike(card) and not are_solved(mechanism, card, of_norms):
        raise InputError(f"{uri}: mechanism: its noise or norms are not those of its budget")


def deviation_of(contributions: Mapping[str, int], noise_multiplier: str) -> float:
    """Return the standard deviation of the noise on a count."""
    # The module imports optional packages.
    from quietcorpus.mechanisms.users.word_counts import WordCounts

    bound = ContributionsSpec.model_validate(contributions)
    return WordCounts(bound.items, bound.weight).deviation(float(Fraction(noise_multiplier)))
