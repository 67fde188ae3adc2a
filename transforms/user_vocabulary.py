"""A vocabulary selected privately from what users write: each user has one bounded say in it."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indexes.tokenizer import tokenize
from indexes.vocabulary import Vocabulary, distinct_tokens
from mechanisms.keystream import Keystream
from mechanisms.user_vocabulary import UserVocabulary
from transforms.documents import Corpus, Split
from transforms.errors import redacted
from transforms.metrics import Progress
from transforms.sources import read
from transforms.users import NO_BUDGET, Users
from transforms.vocabulary import KeySource, thresholded

_WORDS_HELD = 1 << 20

_Words = tuple[int, dict[str, int]]
"""The number of a user's group, and the user's words, each with its priority."""


class SelectUserVocabulary(beam.PTransform):
    """Splits in, one `Vocabulary` out: the words whose noisy weight over all users is enough."""

    def __init__(
        self, corpus: Corpus, users: Users, selection: UserVocabulary, key: KeySource
    ) -> None:
        super().__init__()
        self._corpus = corpus
        self._users = users
        self._selection = selection
        self._key = key

    def expand(self, splits: beam.PCollection[Split]) -> beam.PCollection[Vocabulary]:
        weights = (
            splits
            | "words of users"
            >> beam.ParDo(_ReadWords(self._corpus, self._users, self._selection.words, self._key))
            | "bound" >> beam.CombinePerKey(BoundWords(self._selection.words))
            | "weigh" >> beam.ParDo(_Weigh(self._selection))
            | "over all users" >> beam.CombinePerKey(sum)
        )
        return thresholded(weights, self._selection, self._key, self._users)


class _ReadWords(beam.DoFn):
    """(digest, words) for every user of a split: in parts, if it has many words."""

    def __init__(self, corpus: Corpus, users: Users, most: int, key: KeySource) -> None:
        self._corpus = corpus
        self._users = users
        self._bound = BoundWords(most)
        self._key = key
        self._progress = Progress("vocabulary")

    @redacted
    def process(self, split: Split) -> Iterator[tuple[bytes, _Words]]:
        key = self._key()
        stream = key.stage("words of users", repr(self._users).encode())
        found: dict[bytes, set[str]] = defaultdict(set)
        groups: dict[bytes, int] = {}
        held = 0
        for documents in read(split, self._corpus):
            tokens = tokenize(documents.texts)
            self._progress.count(documents, len(tokens.starts))
            numbers = self._users.numbers(documents)
            words = _by_text(*distinct_tokens(tokens))
            for user, number, own in zip(
                self._users.digests(documents, key), numbers, words, strict=True
            ):
                if user is not None:
                    found[user].update(own)
                    groups[user] = min(groups.get(user, number), number)
                    held += len(own) + 1
            if held > _WORDS_HELD:
                yield from self._prioritised(found, groups, stream)
                found.clear()
                groups.clear()
                held = 0
        yield from self._prioritised(found, groups, stream)

    def _prioritised(
        self, found: Mapping[bytes, set[str]], groups: Mapping[bytes, int], stream: Keystream
    ) -> Iterator[tuple[bytes, _Words]]:
        for user, words in found.items():
            all_words = _priorities(user, sorted(words), stream)
            yield user, self._bound.compact((groups[user], all_words))


def _by_text(
    words: pa.Array, offsets: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]
) -> Iterator[list[str]]:
    listed = words.take(pa.array(numbers)).to_pylist()
    return (listed[a:b] for a, b in itertools.pairwise(offsets.tolist()))


def _priorities(user: bytes, words: list[str], stream: Keystream) -> dict[str, int]:
    """An order of a user's words that depends on the user and the key alone."""
    raw = (word.encode() for word in words)
    drawn = stream.addresses(user.hex(), [0] * len(words), raw)[:, 0]
    return dict(zip(words, drawn.tolist(), strict=True))


class BoundWords(beam.CombineFn):
    """A user's words of the first priorities, at most so many."""

    def __init__(self, words: int) -> None:
        self._words = words

    def create_accumulator(self) -> _Words:
        return 1 << 30, {}

    def add_input(self, share: _Words, more: _Words) -> _Words:
        share[1].update(more[1])
        joined = min(share[0], more[0]), share[1]
        return self.compact(joined) if len(joined[1]) > 2 * self._words else joined

    def merge_accumulators(self, shares: Iterable[_Words]) -> _Words:
        merged = self.create_accumulator()
        for share in shares:
            merged = self.compact(self.add_input(merged, share))
        return merged

    def compact(self, share: _Words) -> _Words:
        first = sorted(share[1].items(), key=lambda word: (word[1], word[0]))
        return share[0], dict(first[: self._words])

    def extract_output(self, share: _Words) -> _Words:
        return self.compact(share)


class _Weigh(beam.DoFn):
    """(word, weight) for each of a user's words."""

    def __init__(self, selection: UserVocabulary) -> None:
        self._selection = selection

    @redacted
    def process(self, user: tuple[bytes, _Words]) -> Iterator[tuple[str, int]]:
        group, words = user[1]
        if group != NO_BUDGET and words:
            weight = self._selection.weight(len(words))
            for word in words:
                yield word, weight
