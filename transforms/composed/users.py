"""Users in rows: their vocabulary, and their co-occurrence counts with noise bound to the rows.

A user's part is bounded as in a release of files. The digests of its documents, and those of
documents without a user, go with it, so that every sum that gets noise shows whether each document
of the input came to it exactly once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import apache_beam as beam
import numpy as np

from quietcorpus.indexes.tokens.tokenizers import Tokenizer
from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.users.user_vocabulary import UserVocabulary

from ..errors import NoisyOutcome, redacted, redacted_call
from ..metrics import Progress
from ..reading.documents import Documents
from ..reading.identifiers import Covered
from ..users.cooccurrence import (
    Cooccurrences,
    added,
    blocks_of,
    by_block,
    refuse_large,
)
from ..users.shards import Packed, pack, shard_of, summed
from ..users.user_vocabulary import BoundWords, UserWords, Words, weights_of
from ..users.users import BoundedUsers, BoundShare, Share, Users, counts, shares_of
from ..vocabulary import KeySource
from .sums import (
    Coverage,
    Part,
    ThresholdParts,
    by_bucket,
    coverages,
    require_covered,
)

NOBODY = b""
"""The digest under which documents without a user go; no user's is so short."""

_CONTENT = slice(3, 5)
_Own = TypeVar("_Own")
_Covering = tuple[_Own, Coverage]
"""A user's part in a sum, and the documents that it comes from."""


class _BoundCovering(beam.CombineFn):
    """A combiner that bounds a user's part by another one, and adds up its documents."""

    def __init__(self, bound: beam.CombineFn) -> None:
        self._bound = bound

    def create_accumulator(self) -> _Covering[Any]:
        return self._bound.create_accumulator(), np.zeros(5, np.uint64)

    @redacted_call
    def add_input(self, total: _Covering[Any], more: _Covering[Any]) -> _Covering[Any]:
        return self._bound.add_input(total[0], more[0]), total[1] + more[1]

    @redacted_call
    def merge_accumulators(self, totals: Iterable[_Covering[Any]]) -> _Covering[Any]:
        merged = self.create_accumulator()
        for total in totals:
            merged = self.compact(self.add_input(merged, total))
        return merged

    @redacted_call
    def compact(self, total: _Covering[Any]) -> _Covering[Any]:
        return self._bound.compact(total[0]), total[1]

    @redacted_call
    def extract_output(self, total: _Covering[Any]) -> _Covering[Any]:
        return self._bound.extract_output(total[0]), total[1]


class _ByUser(beam.PTransform):
    """A PTransform from documents to (shard, (digest, part) pairs), each user with one part."""

    def __init__(self, read: beam.ParDo, bound: beam.CombineFn, shards: int) -> None:
        super().__init__()
        self._read = read
        self._bound = bound
        self._shards = shards

    def expand(self, documents: beam.PCollection[Documents]) -> beam.PCollection:
        shards = self._shards
        return (
            documents
            | "read" >> self._read
            | "bound" >> beam.CombinePerKey(_BoundCovering(self._bound))
            | "by shard" >> beam.Map(lambda user: (shard_of(user[0], shards), user))
            | beam.GroupByKey()
        )


