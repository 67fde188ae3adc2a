"""The users of a training: the sampling of a step's users, and the sum of their clipped updates.

A step takes the gradient of each sampled user's whole text, clips it, and adds up whole numbers.
(The listing of Vu, Tran and Jiang: dpUGC, CICLing 2019, clips nothing, and its noise follows from
no bound.)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled

from ..accounting.privacy_loss import Group
from ..keystream import Addresses, Keystream
from ..words.word_pairs import Words
from .clipped_sum import clipped, dither
from .skip_gram import Against, Rows, SkipGram, User, Vectors, update

_SAMPLE_LANE, _DITHER_LANE = 0, 1
_DITHER_BLOCKS = 1 << 32  # of one user and step; more than any update has values


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
        """Join the users of some parts."""
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
        """Return the texts of one user."""
        edges = self.of_texts[self.of_users[user] : self.of_users[user + 1] + 1].tolist()
        return [self.words[a:b] for a, b in itertools.pairwise(edges)]

    def part(self, number: int, parts: int) -> Texts:
        """Return the texts of part `number` when the users are divided into `parts` parts."""
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
    """Compute the offsets into all parts together, from each part's own."""
    lengths = np.concatenate([np.diff(own) for own in offsets])
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


class SampledUsers:
    """The users of one worker, and their contributions to a step.

    Each user's update is computed alone and clipped to whole numbers. It is therefore a function of
    the model and of that user, and the sum is the same however users are divided among workers.
    """

    def __init__(
        self, texts: Texts, groups: Sequence[Group], settings: SkipGram, stream: Keystream
    ) -> None:
        """Prepare the users; `groups`, by number, say how often their users take part."""
        import torch

        if texts.groups.min(initial=0) < 0:
            raise ValueError("a user without a budget takes no part")
        torch.set_num_threads(1)  # workers are as many as processors
        self._texts = texts
        chances = [int(group.rate * 2**64) for group in groups]
        # A user is sampled whose draw is not above this: 2^64 itself does not fit 64 bits.
        self._largest = np.array([max(0, chance - 1) for chance in chances], dtype=np.uint64)
        self._steps = np.array([g.steps if c else 0 for g, c in zip(groups, chances, strict=True)])
        self._settings = settings
        self._stream = stream

    def sampled(self, step: int) -> npt.NDArray[np.int64]:
        """Sample the users of a step, each independently, at the rate of the user's group."""
        steps = np.full(len(self._texts), step, dtype=np.uint64)
        blocks = self._stream.gather(self._texts.addresses, steps, lane=_SAMPLE_LANE)
        drawn = blocks.view("<u8")[:, 0] <= self._largest[self._texts.groups]
        return np.flatnonzero(drawn & (step < self._steps[self._texts.groups]))

    def sums(self, step: int, model: Vectors, negatives: Rows) -> npt.NDArray[np.int64]:
        """Sum the sampled users' clipped updates, int64 (2 V, d): words, then contexts."""
        size = len(model.words)
        total = np.zeros((2 * size, self._settings.dimensions), dtype=np.int64)
        against = Against.of(model, negatives, self._settings)
        for number in self.sampled(step):
            user = User(self._texts.of(number), self._settings.window)
            if len(user.words):
                rows, columns, values = update(model, user, against)
                with np.errstate(over="ignore"):
                    values /= np.float32(self._settings.clip)
                if not np.isfinite(values).all():
                    continue  # an error would let one user's text stop the run
                whole = clipped(values, self._dither(number, step, values.shape))
                _add(total, np.concatenate([rows, size + columns]), whole)
        return total

    def _dither(self, number: int, step: int, shape: tuple[int, ...]) -> npt.NDArray[np.uint16]:
        """Return 16 random bits for every value of one user's update."""
        address = self._texts.addresses[number : number + 1]
        start = step * _DITHER_BLOCKS
        return dither(self._stream, address, shape, lane=_DITHER_LANE, start=start)


@compiled
def _add(total, rows, values):  # type: ignore[no-untyped-def]
    """Add each row of `values` to the row of `total` that `rows` numbers."""
    for i in range(len(rows)):
        for j in range(values.shape[1]):
            total[rows[i], j] += values[i, j]
