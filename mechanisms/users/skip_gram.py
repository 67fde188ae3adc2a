"""Skip-gram with negative sampling: the update of the model from a user's whole text.

Mikolov et al.: Distributed representations of words and phrases (NIPS 2013), equation 4, trained as
intended by Vu, Tran and Jiang: dpUGC (CICLing 2019), with the user as the unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..keystream import BLOCK_BYTES, Keystream
from ..words.word_pairs import Words, balanced_matrix

if TYPE_CHECKING:
    import torch

_LANE = 2  # 0 and 1 are those of `quietcorpus.mechanisms.users.sampled_users`
_MOST_CHANCES, _MOST_VALUES, _LEAST_NEGATIVES = 1 << 24, 1 << 17, 64

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SkipGram:
    """The settings of the model, without the length and the noise of its training.

    Attributes:
        dimensions: the dimensions of a vector.
        window: the largest distance of two words that make a pair.
        negatives: the weight of a pair's negative samples against it: in word2vec, their number.
        clip: the norm C that a user's update is clipped to.
    """

    dimensions: int
    window: int
    negatives: int
    clip: float


@dataclass(frozen=True, eq=False)
class Vectors:
    """The model: `words` are released, and `contexts` are what they are trained against.

    Both are float32 (V, d).
    """

    words: npt.NDArray[np.float32]
    contexts: npt.NDArray[np.float32]


def negative_samples(step: int, size: int, dimensions: int, stream: Keystream) -> Rows:
    """Draw the negative samples that all users of a step share: words of `size`, ascending.

    They are all words, or as many as have 2^17 numbers (or 2^24 chances with all words), but at
    least 64. A few samples would fill a user's clipped norm with a gradient that is the same for
    all users. With many more, the gradient of each number would be smaller than the whole numbers
    that updates are rounded to.
    """
    most = min(_MOST_CHANCES // size, _MOST_VALUES // dimensions)
    count = min(size, max(_LEAST_NEGATIVES, most))
    if count == size:
        return np.arange(size)
    address = stream.addresses("negatives", [step], [b""])
    blocks = stream.blocks(address, -(-size * 8 // BLOCK_BYTES), lane=_LANE)
    return np.sort(np.argsort(blocks.view("<u8")[0, :size], kind="stable")[:count])


def device() -> str:
    """Return the device that computes updates: a GPU if there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def device_name() -> str:
    """Name the device, in the detail that an update's last digits depend on; CPUs are all alike."""
    import torch

    if device() == "cpu":
        return "cpu"
    return f"cuda {torch.version.cuda} on {torch.cuda.get_device_name()}"


@dataclass(frozen=True, eq=False)
class Against:
    """The gradient from a step's negative samples, in the part that is the same for all users.

    Attributes:
        rows: int64 (m,), the negative samples.
        chances: float32 (V, m), sigmoid(w . c) of every word w and negative sample c, times the
            weight of one sample.
        words: float32 (V, d), the sum over c of these chances times c: the gradient for each word.
    """

    rows: Rows
    chances: npt.NDArray[np.float32]
    words: npt.NDArray[np.float32]

    @classmethod
    def of(cls, model: Vectors, rows: Rows, settings: SkipGram) -> Against:
        """Compute this part for the model before the step."""
        import torch

        with torch.inference_mode():
            words, contexts = _placed(model.words, model.contexts[rows])
            chances = torch.sigmoid(words @ contexts.T).mul_(settings.negatives / len(rows))
            asked = chances @ contexts
            return cls(rows, chances.cpu().numpy(), asked.cpu().numpy())


class User:
    """A user's text, ready for any number of steps.

    Attributes:
        words: int32 (n,), the distinct words, ascending.
        pairs: float32 (n, n), the weight of each pair of them, in both orders.
    """

    def __init__(self, texts: Sequence[Words], window: int) -> None:
        self.words, self.pairs = balanced_matrix(texts, window)


def update(
    model: Vectors, user: User, against: Against
) -> tuple[Rows, Rows, npt.NDArray[np.float32]]:
    """Compute a user's update: the negative gradient of the text's loss, before clipping.

    The loss is that of all the user's pairs (w, c), each with its weight: -log sigmoid(w . c) plus
    `negatives` times the mean of -log sigmoid(-w . c') over the negative samples c'.

    Returns:
        The rows of `model.words` and of `model.contexts` that change, int64 (n,) and (m,), each
        distinct, and their changes, float32 (n + m, d).
    """
    import torch

    # Where each of the user's words stands among the contexts that change.
    place = np.searchsorted(against.rows, user.words)
    inside = place < len(against.rows)
    inside[inside] = against.rows[place[inside]] == user.words[inside]
    others = user.words[~inside]
    place[~inside] = len(against.rows) + np.arange(len(others))
    with torch.inference_mode():
        words, contexts, pairs, chances, asked = _placed(
            model.words[user.words],
            model.contexts[user.words],
            user.pairs,
            against.chances[user.words],
            against.words[user.words],
        )
        weighed = pairs.sum(dim=1, keepdim=True)
        pull = pairs * torch.sigmoid(words @ contexts.T).neg_().add_(1)
        for_words = pull @ contexts - weighed * asked
        for_contexts = words.new_zeros(len(against.rows) + len(others), words.shape[1])
        for_contexts[: len(against.rows)] = (chances.T @ (weighed * words)).neg_()
        for_contexts[torch.from_numpy(place).to(words.device)] += pull.T @ words
        found: npt.NDArray[np.float32] = torch.cat([for_words, for_contexts]).cpu().numpy()
    columns = np.concatenate([against.rows, others])
    return user.words.astype(np.int64), columns, found


def _placed(*arrays: npt.NDArray[np.float32]) -> list[torch.Tensor]:
    import torch

    place = torch.device(device())
    return [torch.from_numpy(array).to(place) for array in arrays]
