"""Measures of public texts by the votes of protected users: commit messages of 2,669 authors.

The pool is 12,844 messages that are not private, 10,000 film reviews and 7,156 complaints; all
other messages are private, and all of an author's together are the unit. Measured are the share of
the released weight that falls on messages, and how far the released distribution over 100 clusters
of the pool is from that of the authors' votes without noise, in total variation. The pool, the
votes, their clipping and the noise are the product's own.

    python benchmarks/utility_public_users.py --data ../shared/data --folder build/utility-public
"""

from __future__ import annotations

import time
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.cluster import KMeans
from utility_public import (
    DRAWS,
    EPSILONS,
    MIXED_IN,
    POOLED,
    column,
    interval,
    nearest_of,
    places,
    released,
)

import quietcorpus as qc
from quietcorpus.indexes.pool import open_pool
from quietcorpus.mechanisms.group_norms import GroupNorms
from quietcorpus.mechanisms.user_votes import UserVotes
from quietcorpus.mechanisms.vote_weights import weights
from quietcorpus.mechanisms.votes import Votes

DELTA = Fraction(1, 10**5)  # below 1 / authors by a factor of 37
NEAREST = 20, 100, 500
CLUSTERS = 100


def prepare(data: Path, folder: Path) -> tuple[list[str], list[str], int]:
    """Write the pool's texts; return private messages, their authors, and the pool's messages."""
    messages = column(data / "commit_messages.parquet", "text")
    authors = column(data / "commit_messages.parquet", "author")
    complaints = column(data / "cfpb_complaints.parquet", "text")
    reviews = column(data / "imdb_reviews.parquet", "text")
    generator = np.random.default_rng(0)
    order = generator.permutation(len(messages))
    public = MIXED_IN - len(complaints)
    others = [reviews[row] for row in generator.permutation(len(reviews))[:POOLED]]
    texts = [*(messages[row] for row in order[:public]), *others, *complaints]
    pq.write_table(pa.table({"text": texts}), folder / "commits.parquet")
    private = np.sort(order[public:])
    return [messages[row] for row in private], [authors[row] for row in private], public


def votes_of_authors(
    votes: Votes, nearest: np.ndarray, voters: np.ndarray, authors: np.ndarray, size: int
) -> np.ndarray:
    """Return the sums of all authors' clipped votes, (1, size)."""
    norms = GroupNorms.solved({"": votes.epsilon}, votes.delta)
    own = UserVotes(votes, norms)
    generator = np.random.default_rng()
    sums = np.zeros(size, dtype=np.int64)
    order = np.argsort(authors[voters], kind="stable")
    rows = nearest[:, : votes.nearest]
    for group in np.split(order, np.flatnonzero(np.diff(authors[voters][order])) + 1):
        places, counts = np.unique(rows[group], return_counts=True)
        bits = generator.integers(1 << 16, size=len(places), dtype=np.uint16)
        sums[places] += own.clipped(counts.astype(np.int64) * votes.weight, 0, bits)
    return sums[None]


class Measures(NamedTuple):
    """The pool, as a released table is compared with it.

    Attributes:
        is_message: which of its texts are commit messages.
        clusters: the cluster of each.
    """

    is_message: np.ndarray
    clusters: np.ndarray

    def shares(self, given: np.ndarray) -> np.ndarray:
        """Return the share of each cluster in some weights."""
        found = np.bincount(self.clusters, weights=given.ravel(), minlength=CLUSTERS)
        return np.asarray(found / found.sum())

    def of(self, given: np.ndarray, exact: np.ndarray) -> tuple[float, float]:
        """Return the messages' share of the weight, and the distance from exact votes."""
        apart = np.abs(self.shares(given) - self.shares(exact)).sum() / 2
        return given[0, self.is_message].sum() / given.sum(), apart


def report(votes: Votes, exact: np.ndarray, measures: Measures) -> None:
    """Print the line of an epsilon."""
    draws = [released(votes, exact) for _ in range(DRAWS)]
    chosen = [votes.stand_out(noisy) for noisy in draws]
    texts = np.mean([one.sum() for one in chosen])
    rows = [
        measures.of(weights(noisy, own), exact)
        for noisy, own in zip(draws, chosen, strict=True)
        if own.any()
    ]
    cells = [interval(list(column)) for column in zip(*rows, strict=True)] or ["", ""]
    line = [str(votes.nearest), str(votes.epsilon), f"{texts:,.0f}", *cells]
    print(f"| {' | '.join(line)} |", flush=True)


def main() -> None:
    """Measure, and print a table."""
    data, folder = places(__doc__)
    messages, names, public = prepare(data, folder)
    place, source = folder / "pool-commits", folder / "commits.parquet"
    if not place.exists():
        qc.build_pool(source, place, provenance="public", encoder="lsa")
    pool = open_pool(str(place))
    start = time.monotonic()
    voters, nearest = nearest_of(pool, messages, max(NEAREST))
    authors = np.unique(names, return_inverse=True)[1]
    print(
        f"{len(voters):,} of {len(messages):,} messages of {authors.max() + 1:,} authors vote, in "
        f"{time.monotonic() - start:.0f} s, for {len(pool.texts):,} texts",
        flush=True,
    )
    known = set(column(source, "text")[:public])
    lengths = np.linalg.norm(pool.vectors, axis=1, keepdims=True)
    vectors = pool.vectors / np.maximum(1, lengths)  # some texts have no term
    measures = Measures(
        np.array([text in known for text in pool.texts.to_pylist()]),
        KMeans(CLUSTERS, n_init=1, random_state=0).fit_predict(vectors),
    )
    print("| nearest | epsilon | texts | weight on messages | distance from exact votes |")
    print("|---|---|---|---|---|")
    for count in NEAREST:
        votes = [Votes(count, Fraction(epsilon), DELTA) for epsilon in EPSILONS]
        exact = votes_of_authors(votes[0], nearest, voters, authors, len(pool.texts))
        share, _ = measures.of(exact, exact)
        print(f"| {count} | no noise | {(exact > 0).sum():,} | {share:.3f} | 0 |", flush=True)
        for own in votes:
            report(own, exact, measures)
        every = np.ones_like(exact)
        share, apart = measures.of(every, exact)
        print(f"| {count} | no votes | {every.sum():,} | {share:.3f} | {apart:.3f} |", flush=True)


if __name__ == "__main__":
    main()
