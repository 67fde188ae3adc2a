"""The speed of training with whole users protected: against Opacus, by V and the lot, on Ray.

    python benchmarks/embeddings.py --texts TEXTS.parquet --user COLUMN --output FOLDER

Users are the real ones of a corpus, of at most 1,000 words each. Opacus takes the gradient of each
user's whole text as one sample, on the same model, the same pairs and the same negative samples, in
turns with ours; both clip, add noise and take a step. All run on one thread, except Ray's workers.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from matplotlib import pyplot
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from threadpoolctl import threadpool_limits
from torch import nn

from quietcorpus.indexes.tokens.tokenizer import tokenize
from quietcorpus.indexes.tokens.vocabulary import Vocabulary, document_frequencies
from quietcorpus.mechanisms.accounting.privacy_loss import Group
from quietcorpus.mechanisms.keystream import Keystream, ReleaseKey
from quietcorpus.mechanisms.users.clipped_sum import ClippedSum
from quietcorpus.mechanisms.users.sampled_users import SampledUsers, Texts
from quietcorpus.mechanisms.users.skip_gram import SkipGram, negative_samples
from quietcorpus.mechanisms.users.user_training import Training, TrainingState
from quietcorpus.mechanisms.words.word_pairs import Words, balanced_weights
from quietcorpus.pipelines.kinds.word_embeddings.training import sums_of

SIGMA = Fraction(1)
SIZES, LOTS = (1_000, 2_000, 5_000, 10_000, 20_000), (64, 128, 256, 512, 1_024)
ROUNDS = 3


class Corpus:
    """A corpus's users over its own most frequent words (a speed test: nothing is released)."""

    def __init__(self, path: str, user: str) -> None:
        table = pq.read_table(path, columns=[user, "text"])
        self._tokens = tokenize(table["text"].combine_chunks().cast(pa.large_string()))
        self._terms, self._counts = document_frequencies(self._tokens)
        self._owners = table[user].to_pylist()

    def users(self, words: int, tokens: int = 1_000) -> list[list[Words]]:
        """Return the texts of every user over the `words` most frequent words."""
        top = np.argsort(-self._counts, kind="stable")[:words]
        vocabulary = Vocabulary(self._terms.take(pa.array(top)).to_pylist())
        offsets, numbers = vocabulary.look_up(self._tokens)
        found: dict[str, list[Words]] = defaultdict(list)
        room: dict[str, int] = defaultdict(lambda: tokens)
        for owner, a, b in zip(self._owners, offsets, offsets[1:], strict=False):
            text = numbers[a : min(b, a + room[owner])]
            if len(text) > 1:
                found[owner].append(text)
                room[owner] -= len(text)
        return list(found.values())


def packed(users: list[list[Words]]) -> Texts:
    """Pack users' texts as the trainer takes them."""
    flat = [text for own in users for text in own]
    return Texts(
        np.random.default_rng().integers(0, 1 << 63, (len(users), 2), dtype=np.uint64),
        np.zeros(len(users), np.int32),
        np.cumsum([0, *map(len, users)]),
        np.cumsum([0, *map(len, flat)]),
        np.concatenate(flat).astype(np.int32),
    )


class Ours:
    """The steps of this project's training on some users, all of whom take part."""

    def __init__(self, users: list[list[Words]], words: int, dimensions: int) -> None:
        self.settings = SkipGram(dimensions, 5, 1, 0.1)
        self.stream: Keystream = key().stage("training", 1)
        self.texts = packed(users)
        self.groups = [Group("", Fraction(1), Fraction(1), 10**9)]
        self.sums = SampledUsers(self.texts, self.groups, self.settings, self.stream).sums
        self.training = Training(self.settings, ClippedSum(SIGMA), len(users), 0.03)
        self.state = TrainingState.initial(words, dimensions)

    def step(self) -> None:
        """Take one step."""
        until = self.state.step + 1
        (self.state,) = self.training.run(self.state, until, self.sums, self.stream)


class _Model(nn.Module):
    def __init__(self, words: int, dimensions: int) -> None:
        super().__init__()
        self.words, self.contexts = nn.Embedding(words, dimensions), nn.Embedding(words, dimensions)

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return self.words(left), self.contexts(right)


