"""A vocabulary selected privately from users' texts: each user makes one bounded contribution."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from apache_beam.pvalue import TaggedOutput

from quietcorpus.indexes.tokens.tokenizers import Tokenizer
from quietcorpus.indexes.tokens.vocabulary import Vocabulary, distinct_tokens
from quietcorpus.mechanisms.keystream import Keystream, ReleaseKey
from quietcorpus.mechanisms.users.user_vocabulary import UserVocabulary

from ..errors import redacted, redacted_call
from ..metrics import Progress
from ..reading.documents import Corpus, Documents, Split
from ..shards import TALLIES, Tally
from ..sums import Coverage, OfParts, TermSums, bucketed
from ..tokens import tokens_of
from ..vocabulary import KeySource, Threshold
from .shards import ByShard
from .users import NO_BUDGET, Users

_WORDS_HELD = 1 << 20

Words = tuple[int, dict[str, int]]
"""The number of a user's group, and the user's words, each with its priority."""


class UserVocabularyOfSplits(beam.PTransform):
    """A PTransform from splits to the tagged outputs `vocabulary` (one `Vocabulary`) and `tallies`.

    The vocabulary is the words whose noisy weight over all users reaches the threshold. A split
    that is read twice gives its users no further words, so it is users who must occur only once.
    """

    def __init__(
        self,
        corpus: Corpus,
        users: Users,
        selection: UserVocabulary,
        key: KeySource,
        shards: int,
        tokenizer: Tokenizer,
    ) -> None:
        """Configure the selection; users are divided into `shards` parts, by their digests."""
        super().__init__()
        self._corpus = corpus
        self._users = users
        self._selection = selection
        self._key = key
        self._shards = shards
        self._tokenizer = tokenizer

    def expand(self, splits: beam.PCollection[Split]) -> dict[str, beam.PCollection]:
        words = splits | "words of users" >> beam.ParDo(
            _ReadWords(self._corpus, self._users, self._selection.words, self._key, self._tokenizer)
        ).with_outputs(TALLIES, main="words")
        bounded = words.words | "bound" >> beam.CombinePerKey(BoundWords(self._selection.words))
        vocabulary = bounded | ThresholdUsers(
            self._users,
            self._selection,
            self._key,
            self._shards,
            OfParts(self._shards),
            self._tokenizer,
        )
        return {"vocabulary": vocabulary, TALLIES: words[TALLIES]}


class ThresholdUsers(beam.PTransform):
    """A PTransform from (digest, `Words`) pairs, one for each user, to one `Vocabulary`."""

    def __init__(
        self,
        users: Users,
        selection: UserVocabulary,
        key: KeySource,
        shards: int,
        coverage: Coverage,
        tokenizer: Tokenizer,
        *others: Any,
    ) -> None:
        """Configure as `Threshold`, whose last arguments are `others`."""
        super().__init__()
        self._shards = shards
        self._weigh = _Weigh(selection, coverage)
        parameters = {"users": users.stage_parameters}
        self._threshold = Threshold(selection, key, parameters, coverage, tokenizer, *others)

    def expand(self, words: beam.PCollection) -> beam.PCollection[Vocabulary]:
        # Noise requires every shard in a sum, even one without users.
        return (
            words
            | "users by shard" >> ByShard(self._shards)
            | "weigh" >> beam.ParDo(self._weigh)
            | self._threshold
        )


class _ReadWords(beam.DoFn):
    """A DoFn from a split to (digest, words) for each user, in parts if it has many words."""

    def __init__(
        self, corpus: Corpus, users: Users, most: int, key: KeySource, tokenizer: Tokenizer
    ) -> None:
        self._corpus = corpus
        self._tokenizer = tokenizer
        self._users = users
        self._bound = BoundWords(most)
        self._key = key
        self._progress = Progress("vocabulary")

    @redacted
    def process(self, split: Split) -> Iterator[object]:
        key = self._key()
        found = UserWords(self._users, self._bound, key, self._tokenizer)
        for documents in self._progress.read(split, self._corpus):
            self._progress.count(documents, found.add(documents))
            if found.held > _WORDS_HELD:
                yield from found.taken()
        yield from found.taken()
        yield TaggedOutput(TALLIES, Tally.of_pass("vocabulary", split))


class UserWords:
    """The words of users in some documents, with their priorities.

    Attributes:
        held: about how many they are.
    """

    def __init__(
        self, users: Users, bound: BoundWords, key: ReleaseKey, tokenizer: Tokenizer
    ) -> None:
        self._users = users
        self._bound = bound
        self._key = key
        self._tokenizer = tokenizer
        self._stream = key.stage(
            "words of users", 2, **users.stage_parameters, tokenizer=tokenizer.law
        )
        self._clear()

    def _clear(self) -> None:
        self._found: dict[bytes, set[str]] = defaultdict(set)
        self._groups: dict[bytes, int] = {}
        self.held = 0

    def add(self, documents: Documents) -> int:
        """Add the words of a batch; return the number of tokens."""
        tokens = tokens_of(documents.texts, self._tokenizer)
        numbers = self._users.numbers(documents)
        words = _by_text(*distinct_tokens(tokens))
        for user, number, own in zip(
            self._users.digests(documents, self._key), numbers, words, strict=True
        ):
            if user is not None:
                self._found[user].update(own)
                self._groups[user] = min(self._groups.get(user, number), number)
                self.held += len(own) + 1
        return len(tokens.starts)

    def taken(self) -> Iterator[tuple[bytes, Words]]:
        """Yield each user and the first of the user's words, and begin anew."""
        for user, words in self._found.items():
            all_words = _priorities(user, sorted(words), self._stream)
            yield user, self._bound.compact((self._groups[user], all_words))
        self._clear()


