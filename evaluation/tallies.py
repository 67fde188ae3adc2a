"""The unit of work of a calibration: draws for a few words, counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled

from .simulation import Simulator

WORDS_A_BLOCK = 64


@dataclass(frozen=True)
class Block:
    """The words that one task measures, with separate noise."""

    number: int
    words: npt.NDArray[np.int64]
    seed: np.random.SeedSequence


@dataclass(frozen=True)
class DrawCounts:
    """The counts of a block's draws; arrays int32 (E, n)."""

    number: int
    unchanged: npt.NDArray[np.int32]
    set_size: npt.NDArray[np.int32]
    distinct: npt.NDArray[np.int32]


def blocks_of(words: npt.NDArray[np.int64], seed: np.random.SeedSequence) -> list[Block]:
    """Divide words into blocks, each with a separate seed."""
    return [
        Block(number, words[start : start + WORDS_A_BLOCK], child(seed, number))
        for number, start in enumerate(range(0, len(words), WORDS_A_BLOCK))
    ]


def child(seed: np.random.SeedSequence, number: int) -> np.random.SeedSequence:
    """Return child `number` of a seed; unlike with `spawn`, it is the same one every time."""
    return np.random.SeedSequence(
        seed.entropy, spawn_key=(*seed.spawn_key, number), pool_size=seed.pool_size
    )


@dataclass(frozen=True)
class BlockTask:
    """The work on every block: the draws for each epsilon and word, and their counts."""

    simulator: Simulator
    epsilons: tuple[float, ...]
    draws: int
    held: int

    def __call__(self, block: Block) -> DrawCounts:
        """Measure a block; it releases the interpreter's lock most of the time."""
        generator = np.random.default_rng(block.seed)
        outputs = self.simulator.outputs(block.words, self.epsilons, self.draws, generator)
        outputs.sort(axis=2)
        counts = [np.empty(outputs.shape[:2], dtype=np.int32) for _ in range(3)]
        for e, drawn in enumerate(outputs):
            _count(drawn, block.words, self.held, *(count[e] for count in counts))
        return DrawCounts(block.number, *counts)


@compiled
def _count(outputs, words, held, unchanged, set_size, distinct):  # type: ignore[no-untyped-def]
    """Count unchanged draws, set sizes and distinct outputs, from each word's sorted outputs."""
    draws = outputs.shape[1]
    runs = np.empty(draws + 1, dtype=np.int64)  # runs[length]: outputs that came so often
    for w in range(len(words)):
        runs[:] = 0
        unchanged[w] = 0
        start = 0
        for k in range(1, draws + 1):
            if k == draws or outputs[w, k] != outputs[w, start]:
                runs[k - start] += 1
                if outputs[w, start] == words[w]:
                    unchanged[w] = k - start
                start = k
        distinct[w] = runs.sum()
        missing = held
        size = 0
        for length in range(draws, 0, -1):
            taken = min(runs[length], -(-missing // length))
            size += taken
            missing -= taken * length
            if missing <= 0:
                break
        set_size[w] = size
