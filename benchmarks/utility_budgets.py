"""The gain from users' own budgets in word embeddings: a claim of dpUGC's.

Vu, Tran and Jiang (CICLing 2019) let users have budgets of their own. No corpus here has 40,000
authors, so the users are generated: each has a text of 40 words, from one of 20 topics with
probability .25 and from all words else, by Zipf's law within each. Budgets of 1, 4 and 16 go to 60,
30 and 10 % of them by chance, so that no habit of the careful goes with theirs. Compared are
everybody at the least budget; budgets of their own (`cooccurrence`: norms; `sgd`: `rates` and
`steps`); and the careful left out. "Everybody at 16" breaks the budgets of nine in ten: it shows
what noise costs at the least.

MAP (over whole lists) is against the vectors of the same users by `cooccurrence` without noise;
accuracy is that of 20 topics of 10,000 other users, by the nearest mean of the topic's texts.

    python benchmarks/utility_budgets.py [--method sgd] [--users 40000] [--draws 5]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from fractions import Fraction

import numpy as np

from quietcorpus.evaluation.embeddings import map_list, nearest
from quietcorpus.evaluation.intervals import over_draws
from quietcorpus.mechanisms.accounting.privacy_loss import Schedule
from quietcorpus.mechanisms.keystream import Keystream, ReleaseKey
from quietcorpus.mechanisms.users.clipped_sum import ClippedSum, clipped
from quietcorpus.mechanisms.users.cooccurrence import cells_of, contribution
from quietcorpus.mechanisms.users.factorisation import factorise
from quietcorpus.mechanisms.users.group_norms import GroupNorms
from quietcorpus.mechanisms.users.sampled_users import SampledUsers, Texts
from quietcorpus.mechanisms.users.skip_gram import SkipGram
from quietcorpus.mechanisms.users.user_training import Training, TrainingState

TIERS = {"careful": Fraction(1), "usual": Fraction(4), "generous": Fraction(16)}
SHARES = (0.6, 0.3, 0.1)
BEYOND = "everybody at 16 (breaks budgets)"
WAYS: dict[str, Mapping[str, Fraction]] = {
    "everybody at 1": dict.fromkeys(TIERS, Fraction(1)),
    "own budgets": TIERS,
    "without the careful: at 4": {"usual": Fraction(4), "generous": Fraction(4)},
    "without the careful: own budgets": {k: v for k, v in TIERS.items() if k != "careful"},
    "the generous alone: at 16": {"generous": Fraction(16)},
    BEYOND: dict.fromkeys(TIERS, Fraction(16)),
}
"""For each way, the budgets of the tiers that take part."""
DELTA = Fraction(1, 10**6)
WORDS, TOPICS, LENGTH, OWN = 400, 20, 40, 0.25
WINDOW, DIMENSIONS, LISTED, OTHERS = 5, 50, 10, 10_000
COURSE, LOT_SHARE, RATE, CLIP = 100, 10, 0.03, 0.1
"""Of `sgd`, as specs have it: steps; one user in how many a step; learning rate; clipping norm."""


def corpus(users: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Generate users' texts, int32 (users, LENGTH), and their topics."""
    zipf = 1 / np.arange(1, WORDS + 1)
    rank = generator.permutation(WORDS)
    size = WORDS // TOPICS
    topics = generator.integers(TOPICS, size=users)
    inside = generator.choice(size, (users, LENGTH), p=zipf[:size] / zipf[:size].sum())
    common = generator.choice(WORDS, (users, LENGTH), p=zipf / zipf.sum())
    own = generator.random((users, LENGTH)) < OWN
    return rank[np.where(own, topics[:, None] * size + inside, common)].astype(np.int32), topics


