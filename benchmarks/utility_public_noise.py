"""Measures geometric noise beside Gaussian noise, as `utility_public.py` does.

On the pool of reviews alone. All rules are measured on five draws of either noise; scores are of
the rows that a release has, with `smooth` and without, and of all texts by lead. They stay in the
folder, so that a stopped run can go on.

    python benchmarks/utility_public_noise.py --data ../shared/data --folder build/utility-public
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from utility_public import (
    DELTA,
    DRAWS,
    NEAREST,
    Election,
    Scores,
    interval,
    places,
    prepare,
    released,
)

from quietcorpus.mechanisms.ballots import Ballots
from quietcorpus.mechanisms.pure_votes import PureVotes
from quietcorpus.mechanisms.vote_estimates import estimates
from quietcorpus.mechanisms.votes import Votes

EPSILONS = "1", "1/2"
NUMBERS = 1, 2, 3, 5, 10, 20, 100, NEAREST
RULES = "as released", "smoothed", "by lead"


def tried(epsilon: Fraction) -> Iterator[tuple[str, Ballots]]:
    """Yield every setting with its name."""
    for nearest in NUMBERS:
        yield f"gaussian, {nearest}", Votes(nearest, epsilon, DELTA)
        yield f"geometric, {nearest}", PureVotes(nearest, epsilon)


def measure(election: Election, scores: Scores) -> None:
    """Measure what is not measured yet."""
    learn = election.classifier
    for epsilon in EPSILONS:
        for name, votes in tried(Fraction(epsilon)):
            key = f"{epsilon}, {name}"
            if f"{key}, {RULES[-1]}" in scores.found:
                continue
            exact = election.sums(votes)
            draws = [released(votes, exact) for _ in range(DRAWS)]
            for rule, vectors in (("as released", None), ("smoothed", election.pool.vectors)):
                given = [estimates(votes, noisy, vectors) for noisy in draws]
                asked = [(own, own > 0) for own in given]
                scores.once(f"{key}, {rule}", learn.as_released, *asked)
                counted = [(own,) for own in given]
                scores.once(f"{key}, {rule}, rows", lambda own: float((own > 0).sum()), *counted)
            scores.once(f"{key}, by lead", learn.by_lead, *((noisy,) for noisy in draws))


def report(found: dict[str, list[float]]) -> None:
    """Print the table in Markdown."""
    for epsilon in EPSILONS:
        print(f"\nepsilon {epsilon}\n")
        print(f"| noise | `nearest` | {' | '.join(RULES)} | rows | smoothed |")
        print(f"|{'---|' * (4 + len(RULES))}")
        for name, _ in tried(Fraction(epsilon)):
            key = f"{epsilon}, {name}"
            cells = [interval(found[f"{key}, {rule}"]) for rule in RULES]
            rows = [
                f"{sum(own) / len(own):,.0f}"
                for own in (found[f"{key}, {rule}, rows"] for rule in RULES[:2])
            ]
            print(f"| {name.replace(', ', ' | ')} | {' | '.join([*cells, *rows])} |")


def main() -> None:
    """Measure what is not measured yet, and print the tables."""
    data, folder = places(__doc__)
    private, _, tested = prepare(data, folder)
    scores = Scores(folder / "noise.json")
    measure(Election("reviews", folder, private, tested), scores)
    report(scores.found)


if __name__ == "__main__":
    main()