def owned(users: Users, documents: Documents, owners: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what a sum over users reads of each document beside its text: its user and group."""
    for owner, group in zip(owners, users.numbers(documents), strict=True):
        yield owner.ljust(16, b"\0") + group.to_bytes(8, "little", signed=True)


class _Reads:
    """The common part of DoFns from a batch to (digest, (part, documents)) pairs."""

    stage: str

    def __init__(self, users: Any, column: str, key: KeySource) -> None:
        self._users = users
        self._column = column
        self._key = key
        self._progress = Progress(self.stage)

    def start_bundle(self) -> None:
        self._release_key = self._key()

    def _covered(
        self, documents: Documents, users: Iterable[bytes | None]
    ) -> dict[bytes, Coverage]:
        """Return the documents of each user of a batch."""
        found: dict[bytes, Coverage] = defaultdict(lambda: np.zeros(5, np.uint64))
        owners = [user or NOBODY for user in users]
        others = owned(self._users, documents, owners)
        own = coverages(documents, self._column, self._release_key, others)
        for owner, one in zip(owners, own, strict=True):
            found[owner] = found[owner] + one
        return found


class _ReadShares(_Reads, beam.DoFn):
    """The DoFn for texts."""

    stage = "gathering"
    _users: BoundedUsers

    @redacted
    def process(
        self, documents: Documents, vocabulary: Vocabulary
    ) -> Iterator[tuple[bytes, _Covering[Share]]]:
        found = shares_of(documents, self._users, vocabulary, self._release_key)
        self._progress.count(documents, found.tokens)
        bound = BoundShare(self._users.tokens)
        shares: dict[bytes, Share] = defaultdict(bound.create_accumulator)
        for user, share in found.shares:
            if user is not None:
                shares[user] = bound.add_input(shares[user], share)
        for user, held in self._covered(documents, (user for user, _ in found.shares)).items():
            yield user, (shares[user], held)


class _ReadWords(_Reads, beam.DoFn):
    """The DoFn for the words of a vocabulary."""

    stage = "vocabulary"

    def __init__(
        self, users: BoundedUsers, column: str, key: KeySource, most: int, tokenizer: Tokenizer
    ) -> None:
        super().__init__(users, column, key)
        self._bound = BoundWords(most)
        self._tokenizer = tokenizer

    @redacted
    def process(self, documents: Documents) -> Iterator[tuple[bytes, _Covering[Words]]]:
        key = self._release_key
        found = UserWords(self._users, self._bound, key, self._tokenizer)
        self._progress.count(documents, found.add(documents))
        words = dict(found.taken())
        digests = self._users.digests(documents, key)
        for user, held in self._covered(documents, digests).items():
            yield user, (words.get(user) or self._bound.create_accumulator(), held)


class SumUserVocabulary(beam.PTransform):
    """A PTransform from documents to one `Vocabulary`, of the words that many users have."""

    def __init__(
        self,
        users: BoundedUsers,
        selection: UserVocabulary,
        column: str,
        key: KeySource,
        shards: int,
        identified: beam.PCollection[Covered],
        named: str,
        tokenizer: Tokenizer,
    ) -> None:
        """Configure as `SumVocabulary`; users are divided into `shards` parts."""
        super().__init__()
        read = beam.ParDo(_ReadWords(users, column, key, selection.words, tokenizer))
        self._words = _ByUser(read, BoundWords(selection.words), shards)
        self._weigh = beam.ParDo(_Weigh(selection))
        self._threshold = ThresholdParts(
            selection, key, identified, named, tokenizer, users=users.stage_parameters
        )

    def expand(self, documents: beam.PCollection[Documents]) -> beam.PCollection[Vocabulary]:
        return (
            documents
            | "words of users" >> self._words
            | "weigh" >> self._weigh
            | "select" >> self._threshold
        )


class _Weigh(beam.DoFn):
    """A DoFn that sums the weights of the words of a shard's users, in buckets."""

    def __init__(self, selection: UserVocabulary) -> None:
        self._selection = selection

    @redacted
    def process(
        self, shard: tuple[int, Iterable[tuple[bytes, _Covering[Words]]]]
    ) -> Iterator[tuple[int, Part[dict[str, int]]]]:
        users = [own for _, own in shard[1]]
        weights = weights_of((words for words, _ in users), self._selection)
        yield from by_bucket(
            weights, sum((held for _, held in users), start=np.zeros(5, np.uint64))
        )


class SumCooccurrences(beam.PTransform):
    """A PTransform from documents to (block, noisy counts) pairs, int64 as bytes."""

    def __init__(
        self,
        counting: Cooccurrences,
        vocabulary: beam.pvalue.AsSingleton,
        column: str,
        key: KeySource,
        shards: int,
        identified: beam.PCollection[Covered],
    ) -> None:
        """Configure for ids of the field `column`, all of which are `identified` as unique."""
        super().__init__()
        self._vocabulary = vocabulary
        users = counting.users
        read = beam.ParDo(_ReadShares(users, column, key), vocabulary)
        self._texts = _ByUser(read, BoundShare(users.tokens), shards)
        self._count = _CountPairs(counting, key)
        self._noise = _AddNoise(counting, key)
        self._identified = identified

    def expand(self, documents: beam.PCollection[Documents]) -> beam.PCollection:
        counted = (
            documents
            | "texts of users" >> self._texts
            | "count pairs" >> beam.ParDo(self._count, self._vocabulary)
        )
        nothing = (
            documents.pipeline
            | "no pairs" >> beam.Create([None])
            | "blocks" >> beam.FlatMap(_empty_blocks, self._vocabulary)
        )
        return (
            (counted, nothing)
            | beam.Flatten()
            | "over all users" >> beam.CombinePerKey(_added)
            | "noise"
            >> beam.ParDo(self._noise, self._vocabulary, beam.pvalue.AsIter(self._identified))
        )


_NOTHING = pack(summed([]))


@redacted
def _empty_blocks(_: None, vocabulary: Vocabulary) -> Iterator[tuple[int, _Covering[Packed]]]:
    refuse_large(len(vocabulary), NoisyOutcome)  # a public list was checked beforehand
    for number in blocks_of(len(vocabulary)):
        yield number, (_NOTHING, np.zeros(5, np.uint64))


@redacted_call
def _added(parts: Iterable[_Covering[Packed]]) -> _Covering[Packed]:
    listed = list(parts)
    held = sum((own for _, own in listed), start=np.zeros(5, np.uint64))
    return added(sums for sums, _ in listed), held


class _CountPairs(beam.DoFn):
    """A DoFn that sums the counts of a shard's users, in all blocks of cells."""

    def __init__(self, counting: Cooccurrences, key: KeySource) -> None:
        self._counting = counting
        self._key = key

    @redacted
    def process(
        self, shard: tuple[int, Iterable[tuple[bytes, _Covering[Share]]]], vocabulary: Vocabulary
    ) -> Iterator[tuple[int, _Covering[Packed]]]:
        held = np.zeros(5, np.uint64)

        def users() -> Iterator[tuple[bytes, Share]]:
            nonlocal held
            for user, (share, own) in shard[1]:
                held = held + own
                if counts(share):
                    yield user, share

        sums = dict(by_block(self._counting.summed(users(), len(vocabulary), self._key())))
        for number in blocks_of(len(vocabulary)):
            yield number, (sums.get(number, _NOTHING), held)


class _AddNoise(beam.DoFn):
    """A DoFn that adds noise to a block, once every document is in it exactly once."""

    def __init__(self, counting: Cooccurrences, key: KeySource) -> None:
        self._counting = counting
        self._key = key

    @redacted
    def process(
        self,
        block: tuple[int, _Covering[Packed]],
        vocabulary: Vocabulary,
        identified: Iterable[Covered],
    ) -> Iterator[tuple[int, bytes]]:
        number, (packed, held) = block
        require_covered(held, identified)
        key = self._key().bound(held[_CONTENT].tobytes())
        yield number, self._counting.noisy(number, packed, vocabulary, key).tobytes()
