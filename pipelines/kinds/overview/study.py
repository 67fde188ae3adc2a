"""The study of an overview: errors of sizes, telling words that come out, and who took part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from quietcorpus.evaluation.results import Observation
from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.bags.histogram import Counts
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.users.shards import Sums
from quietcorpus.transforms.users.users import BoundShare, Share, gathered, words_of

from ...evaluate.corpus import Draw
from ...evaluate.study import Studied, Study, tokenizer_of_card
from ...jobs.kind import prepare
from ...schema.spec import Spec
from ...storage import files as storage
from ...storage import layout
from ..user_histogram.study import NOTES_OF_USERS, attacked
from .counts import OverviewKind
from .findings import groups_table, words_table

_MOST_TELLING = 10
_ALL = 1 << 40  # words of a user


class OverviewStudy(Study):
    """The study of counts by group, before and after the release.

    A redraw keeps the released vocabulary.
    """

    swept = frozenset({"epsilon", "delta"})
    of_documents = False
    of_authors = False  # a user may have a single document

    def __init__(self, studied: Studied) -> None:
        self._kind = kind = _prepared(studied.described)
        self._terms = storage.read_table(f"{studied.release}/{layout.VOCABULARY}")["term"]
        tokenizer = tokenizer_of_card(studied.card.mechanism)
        words = self._vocabulary = Vocabulary(self._terms.to_pylist(), tokenizer)
        key, sample, users = ReleaseKey.fresh(), studied.sample, kind.corpus.users
        self._key = key
        every = kind.corpus.named_users.bounded(_ALL)
        whole = gathered(sample.all_documents(), every, words, key, kind.grouping)
        self._true = self._counted(whole)
        bound = BoundShare(users.tokens)
        self._shares = {
            user: bound.extract_output((group, list(texts)))
            for user, (group, texts) in whole.items()
        }
        self._sampled = gathered([sample.documents], users, words, key, kind.grouping)
        self._telling = self._words(self._true, _MOST_TELLING)
        released = [
            storage.read_table(f"{studied.release}/{path}")[column].to_numpy()
            for path, column in self._released
        ]
        rows = pa.table({"count": np.concatenate(released)})
        self.own = Draw(rows, placed=True, labels=None, law=kind)
        self.notes = [
            "Sizes and words are of the whole corpus, and exact ones of however many documents and "
            "words of each user; fresh draws take the vocabulary as it was released. What exact "
            "counts would tell of a group follows from them by the rule of the release.",
            *NOTES_OF_USERS,
        ]

    @property
    def _released(self) -> list[tuple[str, str]]:
        months = [(layout.MONTHS, "documents")] if self._kind.grouping.months else []
        return [(layout.GROUPS, "documents"), *months, (layout.COUNTS, "count")]

    def _counted(self, users: Mapping[bytes, Share]) -> Counts:
        """Count every document, and every word that a user uses in a group, once."""
        bound = self._kind.bound
        found = np.zeros(bound.cells_of(len(self._terms)), np.int64)
        for share in users.values():
            cells, times = np.unique(np.concatenate(words_of(share)), return_counts=True)
            found[cells] += np.where(cells < bound.sizes, times, 1)
        return found

    def redraw(self, spec: Spec) -> Draw:
        """Draw fresh noise for every count."""
        kind = _prepared(spec)
        sums = kind.counting.noised(self._summed(kind), self._vocabulary, ReleaseKey.fresh())
        rows = pa.table({"count": kind.bound.counts(sums)})
        return Draw(rows, placed=True, labels=None, law=kind)

    def references(self, number: int) -> Iterator[Observation]:
        """Yield the error that bounded contributions make without any noise."""
        cells, found = self._summed(self._kind)
        sums = np.zeros(len(self._true), np.int64)
        sums[cells] = found
        yield from self._measured(self._kind.bound.counts(sums), "exact")

    def _summed(self, kind: OverviewKind) -> Sums:
        """Return the exact sums of all users' clipped numbers."""
        return kind.counting.summed(self._shares.items(), len(self._terms), self._key)

    def observe(self, draw: Draw, number: int) -> Iterator[Observation]:
        """Yield the measures of a draw."""
        kind: OverviewKind = draw.law
        yield from self._measured(draw.rows["count"].to_numpy(), "release")
        yield from attacked(kind, self._units(kind), self._vocabulary, number)

    def _units(self, kind: OverviewKind) -> sp.csr_array:
        """Return what the sampled users add to exact sums, int64 (n, cells)."""
        size = len(self._terms)
        rows = [
            kind.counting.clipped(user, share, size, self._key)
            for user, share in self._sampled.items()
        ]
        nothing = np.empty(0, np.int64)
        cells, numbers = (
            np.concatenate([nothing, *(row[side] for row in rows)]) for side in (0, 1)
        )
        offsets = np.cumsum([0, *(len(own) for own, _ in rows)])
        return sp.csr_array((numbers, cells, offsets), (len(rows), len(self._true)))

    def _measured(self, counts: Counts, subject: str) -> Iterator[Observation]:
        groups = self._kind.grouping.groups
        documents = self._true[:groups].sum()
        if documents:
            error = np.abs(counts[:groups] - self._true[:groups]).sum() / documents
            yield Observation("overview-sizes", subject, float(error))
        if self._telling:
            came_out = len(self._telling & self._words(counts))
            yield Observation("overview-words", subject, came_out / len(self._telling))

    def _words(self, counts: Counts, most: int | None = None) -> set[tuple[int, str]]:
        """Return the telling words by counts of all cells, each with its group."""
        bound, noise = self._kind.bound, self._kind.noise
        terms = self._terms.combine_chunks()
        sizes = groups_table(counts[: bound.groups], noise)
        by_group = counts[bound.sizes :].reshape(bound.groups, len(terms))
        found = words_table(by_group, sizes, terms, noise)
        listed = list(zip(found["group"].to_pylist(), found["term"].to_pylist(), strict=True))
        return {
            own
            for group in range(bound.groups)
            for own in [one for one in listed if one[0] == group][:most]
        }


def _prepared(spec: Spec) -> OverviewKind:
    kind = prepare(spec)
    assert isinstance(kind, OverviewKind)
    return kind
