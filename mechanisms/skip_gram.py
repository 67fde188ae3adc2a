"""Skip-gram with negative sampling, one bounded update a user: what a step of training adds up.

Mikolov et al.: Distributed representations of words and phrases (NIPS 2013), equation 4, trained as
Vu, Tran and Jiang: dpUGC (CICLing 2019) mean it, with the user as the unit: a step takes the
gradient of each sampled user's whole text, clips it, and adds up whole numbers. (Their listing
clips nothing, and has no noise that would follow from a bound.)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanisms.accounting import Group
from mechanisms.clipped_sum import clipped
from mechanisms.keystream import BLOCK_BYTES, Addresses, Keystream
from mechanisms.word_pairs import Words, pair_weights

_SAMPLE_LANE, _DITHER_LANE, _NEGATIVE_LANE = 0, 1, 2
_DITHER_BLOCKS = 1 << 32  # of one user and step; more than any update has values

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SkipGram:
    """What is trained, but for how long and under which noise.

    Attributes:
        dimensions: of a vector.
        window: the largest distance of two words that make a pair.
        negatives: of a pair.
        clip: the norm C that a user's update is clipped to.
    """

    dimensions: int
    window: int
    negatives: int
    clip: float


@dataclass(frozen=True, eq=False)
class Vectors:
    """The model: `words` are what is released, `contexts` what they are trained against.

    Both are float32 (V, d).
    """

    words: npt.NDArray[np.float32]
    contexts: npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Negatives:
    """The negative samples that all users of a step share.

    Attributes:
        rows: int64 (m,), distinct words, ascending.
        shares: float32 (m,), of the samples that each of them is; they add up to 1.
    """

    rows: Rows
    shares: npt.NDArray[np.float32]

    @classmethod
    def drawn(
        cls, step: int, count: int, weights: npt.NDArray[np.float64], stream: Keystream
    ) -> Negatives:
        """`count` draws of words with chances in proportion to `weights`, which are public."""
        address = stream.addresses("negatives", [step], [b""])
        blocks = stream.blocks(address, -(-count * 8 // BLOCK_BYTES), lane=_NEGATIVE_LANE)
        places = blocks.view("<u8")[0, :count] * 2.0**-64
        edges = np.cumsum(weights) / weights.sum()
        drawn = np.minimum(np.searchsorted(edges, places, side="right"), len(weights) - 1)
        rows, counts = np.unique(drawn, return_counts=True)
        return cls(rows, (counts / count).astype(np.float32))


class User:
    """A user's text, ready for any number of steps.

    Attributes:
        words: int64 (n,), the distinct words, ascending.
        pairs: float32 (n, n), the weight of each pair of them, in both orders.
    """

    def __init__(self, texts: Sequence[Words], window: int) -> None:
        low, high, weights = pair_weights(texts, window)
        self.words = np.unique(np.concatenate([low, high]))
        self.pairs = np.zeros((len(self.words), len(self.words)), dtype=np.float32)
        rows, columns = np.searchsorted(self.words, low), np.searchsorted(self.words, high)
        self.pairs[rows, columns] = weights
        self.pairs[columns, rows] += np.float32(weights)


def device() -> str:
    """Where updates are computed: on a GPU if there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def update(
    model: Vectors, user: User, negatives: Negatives, settings: SkipGram
) -> tuple[Rows, Rows, npt.NDArray[np.float64]]:
    """What a user's text asks of the model: the negative gradient of its loss, before clipping.

    The loss is that of all the user's pairs (w, c), each with its weight: -log sigmoid(w . c) and
    `negatives` times the mean of -log sigmoid(-w . c') over the negative samples c'.

    Returns:
        The rows of `model.words` and of `model.contexts` that change, int64 (n,) and (m,), each
        distinct, and by how much, float64 (n + m, d).
    """
    import torch

    columns = np.union1d(user.words, negatives.rows)
    positive = np.zeros((len(user.words), len(columns)), dtype=np.float32)
    positive[:, np.searchsorted(columns, user.words)] = user.pairs
    shares = np.zeros(len(columns), dtype=np.float32)
    shares[np.searchsorted(columns, negatives.rows)] = settings.negatives * negatives.shares
    negative = user.pairs.sum(axis=1, dtype=np.float32)[:, None] * shares
    with torch.inference_mode():
        place = torch.device(device())
        words, contexts, pairs, against = (
            torch.from_numpy(array).to(place)
            for array in (model.words[user.words], model.contexts[columns], positive, negative)
        )
        chances = torch.sigmoid(words @ contexts.T)
        pull = pairs * (1 - chances) - against * chances
        found = torch.cat([pull @ contexts, pull.T @ words]).cpu().numpy()
    return user.words, columns, found.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Texts:
    """The texts of n users.

    Attributes:
        addresses: uint64 (n, 2), a user's own address in any stream.
        groups: int32 (n,), the number of each user's group.
        of_users: int64 (n + 1,), where each user's texts begin among all m of them.
        of_texts: int64 (m + 1,), where each text's words begin among all words.
        words: int32, the numbers of the words.
    """

    addresses: Addresses
    groups: npt.NDArray[np.int32]
    of_users: npt.NDArray[np.int64]
    of_texts: npt.NDArray[np.int64]
    words: npt.NDArray[np.int32]

    @classmethod
    def joined(cls, parts: Sequence[Texts]) -> Texts:
        """All users of some parts."""
        return cls(
            np.concatenate([part.addresses for part in parts]),
            np.concatenate([part.groups for part in parts]),
            _joined([part.of_users for part in parts]),
            _joined([part.of_texts for part in parts]),
            np.concatenate([part.words for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.groups)

    def of(self, user: int) -> list[Words]:
        """The texts of one user."""
        edges = self.of_texts[self.of_users[user] : self.of_users[user + 1] + 1].tolist()
        return [self.words[a:b] for a, b in itertools.pairwise(edges)]

    def part(self, number: int, parts: int) -> Texts:
        """The texts of one of so many parts of the users."""
        first, last = (len(self) * n // parts for n in (number, number + 1))
        texts = self.of_users[first], self.of_users[last]
        words = self.of_texts[texts[0]], self.of_texts[texts[1]]
        return Texts(
            self.addresses[first:last],
            self.groups[first:last],
            self.of_users[first : last + 1] - texts[0],
            self.of_texts[texts[0] : texts[1] + 1] - words[0],
            self.words[words[0] : words[1]],
        )


def _joined(offsets: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """The offsets into all parts together, from each part's own."""
    lengths = np.concatenate([np.diff(own) for own in offsets])
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


class Users:
    """The users of one worker, and what they add to a step.

    Each user's part is computed alone and clipped to whole numbers, so that it is a function of the
    model and of that user, and the sum is the same however users are divided among workers.
    """

    def __init__(
        self, texts: Texts, groups: Sequence[Group], settings: SkipGram, stream: Keystream
    ) -> None:
        """`groups` say how often the users of each take part, by number."""
        import torch

        torch.set_num_threads(1)  # workers are as many as processors
        self._texts = texts
        chances = [int(group.rate * 2**64) for group in groups]
        # What is drawn must not be above it: 2^64 itself has no place in 64 bits.
        self._largest = np.array([max(0, chance - 1) for chance in chances], dtype=np.uint64)
        self._steps = np.array([g.steps if c else 0 for g, c in zip(groups, chances, strict=True)])
        self._settings = settings
        self._stream = stream

    def sampled(self, step: int) -> npt.NDArray[np.int64]:
        """The users of a step: each is drawn alone, with the chance of its group's rate."""
        steps = np.full(len(self._texts), step, dtype=np.uint64)
        blocks = self._stream.gather(self._texts.addresses, steps, lane=_SAMPLE_LANE)
        drawn = blocks.view("<u8")[:, 0] <= self._largest[self._texts.groups]
        return np.flatnonzero(drawn & (step < self._steps[self._texts.groups]))

    def sums(self, step: int, model: Vectors, negatives: Negatives) -> npt.NDArray[np.int64]:
        """The sum of the sampled users' clipped updates, int64 (2 V, d): words, then contexts."""
        size = len(model.words)
        total = np.zeros((2 * size, self._settings.dimensions), dtype=np.int64)
        for number in self.sampled(step):
            user = User(self._texts.of(number), self._settings.window)
            if len(user.words):
                rows, columns, values = update(model, user, negatives, self._settings)
                with np.errstate(over="ignore"):
                    values /= self._settings.clip
                if not np.isfinite(values).all():
                    continue  # what the run does must not hang on one user
                whole = clipped(values, self._dither(number, step, values.shape))
                total[rows] += whole[: len(rows)]
                total[size + columns] += whole[len(rows) :]
        return total

    def _dither(self, number: int, step: int, shape: tuple[int, ...]) -> npt.NDArray[np.uint16]:
        """16 random bits for every value of one user's update."""
        address = self._texts.addresses[number : number + 1]
        size = int(np.prod(shape))
        blocks = self._stream.blocks(
            address, -(-size * 2 // BLOCK_BYTES), lane=_DITHER_LANE, start=step * _DITHER_BLOCKS
        )
        return blocks.view("<u2")[0, :size].reshape(shape)
