"""Measures of a classifier of film reviews that learns from a pool of half a million texts.

Private reviews, strata, test and classifier are those of `utility_public.py`. The pool has 10,000
reviews, as they are, and 483,665 passages of complaints and commit messages, of 30 words, each
beginning 11 words after the last. It is in lists.

One round of votes is compared with

- the same, of the lists whose noisy votes stand out: a choice that costs nothing;
- two simulated rounds with the same embeddings. A review gives the lists of its five nearest texts
  a vote of length 1, under noise for a share of the budget (in 1 / sigma^2, which adds up over
  rounds of a Gaussian), and those that reach three deviations of it are kept. Then it votes for
  the nearest of all texts in these, under noise for what is left;
- votes for reviews alone, which is the most that a choice of lists could bring, and nobody knows;
- two releases: a fifth of epsilon and half of delta for the first, whose votes for 500 texts narrow
  the pool as `quietcorpus index narrow-pool` does, and the rest for the second, from the narrowed
  pool with an encoder of its own.

    python benchmarks/utility_public_large.py --data ../shared/data --folder build/utility-public

With --noise geometric, one release is compared with two alone, by geometric noise, which has no
delta: a fifth of epsilon is then the first release's, and four fifths the second's.

Pool, nearest texts and scores stay in the folder, so that a stopped run can go on. With --part 10,
a tenth of everything shows in minutes that all of it runs; its figures mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pool_outcomes import HIGHER, Outcome, Rows
from utility_public import (
    AT_ONCE,
    DELTA,
    NEAREST,
    Election,
    Reviews,
    Scores,
    column,
    prepare,
    released,
)
from utility_public import parser as parser_of_places
from utility_public_rounds import coarse

from quietcorpus.indexes import lsa
from quietcorpus.indexes.largest_products import largest
from quietcorpus.indexes.lsa import Lsa
from quietcorpus.indexes.pool import Pool
from quietcorpus.mechanisms.ballots import Ballots, Sums
from quietcorpus.mechanisms.deep_candidate import on_grid
from quietcorpus.mechanisms.pure_votes import votes_at
from quietcorpus.mechanisms.vote_lists import stand_out
from quietcorpus.mechanisms.votes import STANDS_OUT, Votes

WORDS, STEP = 30, 11
NUMBERS = 20, NEAREST
PURE_NUMBERS = 1, 5, 20
EPSILONS = "1", "1/2"
SHARES = 0.1, 0.3
DRAWS, PURE_DRAWS = 2, 3
NAME = "whole"
LISTS = 2_808
"""The lists that a pool of the whole size gets."""
FIRST = Fraction(1, 5)
"""The first release's share of epsilon, where there are two."""


