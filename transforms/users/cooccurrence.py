"""The co-occurrence counts of a corpus, released once: clipped by user, summed, noised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.encoding import Value
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.users.clipped_sum import ClippedSum, clipped, dither
from quietcorpus.mechanisms.users.cooccurrence import Cells, cells_of, contribution
from quietcorpus.mechanisms.users.group_norms import norm_of_group

from ..errors import InputError, NoisyOutcome, redacted, redacted_call
from ..shards import Written, write_tables
from ..sums import AddNoiseByKey, Coverage, Covering, OfParts
from ..vocabulary import KeySource
from .shards import ByShard, Packed, Sums, pack, summed, unpack
from .users import BoundedUsers, Share, counts, words_of

FOLDER = "cooccurrences"
_SCHEMA = pa.schema([pa.field("count", pa.int64())])
MOST_WORDS = 20_000
"""The largest vocabulary: all pairs of its words get noise, and are held by the launcher."""
_CELLS_A_BLOCK = 1 << 21
_CELLS_HELD = 1 << 22


@dataclass(frozen=True)
class Cooccurrences:
    """The parameters of the counts and of their noise.

    Attributes:
        window: the largest distance of two words that make a pair.
        most: for each group of users, the norm that a user's whole counts are clipped to.
        mechanism: the mechanism that adds the noise.
        users: how users were told apart and bounded.
    """

    window: int
    most: tuple[int, ...]
    mechanism: ClippedSum
    users: BoundedUsers

    @property
    def stage_parameters(self) -> dict[str, Value]:
        """Return what counts and noise depend on, as parameters of their stages."""
        return {
            "window": self.window,
            "most": self.most,
            "noise_multiplier": self.mechanism.noise_multiplier,
            "users": self.users.stage_parameters,
        }

    def clipped(
        self, user: bytes, share: Share, size: int, key: ReleaseKey
    ) -> tuple[Cells, npt.NDArray[np.int64]]:
        """Return a user's cells and clipped whole counts, over `size` words, without zeros."""
        most = norm_of_group(share[0], self.most)
        texts = words_of(share)
        cells, values = contribution(texts, self.window, size)
        stream = key.stage("clipping", 1, **self.stage_parameters, words=size)
        address = stream.addresses(user.hex(), [share[0]], [b"".join(raw for _, raw in share[1])])
        bits = dither(stream, address, cells.shape, lane=0)
        whole = clipped(values, bits, most)
        return cells[whole != 0], whole[whole != 0].astype(np.int64)

    def summed(self, users: Iterable[tuple[bytes, Share]], size: int, key: ReleaseKey) -> Sums:
        """Sum the clipped counts of different users, over `size` words."""
        parts: list[Sums] = []
        held, most = 0, _CELLS_HELD
        for user, share in users:
            parts.append(self.clipped(user, share, size, key))
            held += len(parts[-1][0])
            if held > most:
                parts = [summed(parts)]
                held = len(parts[0][0])
                most = max(_CELLS_HELD, 2 * held)  # or every further user would cause another sort
        return summed(parts)

    def noisy(
        self, number: int, packed: Packed, vocabulary: Vocabulary, key: ReleaseKey
    ) -> npt.NDArray[np.int64]:
        """Add noise to a block's sums; return the counts of all its cells, in order."""
        cells, counted = unpack(packed)
        first = number * _CELLS_A_BLOCK
        size = min(_CELLS_A_BLOCK, cells_of(len(vocabulary)) - first)
        sums = np.zeros((1, size), dtype=np.int64)
        sums[0, cells - first] = counted
        stream = key.stage(
            "cooccurrences",
            1,
            **self.stage_parameters,
            vocabulary=vocabulary.digest,
            tokenizer=vocabulary.tokenizer.law,
        )
        address = stream.addresses("block", [number], [b"".join(packed)])
        found: npt.NDArray[np.int64] = self.mechanism.release(sums, stream, address)[0]
        return found


