"""The language of texts, compared by their use of an artefact's most frequent words.

The most frequent words of a language (the, of, and) make up half of its texts on any subject, and
other languages have few of them. Long lists hold foreign words, too: the number of a corpus's words
that are in a list reveals little. The frequency of the list's first hundred words reveals the
language.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .segmentation import WITHOUT_SPACES
from .tokenizer import Tokens
from .tokenizers import FIRST_WORDS
from .vocabulary import Vocabulary, VocabularyError
from .written_language import SIMPLIFIED

MOST = 100
"""The largest number of frequent words."""
FREQUENT_WORDS = "frequent_words"
"""The key, in an artefact's manifest, of its frequent words and their shares."""
_LEAST_WORDS = 1_000
_LEAST_AGREEMENT = 0.4
_NONE = 0.05


@dataclass(frozen=True)
class FrequentCounts:
    """The number of a corpus's words, and of each of an artefact's most frequent ones."""

    words: int = 0
    of_each: tuple[int, ...] = ()

    @classmethod
    def of_terms(cls, words: int, terms: npt.NDArray[np.int32]) -> FrequentCounts:
        """Count the terms of some texts, int32, whose numbers begin with the most frequent."""
        return cls(words, tuple(np.bincount(terms, minlength=MOST)[:MOST].tolist()))

    def __add__(self, other: FrequentCounts) -> FrequentCounts:
        pairs = itertools.zip_longest(self.of_each, other.of_each, fillvalue=0)
        return FrequentCounts(self.words + other.words, tuple(a + b for a, b in pairs))


@dataclass(frozen=True)
class FrequentWords:
    """The most frequent words of public texts, the first `MOST` at most.

    Attributes:
        words: the words, the most frequent first.
        shares: each one's share of all words of the texts.
    """

    words: tuple[str, ...]
    shares: tuple[float, ...]

    @classmethod
    def of(cls, texts: pa.Array) -> FrequentWords | None:
        """Return those of texts in any language, large_string (n,); None of less than 1,000 words.

        A word is one of `unicode-words-v1`, and a single character in scripts that are written
        without spaces between words.
        """
        counts = Counter(_spelled(_words(texts)))
        total = counts.total()
        if total < _LEAST_WORDS:
            return None
        found = [(word, count / total) for word, count in counts.most_common(MOST)]
        return cls(tuple(word for word, _ in found), tuple(share for _, share in found))

    @classmethod
    def of_record(cls, record: Any) -> FrequentWords | None:
        """Read a manifest's `record`; None if it is not one, as in artefacts without any."""
        if not isinstance(record, Mapping) or not 0 < len(record) <= MOST:
            return None
        if not all(isinstance(share, float) and 0 < share <= 1 for share in record.values()):
            return None
        return cls(tuple(record), tuple(record.values()))

    @property
    def record(self) -> dict[str, float]:
        """Return what `of_record` reads: each word's share, rounded."""
        shares = (
            (word, round(share, 6)) for word, share in zip(self.words, self.shares, strict=True)
        )
        return {word: share for word, share in shares if share}

    def is_foreign(self, counts: FrequentCounts) -> bool:
        """Return whether a corpus uses these words so little that its language is another.

        The use that a corpus shares with the public texts is, of each word, the lesser of its two
        shares. Of 1,000 words or more, at least .4 of the public texts' own is expected; see
        docs/measurements/languages.md.
        """
        return counts.words >= _LEAST_WORDS and self.agreement(counts) < _LEAST_AGREEMENT

    def is_traditional(self, counts: FrequentCounts) -> bool:
        """Return whether a corpus has none of the words that are in simplified characters.

        Chinese ones; less than a twentieth of their use counts as none.
        """
        told = [not SIMPLIFIED.isdisjoint(word) for word in self.words]
        if counts.words < _LEAST_WORDS or not any(told):
            return False
        shares = tuple(s * tells for s, tells in zip(self.shares, told, strict=True))
        return FrequentWords(self.words, shares).agreement(counts) < _NONE

    def agreement(self, counts: FrequentCounts) -> float:
        """Return the part of these words' use, from 0 to 1, that a corpus shares."""
        own = np.array(self.shares)
        found = np.zeros(len(own))
        found[: len(counts.of_each)] = np.array(counts.of_each[: len(own)]) / counts.words
        return float(np.minimum(found, own).sum() / own.sum())


class FrequentWordCounter:
    """A counter of frequent words in texts of any language; see `FrequentWords.of`."""

    def __init__(self, frequent: FrequentWords | None) -> None:
        """Prepare the words; without any, nothing is counted."""
        self._vocabulary: Vocabulary | None = None
        try:
            if frequent:
                self._vocabulary = Vocabulary(frequent.words)
        except VocabularyError:  # not what this software has written: no reason to fail
            pass

    def count(self, texts: pa.Array) -> FrequentCounts:
        """Count the words of a batch of texts, large_string (n,)."""
        if self._vocabulary is None:
            return FrequentCounts()
        tokens = _words(texts)
        _, terms = self._vocabulary.look_up(tokens)
        return FrequentCounts.of_terms(len(tokens.starts), terms)


def _words(texts: pa.Array) -> Tokens:
    apart = pc.replace_substring_regex(texts, f"({WITHOUT_SPACES})", r" \1 ")
    return FIRST_WORDS.tokenize(apart)


def _spelled(tokens: Tokens) -> Iterable[str]:
    data = tokens.data.tobytes()
    return (
        data[start:end].decode()
        for start, end in zip(tokens.starts.tolist(), tokens.ends.tolist(), strict=True)
    )