def windows(texts: list[str], step: int) -> list[str]:
    """Return different passages of `WORDS` words, a step apart; of short texts, the whole."""
    found: dict[str, None] = {}
    for text in texts:
        own = text.split()
        for start in range(0, max(1, len(own) - WORDS // 2), step):
            found[" ".join(own[start : start + WORDS])] = None
    return list(found)


def write_pool(data: Path, folder: Path, pooled: Reviews, part: int) -> None:
    """Write the texts of the pool, of one other text in `part`."""
    files = "cfpb_complaints.parquet", "commit_messages.parquet"
    texts = [text for name in files for text in column(data / name, "text")[::part]]
    others = windows(texts, STEP)
    pq.write_table(pa.table({"text": [*pooled.texts, *others]}), folder / f"{NAME}.parquet")


class Large:
    """A large pool, with what reviews find nearest in it by its lists, and among all its texts."""

    def __init__(
        self,
        folder: Path,
        private: Reviews,
        pooled: Reviews,
        tested: Reviews,
        search: str | None,
    ) -> None:
        self.private = private
        self.election = Election(NAME, folder, private, tested, search)
        self.pool: Pool = self.election.pool
        assert self.pool.lists is not None
        assert self.pool.encoder is not None
        print("\n".join(self.pool.manifest.lines()), flush=True)
        self.vectors = np.array(self.pool.vectors)
        self.sizes = np.array(self.pool.lists.sizes)
        self.list_of = np.repeat(np.arange(len(self.sizes)), self.sizes)
        known = set(pooled.texts)
        self.texts = self.pool.texts.to_pylist()
        self.reviews = np.array([text in known for text in self.texts])
        self.queries = encoded(self.pool.encoder, private.texts)
        self.folder = folder

    @cached_property
    def exact(self) -> np.ndarray:
        """Return the texts nearest to each review among all of the pool."""
        kept = self.folder / f"exact-{NAME}.npy"
        if not kept.exists():
            np.save(kept, largest(self.queries, self.vectors, NEAREST).astype(np.int32))
        found: np.ndarray = np.load(kept, mmap_mode="r")
        return found

    def sums(self, votes: Ballots, near: np.ndarray) -> Sums:
        """Count the votes for the first of these texts exactly."""
        items = near[:, : votes.nearest].astype(np.int64)
        return votes.sums(items, self.private.labels, (2, len(self.vectors)))

    def one_round(self, votes: Ballots, exact: Sums) -> Outcome:
        """Release sums as the product does."""
        every = np.arange(len(self.vectors))
        return Outcome(every, released(votes, exact), votes.deviation, self.vectors, votes.least)

    def chosen(self, outcome: Outcome) -> np.ndarray:
        """Return the numbers of the texts whose lists stand out by noisy sums of all."""
        return self.kept(stand_out(outcome.noisy, self.sizes, outcome.deviation))

    def kept(self, chosen: np.ndarray) -> np.ndarray:
        """Return the numbers of the texts of these lists."""
        return np.flatnonzero(chosen[self.list_of])

    def for_nothing(self, outcome: Outcome) -> Outcome:
        """Keep the lists that stand out."""
        kept = self.chosen(outcome)
        return outcome._replace(
            texts=kept, noisy=outcome.noisy[:, kept], vectors=self.vectors[kept]
        )

    def two_rounds(self, votes: Votes, share: float, seed: int) -> Outcome:
        """Simulate a round of lists, and one of their texts."""
        generator = np.random.default_rng(seed)
        sigma = float(votes.noise.noise_multiplier)
        clusters = coarse(self.election, self.list_of)
        noisy = clusters + generator.normal(0, sigma / np.sqrt(share), len(clusters))
        kept = self.kept(noisy >= STANDS_OUT * sigma / np.sqrt(share))
        return self.among(votes, kept, votes.noise.deviation / Fraction(np.sqrt(1 - share)), seed)

    def among(self, votes: Votes, kept: np.ndarray, deviation: Fraction, seed: int) -> Outcome:
        """Simulate a round of votes for the nearest of the texts `kept`."""
        vectors = self.vectors[kept]
        items = largest(self.queries, vectors, votes.nearest)
        sums = votes.sums(items, self.private.labels, (2, len(kept)))
        noise = np.random.default_rng((1, seed)).normal(0, float(deviation), sums.shape)
        least = STANDS_OUT * float(deviation)
        return Outcome(kept, sums + np.rint(noise).astype(np.int64), deviation, vectors, least)

    def two_releases(
        self, epsilon: Fraction, delta: Fraction | None, numbers: tuple[int, ...]
    ) -> dict[int, Outcome]:
        """Narrow the pool by a first release; return what a second one has, by votes.

        `delta` is of either release; None for geometric noise.
        """
        votes = votes_at(NEAREST, epsilon * FIRST, delta, False)
        kept = self.chosen(self.one_round(votes, self.sums(votes, self.election.nearest)))
        texts = [self.texts[number] for number in kept]
        encoder = lsa.fit(pa.array(texts, pa.large_string()))
        vectors = encoded(encoder, texts)
        near = largest(encoded(encoder, self.private.texts), vectors, NEAREST)
        found = {}
        for nearest in numbers:
            votes = votes_at(nearest, epsilon * (1 - FIRST), delta, False)
            sums = votes.sums(near[:, :nearest], self.private.labels, (2, len(kept)))
            noisy = released(votes, sums)
            found[nearest] = Outcome(kept, noisy, votes.deviation, vectors, votes.least)
        return found


def encoded(encoder: Lsa, texts: list[str]) -> np.ndarray:
    """Return the embeddings of texts, on the grid."""
    parts = [encoder.encode(texts[at : at + AT_ONCE]) for at in range(0, len(texts), AT_ONCE)]
    return on_grid(np.concatenate(parts))


class Measures:
    """The measures of the pool, each of which is taken once."""

    def __init__(self, large: Large, scores: Scores) -> None:
        self.large, self.scores = large, scores

    def once(self, key: str, rule: Callable[[Outcome], Rows], outcomes: list[Outcome]) -> None:
        """Score what these outcomes teach by a rule, and count its rows and what is of reviews."""
        scores, reviews = self.scores, self.large.reviews
        if f"{key}, on reviews" not in scores.found:
            own = [rule(one) for one in outcomes]
            scores.once(key, self.large.election.classifier.score, *own)
            scores.once(f"{key}, rows", lambda *one: float(len(one[0])), *own)
            scores.once(f"{key}, on reviews", lambda *one: Rows(*one).share(reviews), *own)

    def all(self) -> None:
        """Measure what is not measured yet."""
        for nearest in NUMBERS:
            for said, near in (
                ("lists", self.large.election.nearest),
                ("all texts", self.large.exact),
            ):
                self.votes_for(nearest, said, near)
        for epsilon in EPSILONS:
            drawn = [
                self.large.two_releases(Fraction(epsilon), DELTA / 2, NUMBERS) for _ in range(DRAWS)
            ]
            for nearest in NUMBERS:
                outcomes = [one[nearest] for one in drawn]
                self.by_rules(f"{NAME}, {nearest}, {epsilon}, two releases", outcomes)

    def geometric(self) -> None:
        """Measure one release and two under geometric noise."""
        large = self.large
        for epsilon in EPSILONS:
            two = [
                large.two_releases(Fraction(epsilon), None, PURE_NUMBERS) for _ in range(PURE_DRAWS)
            ]
            for nearest in PURE_NUMBERS:
                votes = votes_at(nearest, Fraction(epsilon), None, False)
                exact = large.sums(votes, large.election.nearest)
                one = [large.one_round(votes, exact) for _ in range(PURE_DRAWS)]
                key = f"{NAME}, {nearest}, {epsilon}"
                self.by_rules(f"{key}, lists", one)
                self.by_rules(f"{key}, two releases", [own[nearest] for own in two])

    def votes_for(self, nearest: int, said: str, near: np.ndarray) -> None:
        """Measure votes for so many of the texts that a search found."""
        large, name = self.large, f"{NAME}, {nearest}"
        exact = large.sums(Votes(nearest, Fraction(1), DELTA), near)
        known = Outcome(np.arange(exact.shape[1]), exact, Fraction(0), large.vectors, 0)
        self.once(f"{name}, no noise, {said}, released", Outcome.any, [known])
        on_reviews = large.reviews[near[:, :nearest]].mean
        self.scores.once(f"{name}, votes for reviews, {said}", on_reviews, ())
        for epsilon in EPSILONS:
            votes, key = Votes(nearest, Fraction(epsilon), DELTA), f"{name}, {epsilon}"
            drawn = [large.one_round(votes, exact) for _ in range(DRAWS)]
            if said != "lists":
                self.once(f"{key}, {said}, released", Outcome.released, drawn)
                continue
            self.once(f"{key}, {said}, released at {HIGHER}", Outcome.higher, drawn)
            for choice, outcomes in {said: drawn, **self.choices(votes, drawn)}.items():
                self.by_rules(f"{key}, {choice}", outcomes)

    def choices(self, votes: Votes, drawn: list[Outcome]) -> dict[str, list[Outcome]]:
        """Choose lists in every way."""
        large, draws = self.large, range(DRAWS)
        known, deviation = np.flatnonzero(large.reviews), votes.noise.deviation
        return {
            "for nothing": [large.for_nothing(one) for one in drawn],
            **{
                f"rounds {share}": [large.two_rounds(votes, share, draw) for draw in draws]
                for share in SHARES
            },
            "reviews alone": [large.among(votes, known, deviation, draw) for draw in draws],
        }

    def by_rules(self, key: str, outcomes: list[Outcome]) -> None:
        """Measure what outcomes teach by each rule, and how many texts they are of."""
        self.scores.once(f"{key}, kept", lambda *one: float(len(one[0])), *outcomes)
        rules = {
            "released": Outcome.released,
            "smoothed": Outcome.smoothed,
            "by lead": Outcome.by_lead,
        }
        for rule, rows in rules.items():
            self.once(f"{key}, {rule}", rows, outcomes)


CHOICES = {
    "lists": "one round",
    "for nothing": "one round, lists chosen by its noisy votes",
    "rounds 0.1": "two rounds, share 0.1",
    "rounds 0.3": "two rounds, share 0.3",
    "reviews alone": "reviews alone, which nobody knows",
    "two releases": "**two releases**",
}


def report(found: dict[str, list[float]]) -> None:
    """Print the tables in Markdown: means over draws."""
    for nearest in NUMBERS:
        for search in ("lists", "all texts"):
            names = f"no noise, {search}, released", f"votes for reviews, {search}"
            exact, share = (found[f"{NAME}, {nearest}, {one}"][0] for one in names)
            print(f"{nearest}, {search}: no noise {exact:.3f}, votes for reviews {share:.3f}")
    heading()
    for nearest in NUMBERS:
        for epsilon in EPSILONS:
            for choice, words in CHOICES.items():
                print(row(found, f"{NAME}, {nearest}, {epsilon}, {choice}", nearest, words))
            for said in f"lists, released at {HIGHER}", "all texts, released":
                own = f"{NAME}, {nearest}, {epsilon}, {said}"
                score, rows, share = (np.mean(found[f"{own}{one}"]) for one in MEASURED)
                print(f"{own}: {score:.3f}, {rows:,.0f} rows, {share:.3f} on reviews")


def report_geometric(found: dict[str, list[float]]) -> None:
    """Print the table of geometric noise in Markdown: means over draws."""
    heading()
    for nearest in PURE_NUMBERS:
        for epsilon in EPSILONS:
            for choice in "lists", "two releases":
                key = f"{NAME}, {nearest}, {epsilon}, {choice}"
                print(row(found, key, nearest, CHOICES[choice]))


def heading() -> None:
    print("\n| `nearest` | epsilon | | texts | as released | rows | on reviews ", end="")
    print(f"| smoothed | by lead |\n|{'---|' * 9}")


MEASURED = "", ", rows", ", on reviews"


def row(found: dict[str, list[float]], key: str, nearest: int, words: str) -> str:
    """Format a row of the table."""
    epsilon = float(Fraction(key.split(", ")[2]))
    kept = f"{np.mean(found[f'{key}, kept']):,.0f}"
    score, rows, share = (np.mean(found[f"{key}, released{one}"]) for one in MEASURED)
    smooth, lead = (np.mean(found[f"{key}, {one}"]) for one in ("smoothed", "by lead"))
    return (
        f"| {nearest} | {epsilon:g} | {words} | {kept} | {score:.3f} | {rows:,.0f} | {share:.3f} | "
        f"{smooth:.3f} | {lead:.3f} |"
    )


def main() -> None:
    """Measure what is not measured yet, and print the tables."""
    parser = parser_of_places(__doc__)
    parser.add_argument("--part", type=int, default=1, help="one document in so many")
    parser.add_argument("--noise", choices=["gaussian", "geometric"], default="gaussian")
    given = parser.parse_args()
    part = given.part
    folder: Path = given.folder if part == 1 else given.folder / f"part-{part}"
    folder.mkdir(parents=True, exist_ok=True)
    private, pooled, tested = (
        one.of(np.arange(0, len(one.texts), part)) for one in prepare(given.data, folder)
    )
    write_pool(given.data, folder, pooled, part)
    pure = given.noise == "geometric"
    scores = Scores(folder / ("large-geometric.json" if pure else "large.json"))
    # The whole has lists by its size.
    search = None if part == 1 else f"ivf:lists={LISTS // part}"
    measures = Measures(Large(folder, private, pooled, tested, search), scores)
    if pure:
        measures.geometric()
        report_geometric(scores.found)
    else:
        measures.all()
        report(scores.found)


if __name__ == "__main__":
    main()