def blocks_of(words: int) -> range:
    """Return the numbers of the blocks that hold the pairs of `words` words."""
    return range(-(-cells_of(words) // _CELLS_A_BLOCK))


def by_block(sums: Sums) -> Iterator[tuple[int, Packed]]:
    """Divide sums into the blocks of their cells, those without any left out."""
    cells, counted = sums
    blocks = cells // _CELLS_A_BLOCK
    for number in np.unique(blocks):
        own = blocks == number
        yield int(number), pack((cells[own], counted[own]))


def added(parts: Iterable[Packed]) -> Packed:
    """Add up the sums of a block."""
    return pack(summed(map(unpack, parts)))


class NoisyCooccurrences(beam.PTransform):
    """A PTransform from (digest, `Share`) pairs, one for each user, to (block, counts) pairs.

    The noisy counts of all of a block's cells are int64 as bytes, in order. Every block is
    released, even one in which no user has a pair.
    """

    def __init__(
        self,
        counting: Cooccurrences,
        vocabulary: beam.pvalue.AsSingleton,
        shards: int,
        key: KeySource,
        coverage: Coverage,
        identified: beam.pvalue.AsIter | tuple[()] = (),
    ) -> None:
        """Configure; `identified` has the documents that sums over rows must cover."""
        super().__init__()
        self._vocabulary = vocabulary
        self._identified = identified
        self._shards = shards
        self._count = _CountPairs(counting, key, coverage)
        self._coverage = coverage
        self._noise = AddNoiseByKey(coverage, key, partial(_noisy, counting))

    def expand(self, shares: beam.PCollection) -> beam.PCollection[tuple[int, bytes]]:
        return (
            shares
            | "by shard" >> ByShard(self._shards)
            | "count pairs" >> beam.ParDo(self._count, self._vocabulary)
            | "over all users" >> beam.CombinePerKey(partial(_added, self._coverage))
            | "noise" >> beam.ParDo(self._noise, self._identified, self._vocabulary)
        )


class ReleaseCooccurrences(beam.PTransform):
    """A PTransform from (digest, `Share`) pairs to a `Written` file of noisy counts per block."""

    def __init__(
        self,
        counting: Cooccurrences,
        vocabulary: beam.pvalue.AsSingleton,
        shards: int,
        key: KeySource,
        staging: str,
    ) -> None:
        super().__init__()
        self._noisy = NoisyCooccurrences(counting, vocabulary, shards, key, OfParts(shards))
        self._write = _WriteBlock(key, staging)

    def expand(self, shares: beam.PCollection[tuple[bytes, Share]]) -> beam.PCollection[Written]:
        return shares | self._noisy | "write" >> beam.ParDo(self._write)


def refuse_large(words: int, refusal: type[InputError] = InputError) -> None:
    """Raise a refusal for a vocabulary of too many words."""
    if words > MOST_WORDS:
        raise refusal(
            f"mechanism.vocabulary: {words} words have too many pairs; give at most {MOST_WORDS}, "
            "or train with `method: sgd` of a release"
        )


class _CountPairs(beam.DoFn):
    """A DoFn that sums the counts of a shard's users, in all blocks of cells."""

    def __init__(self, counting: Cooccurrences, key: KeySource, coverage: Coverage) -> None:
        self._counting = counting
        self._key = key
        self._coverage = coverage

    @redacted
    def process(
        self, shard: tuple[int, Iterable[Any]], vocabulary: Vocabulary
    ) -> Iterator[tuple[int, Covering[Packed]]]:
        refuse_large(len(vocabulary), NoisyOutcome)  # a public list was checked beforehand
        held: list[Any] = []
        users = (own for own in self._coverage.users(shard, held) if counts(own[1]))
        sums = dict(by_block(self._counting.summed(users, len(vocabulary), self._key())))
        covered = self._coverage.joined(held)  # complete, since all users are summed
        # Every block, even without a pair of these users: which have none is private, and noise on
        # a block waits until every shard, or every document, is in it.
        for number in blocks_of(len(vocabulary)):
            yield number, (sums.get(number, _NOTHING), covered)


_NOTHING = pack(summed([]))


@redacted_call
def _added(coverage: Coverage, parts: Iterable[Covering[Packed]]) -> Covering[Packed]:
    listed = list(parts)
    return added(sums for sums, _ in listed), coverage.joined(own for _, own in listed)


def _noisy(
    counting: Cooccurrences, number: int, packed: Packed, key: ReleaseKey, vocabulary: Vocabulary
) -> bytes:
    return counting.noisy(number, packed, vocabulary, key).tobytes()


class _WriteBlock(beam.DoFn):
    """A DoFn that writes a block's file."""

    def __init__(self, key: KeySource, staging: str) -> None:
        self._key = key
        self._staging = staging

    @redacted
    def process(self, block: tuple[int, bytes]) -> Iterator[Written]:
        number, noisy = block
        table = pa.table([pa.array(np.frombuffer(noisy, np.int64))], schema=_SCHEMA)
        path = f"{FOLDER}/block-{number:05d}.parquet"
        yield write_tables([table], _SCHEMA, path, self._staging, self._key())