class Opacus:
    """The same steps by Opacus: a sample is a user, padded to the most pairs and words of any."""

    def __init__(self, users: list[list[Words]], words: int, dimensions: int) -> None:
        pairs = [balanced_weights(own, 5) for own in users]
        longest = 2 * max(len(weights) for _, _, weights in pairs)
        most = max(len(np.union1d(low, high)) for low, high, _ in pairs)
        self.left = torch.zeros(len(users), longest, dtype=torch.long)
        self.right = torch.zeros(len(users), longest, dtype=torch.long)
        self.weights = torch.zeros(len(users), longest)
        self.own = torch.zeros(len(users), most, dtype=torch.long)
        self.sums = torch.zeros(len(users), most)
        for row, (low, high, weight) in enumerate(pairs):
            size, both = 2 * len(weight), np.concatenate([low, high])
            self.left[row, :size] = torch.from_numpy(both)
            self.right[row, :size] = torch.from_numpy(np.concatenate([high, low]))
            self.weights[row, :size] = torch.from_numpy(np.concatenate([weight, weight]))
            own, where = np.unique(both, return_inverse=True)
            self.own[row, : len(own)] = torch.from_numpy(own)
            sums = np.bincount(where, np.concatenate([weight, weight]))
            self.sums[row, : len(own)] = torch.from_numpy(sums)
        self.model = GradSampleModule(_Model(words, dimensions), loss_reduction="sum")
        self.optimiser = DPOptimizer(
            torch.optim.Adam(self.model.parameters(), lr=0.03),
            noise_multiplier=float(SIGMA),
            max_grad_norm=0.1,
            expected_batch_size=len(users),
        )
        self.stream = key().stage("negatives", 1)
        self.step_number = 0
        self.size = words, dimensions

    def step(self) -> None:
        """Take one step."""
        negatives = negative_samples(self.step_number, *self.size, self.stream)
        self.step_number += 1
        self.optimiser.zero_grad()
        rows = torch.from_numpy(negatives).expand(len(self.left), -1)
        count = self.left.shape[1]
        words, contexts = self.model(
            torch.cat([self.left, self.own], dim=1), torch.cat([self.right, rows], dim=1)
        )
        agree = nn.functional.logsigmoid((words[:, :count] * contexts[:, :count]).sum(-1))
        against = nn.functional.logsigmoid(-words[:, count:] @ contexts[:, count:].transpose(1, 2))
        loss = (agree * self.weights).sum() + (against.mean(-1) * self.sums).sum()
        (-loss).backward()
        self.optimiser.step()


def key() -> ReleaseKey:
    """Return the key of this benchmark."""
    return ReleaseKey.derive(bytes(range(32)), "benchmark", b"")


def seconds(action: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the seconds of the fastest of a few rounds, after one that compiles."""
    action()
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        found.append(time.perf_counter() - start)
    return min(found)


def against_opacus(corpus: Corpus) -> None:
    """Print steps and users per second of both."""
    print("| V | d | lot | ours, steps/s | users/s | Opacus, steps/s | users/s | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for words, dimensions, lot in ((1_000, 50, 64), (2_000, 100, 64), (5_000, 100, 32)):
        users = corpus.users(words)[:lot]
        ours = seconds(Ours(users, words, dimensions).step)
        theirs = seconds(Opacus(users, words, dimensions).step)
        print(
            f"| {words:,} | {dimensions} | {lot} | {1 / ours:.2f} | {lot / ours:.0f} "
            f"| {1 / theirs:.3f} | {lot / theirs:.1f} | {theirs / ours:.1f} |",
            flush=True,
        )


def costs(corpus: Corpus, folder: Path) -> None:
    """Measure milliseconds per step against V and against the lot, as a table and a plot."""
    by_words, by_lot = {}, {}
    for words in SIZES:
        users = corpus.users(SIZES[0])[:256]  # the same texts, whatever else is in the vocabulary
        by_words[words] = 1_000 * seconds(Ours(users, words, 100).step)
    users = corpus.users(5_000)
    for lot in LOTS:
        by_lot[lot] = 1_000 * seconds(Ours(users[:lot], 5_000, 100).step)
    (folder / "embeddings-speed.json").write_text(json.dumps({"V": by_words, "lot": by_lot}))
    _, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for axes, found, name in ((left, by_words, "words in the vocabulary"), (right, by_lot, "lot")):
        axes.plot(list(found), list(found.values()), marker="o")
        axes.set(xlabel=name, ylabel="ms a step", ylim=0)
        print(name, {k: round(v) for k, v in found.items()}, flush=True)
    pyplot.savefig(folder / "embeddings-speed.svg")


def on_ray(corpus: Corpus) -> None:
    """Print steps per second of this process alone, and of two of Ray's workers."""
    ours = Ours(corpus.users(2_000)[:1_024], 2_000, 100)
    found = {}
    for workers in (1, 2, 1, 2):
        with sums_of(ours.texts, ours.groups, ours.settings, key, b"", workers) as ours.sums:
            found[workers] = min(found.get(workers, 1e9), seconds(ours.step))
    print({k: round(1 / v, 3) for k, v in found.items()}, f"ratio {found[1] / found[2]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", required=True)
    parser.add_argument("--user", required=True)
    parser.add_argument("--output", required=True)
    given = parser.parse_args()
    folder = Path(given.output)
    folder.mkdir(parents=True, exist_ok=True)
    corpus = Corpus(given.texts, given.user)
    with threadpool_limits(1):
        torch.set_num_threads(1)
        against_opacus(corpus)
        costs(corpus, folder)
        on_ray(corpus)


if __name__ == "__main__":
    mpl.use("Agg")
    warnings.simplefilter("ignore")
    main()