def _by_text(
    words: pa.Array, offsets: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]
) -> Iterator[list[str]]:
    listed = words.take(pa.array(numbers)).to_pylist()
    return (listed[a:b] for a, b in itertools.pairwise(offsets.tolist()))


def _priorities(user: bytes, words: list[str], stream: Keystream) -> dict[str, int]:
    """Draw an order of a user's words that depends on the user and the key alone."""
    raw = (word.encode() for word in words)
    drawn = stream.addresses(user.hex(), [0] * len(words), raw)[:, 0]
    return dict(zip(words, drawn.tolist(), strict=True))


class BoundWords(beam.CombineFn):
    """A combiner that keeps a user's first words by priority, at most `words` of them."""

    def __init__(self, words: int) -> None:
        self._words = words

    def create_accumulator(self) -> Words:
        return 1 << 30, {}

    @redacted_call
    def add_input(self, share: Words, more: Words) -> Words:
        share[1].update(more[1])
        joined = min(share[0], more[0]), share[1]
        return self.compact(joined) if len(joined[1]) > 2 * self._words else joined

    @redacted_call
    def merge_accumulators(self, shares: Iterable[Words]) -> Words:
        merged = self.create_accumulator()
        for share in shares:
            merged = self.compact(self.add_input(merged, share))
        return merged

    @redacted_call
    def compact(self, share: Words) -> Words:
        first = sorted(share[1].items(), key=lambda word: (word[1], word[0]))
        return share[0], dict(first[: self._words])

    @redacted_call
    def extract_output(self, share: Words) -> Words:
        return self.compact(share)


class _Weigh(beam.DoFn):
    """A DoFn that sums the weights of the words of a shard's users, in buckets."""

    def __init__(self, selection: UserVocabulary, coverage: Coverage) -> None:
        self._selection = selection
        self._coverage = coverage

    @redacted
    def process(self, shard: tuple[int, Iterable[Any]]) -> Iterator[tuple[int, TermSums]]:
        held: list[Any] = []
        words = (own for _, own in self._coverage.users(shard, held))
        weights = weights_of(words, self._selection)  # after which `held` is complete
        yield from bucketed(weights, self._coverage.joined(held))


def weights_of(users: Iterable[Words], selection: UserVocabulary) -> dict[str, int]:
    """Sum the weights of the words of different users."""
    weights: dict[str, int] = defaultdict(int)
    for group, words in users:
        if group != NO_BUDGET and words:
            weight = selection.weight(len(words))
            for word in words:
                weights[word] += weight
    return weights
