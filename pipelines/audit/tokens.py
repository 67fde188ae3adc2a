"""Changes by tokens of a made-up document in the exact counts of a job, before any noise."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import cycle, islice
from pathlib import Path

from quietcorpus.evaluation.audits.findings import Exact
from quietcorpus.mechanisms.histogram import Histogram
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.artefacts.files import FileSource
from quietcorpus.transforms.shards import Written

from ..kinds.embeddings_users import staged_table
from ..kinds.histogram import HistogramKind
from ..kinds.limited_precision import VocabularyStep
from ..schema.histogram import HistogramSpec
from ..storage import layout
from .built import TEXT, Row, built, heard, of_all_terms, silent
from .inputs import made_up_words

_NAME = "tokens"
_WORDS = 40
_MOST_TOKENS = 4_000
Counts = Mapping[str, int]


class _Counting(HistogramKind):
    """The kind without the noise on its counts."""

    @property
    def histogram(self) -> Histogram:
        silenced: Histogram = silent(super().histogram)
        return silenced


@dataclass(frozen=True)
class TokenChanges:
    """The changes by tokens of one document, many of one word and of several words.

    Attributes:
        precision: how many tokens are protected.
        step: the vocabulary.
    """

    precision: int
    step: VocabularyStep

    @property
    def tokens(self) -> int:
        """Return how many tokens a document is given: the precision, if that is not too many."""
        return min(self.precision, _MOST_TOKENS)

    def of_counts(self) -> Exact:
        """Return the audit of the counts of a histogram."""
        return Exact(
            "histogram: what a token changes",
            1.0,
            f"The figure is the change of a job's exact counts by {self.tokens} tokens of a "
            "document, in L1, for each of them.",
            lambda: max(_l1(self._counts[0], own) for own in self._counts[1:]) / self.tokens,
        )

    def of_frequencies(self) -> Exact:
        """Return the audit of the frequencies that a vocabulary is selected by."""
        return Exact(
            "vocabulary: what a token changes",
            1.0,
            f"The figure is the change of a job's exact document frequencies by {self.tokens} "
            "tokens of a document, in L1 for each of them, or of one word.",
            lambda: max(self._moved(own) for own in self._frequencies[1:]),
        )

    def _moved(self, frequencies: Counts) -> float:
        """Return how far frequencies moved for each token, or the furthest of them."""
        first = self._frequencies[0]
        furthest = max(abs(own - first.get(word, 0)) for word, own in frequencies.items())
        return max(_l1(first, frequencies) / self.tokens, furthest)

    @property
    def _counts(self) -> Sequence[Counts]:
        return self._found[0]

    @property
    def _frequencies(self) -> Sequence[Counts]:
        return self._found[1]

    @cached_property
    def _found(self) -> tuple[list[Counts], list[Counts]]:
        words = list(islice(made_up_words(), _WORDS))
        several = list(islice(cycle(words[1:]), self.tokens))
        others = [{TEXT: " ".join(words[number:])} for number in (0, 3, 9, 1)]
        documents = [
            " ".join([words[0], *more]) for more in ([], [words[0]] * self.tokens, several)
        ]
        corpora: list[list[Row]] = [[*others, {TEXT: document}] for document in documents]
        spec = HistogramSpec.model_construct(
            kind="histogram", precision=self.precision, epsilon=Fraction(1)
        )
        names = [f"{_NAME} {number}" for number in range(len(corpora))]
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/words.txt"
            Path(path).write_text("\n".join(words), "utf-8")
            public = FileSource.resolve("mechanism.vocabulary.public", path)
            steps = [
                replace(self.step, public=public, size=len(words))
                if self.step.selection is None
                else replace(self.step, selection=of_all_terms(self.step.selection, name))
                for name in names
            ]
            kinds = [_Counting(spec, step) for step in steps]
            counts = list(built(kinds, spec, corpora, _weights))
        frequencies: list[Counts] = [
            {term.decode(): own for term, own in heard(name).items()} for name in names
        ]
        return counts, frequencies


def _weights(files: Sequence[Written], key: ReleaseKey) -> Counts:
    (listed,) = (file for file in files if file.path == layout.VOCABULARY)
    table = staged_table(listed, key)
    return dict(zip(table["term"].to_pylist(), table["weight"].to_pylist(), strict=True))


def _l1(one: Counts, other: Counts) -> int:
    return sum(abs(one.get(word, 0) - other.get(word, 0)) for word in {*one, *other})
