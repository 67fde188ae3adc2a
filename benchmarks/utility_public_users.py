"""Measures of public texts by the votes of protected users: commit messages of 2,669 authors.

The authors are divided at random. The pool is 12,844 messages of some of them, 10,000 film reviews
and 7,156 complaints; all messages of the other authors are private, and all of an author's together
are the unit. No author is on both sides. Measured are the share of the released weight that falls
on messages, and how far the released distribution over 100 clusters of the pool is, in total
variation, from that of the authors' votes without noise and from that of the authors' own messages.
The pool, the votes, their clipping and the noise are the product's own. Private Evolution's
histogram is plain floats, as in `utility_public.py`.

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
    AT_ONCE,
    CUTS,
    DRAWN,
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
from quietcorpus.indexes.pool import Pool, open_pool
from quietcorpus.mechanisms.deep_candidate import on_grid
from quietcorpus.mechanisms.group_norms import GroupNorms
from quietcorpus.mechanisms.user_votes import UserVotes
from quietcorpus.mechanisms.vote_weights import weights
from quietcorpus.mechanisms.votes import Votes

DELTA = Fraction(1, 10**5)  # below 1 / authors by a factor of 40 or more
NEAREST = 1, 20, 100, 500
CLUSTERS = 100


def prepare(data: Path, folder: Path) -> tuple[list[str], list[str], int]:
    """Write the pool's texts; return private messages, their authors, and the pool's messages."""
    messages = column(data / "commit_messages.parquet", "text")
    authors = np.array(column(data / "commit_messages.parquet", "author"))
    complaints = column(data / "cfpb_complaints.parquet", "text")
    reviews = column(data / "imdb_reviews.parquet", "text")
    generator = np.random.default_rng(0)
    public = MIXED_IN - len(complaints)
    own = of_authors(authors, public, generator)
    others = [reviews[row] for row in generator.permutation(len(reviews))[:POOLED]]
    chosen = generator.permutation(np.flatnonzero(own))[:public]
    texts = [*(messages[row] for row in chosen), *others, *complaints]
    pq.write_table(pa.table({"text": texts}), folder / "commits.parquet")
    private = np.flatnonzero(~own)
    return [messages[row] for row in private], authors[private].tolist(), public


def of_authors(authors: np.ndarray, least: int, generator: np.random.Generator) -> np.ndarray:
    """Take authors at random until they have written enough; tell which messages are theirs."""
    numbers, counts = np.unique(authors, return_inverse=True, return_counts=True)[1:]
    order = generator.permutation(len(counts))
    taken = order[: np.searchsorted(np.cumsum(counts[order]), least) + 1]
    return np.isin(numbers, taken)


def groups_of(authors: np.ndarray) -> list[np.ndarray]:
    """Return the rows of each author."""
    order = np.argsort(authors, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(authors[order])) + 1)


def votes_of_authors(
    votes: Votes, nearest: np.ndarray, groups: list[np.ndarray], size: int
) -> np.ndarray:
    """Return the sums of all authors' clipped votes, (1, size)."""
    norms = GroupNorms.solved({"": votes.epsilon}, votes.delta)
    own = UserVotes(votes, norms)
    generator = np.random.default_rng()
    sums = np.zeros(size, dtype=np.int64)
    rows = nearest[:, : votes.nearest]
    for group in groups:
        places, counts = np.unique(rows[group], return_counts=True)
        bits = generator.integers(1 << 16, size=len(places), dtype=np.uint16)
        sums[places] += own.clipped(counts.astype(np.int64) * votes.weight, 0, bits)
    return sums[None]


def private_evolution(
    votes: Votes, nearest: np.ndarray, groups: list[np.ndarray], size: int, cut: float, seed: int
) -> np.ndarray:
    """Return how often texts are drawn by a float histogram of nearest texts, (1, size).

    Every message votes for its nearest text, an author's votes are scaled down to a length of 1,
    and noise, threshold and draws are those of `utility_public.private_evolution`.
    """
    generator = np.random.default_rng(seed)
    sigma = float(votes.noise.noise_multiplier)
    histogram = sigma * generator.normal(size=size)
    for group in groups:
        items, counts = np.unique(nearest[group, 0], return_counts=True)
        histogram[items] += counts / max(1.0, float(np.linalg.norm(counts)))
    histogram[histogram < cut * sigma] = 0
    drawn = generator.choice(size, DRAWN, p=histogram / histogram.sum())
    return np.bincount(drawn, minlength=size)[None]