def accuracy(vectors: np.ndarray, texts: np.ndarray, topics: np.ndarray) -> float:
    """Classify the second half of the texts by the nearest mean of the first half's topics."""
    means = vectors[texts].mean(axis=1)
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
    known, half = topics[: len(topics) // 2], len(topics) // 2
    centres = np.stack([means[:half][known == topic].mean(axis=0) for topic in range(TOPICS)])
    distances = ((means[half:, None] - centres) ** 2).sum(axis=2)
    return float((distances.argmin(axis=1) == topics[half:]).mean())


def cooccurrence(own: np.ndarray, draws: int) -> Iterator[tuple[str, int, np.ndarray]]:
    """Yield every way's vectors in every draw; first those without noise, of no way."""
    generator = np.random.default_rng(4)
    norms = {way: GroupNorms.solved(budgets, DELTA) for way, budgets in WAYS.items()}
    most = {way: [norms[way].most.get(tier, 0) for tier in TIERS] for way in WAYS}
    chosen = [tiers(len(own), draw) for draw in range(draws)]
    sums = {(way, d): np.zeros(cells_of(WORDS), np.int64) for way in WAYS for d in range(draws)}
    whole = np.zeros(cells_of(WORDS), np.int64)
    for user, text in enumerate(own):
        cells, values = contribution([text], WINDOW, WORDS)
        dither = generator.integers(0, 1 << 16, (draws, len(cells)), dtype=np.uint16)
        whole[cells] += clipped(values, dither[0])
        for draw in range(draws):
            of_norm: dict[int, np.ndarray] = {}
            for way in WAYS:
                norm = most[way][chosen[draw][user]]
                if norm and norm not in of_norm:
                    of_norm[norm] = clipped(values, dither[draw], norm)
                if norm:
                    sums[way, draw][cells] += of_norm[norm]
    yield "", 0, factorise(whole, 0.0, WORDS, DIMENSIONS).vectors
    for (way, draw), total in sums.items():
        mechanism = norms[way].mechanism
        stream = _stream(way, draw)
        noisy = mechanism.release(total[None, :], stream, stream.addresses("noise", [0], [b""]))[0]
        deviation = float(mechanism.deviation)
        yield way, draw, factorise(noisy, deviation, WORDS, DIMENSIONS).vectors


def sgd(own: np.ndarray, draws: int) -> Iterator[tuple[str, int, np.ndarray]]:
    """Yield the vectors trained in every way that keeps budgets, draw by draw.

    Different budgets are kept by `rates`, and by `steps`.
    """
    for draw in range(draws):
        for way, budgets in WAYS.items():
            if way == BEYOND:
                continue
            yield way, draw, trained(own, budgets, way, draw)
            if len(set(budgets.values())) > 1:
                name = f"{way}, by steps"
                yield name, draw, trained(own, budgets, name, draw, leave=True)


def trained(
    own: np.ndarray, budgets: Mapping[str, Fraction], name: str, draw: int, *, leave: bool = False
) -> np.ndarray:
    """Train vectors with each tier at its own rate, or all at one until they must leave."""
    names, chosen = list(TIERS), tiers(len(own), draw)
    places = {tier: place for place, tier in enumerate(budgets)}
    rows = np.flatnonzero([names[tier] in places for tier in chosen])
    count, lot = len(rows), len(rows) // LOT_SHARE
    texts = Texts(
        np.random.default_rng(7).integers(0, 1 << 63, (count, 2), dtype=np.uint64),
        np.array([places[names[tier]] for tier in chosen[rows]], np.int32),
        np.arange(count + 1),
        np.arange(count + 1) * LENGTH,
        own[rows].ravel(),
    )
    schedule = Schedule.solved(budgets, DELTA, Fraction(lot, count), COURSE, leave=leave)
    settings, stream = SkipGram(DIMENSIONS, WINDOW, 1, CLIP), _stream(name, draw)
    users = SampledUsers(texts, schedule.groups, settings, stream)
    training = Training(settings, ClippedSum(schedule.noise_multiplier), lot, RATE)
    state = TrainingState.initial(WORDS, DIMENSIONS)
    *_, last = training.run(state, COURSE, users.sums, stream)
    return last.model.words


METHODS = {"cooccurrence": cooccurrence, "sgd": sgd}


def tiers(users: int, draw: int) -> np.ndarray:
    """Return the number of each user's tier, by chance."""
    return np.random.default_rng([draw, 5]).choice(len(TIERS), users, p=SHARES)


def _stream(name: str, draw: int) -> Keystream:
    return ReleaseKey.derive(draw.to_bytes(32, "big"), name, b"").stage("benchmark", 1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--method", choices=METHODS, default="cooccurrence")
    parser.add_argument("--users", type=int, default=40_000)
    parser.add_argument("--draws", type=int, default=5)
    given = parser.parse_args()
    texts, topics = corpus(given.users + OTHERS, np.random.default_rng(3))
    own, others, asked = texts[: given.users], texts[given.users :], topics[given.users :]
    _, _, exact = next(cooccurrence(own, given.draws))
    queries = np.arange(WORDS)
    gold = nearest(exact, queries, LISTED)
    scored: dict[str, list[list[float]]] = {}
    for way, _, vectors in METHODS[given.method](own, given.draws):
        found = float(map_list(nearest(vectors, queries, LISTED), gold).mean())
        scored.setdefault(way, []).append([found, accuracy(vectors, others, asked)])
        print(way or "no noise", *(f"{value:.3f}" for value in scored[way][-1]), flush=True)
    print("| users' budgets | draws | MAP | accuracy |")
    print("|---|---|---|---|")
    scored.pop("", None)
    for way, draws in scored.items():
        cells = []
        for values in np.transpose(draws):
            low, high = over_draws(values, 0.95)
            cells.append(f"{values.mean():.3f} ({low:.3f} to {high:.3f})")
        print(f"| {way} | {len(draws)} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