class Measures(NamedTuple):
    """The pool, as a released table is compared with it.

    Attributes:
        is_message: which of its texts are commit messages.
        clusters: the cluster of each.
        written: the share of each cluster in the authors' messages, every author counting alike.
    """

    is_message: np.ndarray
    clusters: np.ndarray
    written: np.ndarray

    def shares(self, given: np.ndarray) -> np.ndarray:
        """Return the share of each cluster in some weights."""
        found = np.bincount(self.clusters, weights=given.ravel(), minlength=CLUSTERS)
        return np.asarray(found / found.sum())

    def of(self, given: np.ndarray, exact: np.ndarray) -> tuple[float, float, float]:
        """Return the messages' share of the weight, and distances from exact votes and authors."""
        found = self.shares(given)
        apart = [np.abs(found - one).sum() / 2 for one in (self.shares(exact), self.written)]
        return given[0, self.is_message].sum() / given.sum(), *apart


def report(
    name: str, epsilon: Fraction, found: list[np.ndarray], cells: list[tuple[float, ...]]
) -> None:
    """Print the line of an epsilon: texts that have a weight, and measures of every draw."""
    texts = np.mean([(one > 0).sum() for one in found])
    own = [interval(list(column)) for column in zip(*cells, strict=True)] or [""] * 3
    print(f"| {' | '.join([name, str(epsilon), f'{texts:,.0f}', *own])} |", flush=True)


def measure(votes: Votes, exact: np.ndarray, measures: Measures) -> None:
    """Measure draws of the noise at one epsilon."""
    draws = [released(votes, exact) for _ in range(DRAWS)]
    found = [weights(noisy, votes.stand_out(noisy)) for noisy in draws]
    cells = [measures.of(own, exact) for own in found if own.any()]
    report(str(votes.nearest), votes.epsilon, found, cells)


def evolve(
    votes: Votes,
    nearest: np.ndarray,
    groups: list[np.ndarray],
    exact: np.ndarray,
    measures: Measures,
) -> None:
    """Measure draws of Private Evolution's histogram at one epsilon."""
    for cut in CUTS:
        found = [
            private_evolution(votes, nearest, groups, exact.shape[1], cut, draw)
            for draw in range(DRAWS)
        ]
        cells = [measures.of(one, exact) for one in found]
        report(f"Private Evolution, cut {cut}", votes.epsilon, found, cells)


def written(
    pool: Pool, messages: list[str], groups: list[np.ndarray], fitted: KMeans
) -> np.ndarray:
    """Return the share of each cluster in the authors' messages, every author counting alike."""
    parts = [
        fitted.predict(unit(on_grid(pool.encoder.encode(messages[first : first + AT_ONCE]))))
        for first in range(0, len(messages), AT_ONCE)
    ]
    clusters = np.concatenate(parts)
    shares = [np.bincount(clusters[own], minlength=CLUSTERS) / len(own) for own in groups]
    return np.asarray(np.mean(shares, axis=0))


def unit(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors to a length of 1, but for those that are zero: of texts without a term."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(1, lengths))


def main() -> None:
    """Measure, and print a table."""
    data, folder = places(__doc__)
    messages, names, public = prepare(data, folder)
    place, source = folder / "pool-commits", folder / "commits.parquet"
    if not place.exists():
        qc.build_pool(source, place, provenance="public", encoder="lsa")
    pool = open_pool(str(place))
    size = len(pool.texts)
    start = time.monotonic()
    voters, nearest = nearest_of(pool, messages, max(NEAREST))
    authors = np.unique(names, return_inverse=True)[1]
    print(
        f"{len(voters):,} of {len(messages):,} messages of {authors.max() + 1:,} authors vote, in "
        f"{time.monotonic() - start:.0f} s, for {size:,} texts",
        flush=True,
    )
    known = set(column(source, "text")[:public])
    fitted = KMeans(CLUSTERS, n_init=1, random_state=0).fit(unit(pool.vectors))
    measures = Measures(
        np.array([text in known for text in pool.texts.to_pylist()]),
        fitted.labels_,
        written(pool, messages, groups_of(authors), fitted),
    )
    groups = groups_of(authors[voters])
    print("| nearest | epsilon | texts | weight on messages | from exact votes | from messages |")
    print("|---|---|---|---|---|---|")
    for count in NEAREST:
        votes = [Votes(count, Fraction(epsilon), DELTA) for epsilon in EPSILONS]
        exact = votes_of_authors(votes[0], nearest, groups, size)
        every = np.ones_like(exact)
        for name, given in (("no noise", exact), ("no votes", every)):
            cells = [f"{one:.3f}" for one in measures.of(given, exact)]
            print(f"| {count} | {name} | {(given > 0).sum():,} | {' | '.join(cells)} |", flush=True)
        if count == 1:
            for own in votes:
                evolve(own, nearest, groups, exact, measures)
        for own in votes:
            measure(own, exact, measures)


if __name__ == "__main__":
    main()
