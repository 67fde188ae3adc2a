"""The votes of a corpus's documents for the texts of a public pool, released once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.indexes.documents.lsa import Lsa
from quietcorpus.indexes.documents.pool import Pool
from quietcorpus.indexes.tokens.written_language import FrequentWordCounter, FrequentWords
from quietcorpus.mechanisms.encoding import Value
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.sentences.deep_candidate import on_grid
from quietcorpus.mechanisms.votes.ballots import Ballots, Sums
from quietcorpus.mechanisms.votes.estimates import estimates
from quietcorpus.mechanisms.votes.resampling import Resampling

from .artefacts.encoder import Encoder, EncoderSource
from .artefacts.folders import CarriedEncoder, PoolSource
from .errors import redacted
from .metrics import Progress
from .reading.documents import Corpus, Documents, Split
from .reading.identifiers import TAG, Identifiers, as_text
from .shards import TALLIES, RejectLog, Seen, Tally
from .sums import AddNoise, AddSums, Covering, OfParts
from .vocabulary import KeySource

AT_ONCE = 512
"""Documents that vote together; fewer would leave more of the encoder's batches half empty, and
fewer of them would ask for the same list of a pool, whose texts are read once for all that do."""

_COMPARED = 128  # documents of a batch; counting the words of all would cost a fourth of a vote


@dataclass(frozen=True)
class Strata:
    """The strata that votes are counted in: a document is in the one of its label.

    Attributes:
        column: its values are the labels.
        labels: a public list; documents of other labels, and of none, do not vote.
    """

    column: str
    labels: tuple[str, ...]

    def numbers(self, documents: Documents) -> npt.NDArray[np.int64]:
        """Return the number of each document's label, int64 (n,); -1 for one that is not listed."""
        known = {label: number for number, label in enumerate(self.labels)}
        values = as_text(documents.columns[self.column]).to_pylist()
        return np.array([known.get(value, -1) for value in values], dtype=np.int64)


@dataclass(frozen=True)
class SearchedLists:
    """The lists of a pool, in some of which a document's texts are looked for.

    Attributes:
        lists: how many the pool has.
        probes: how many are searched for a document.
    """

    lists: int
    probes: int


@dataclass(frozen=True)
class Voting:
    """The parameters of votes and of their noise.

    Attributes:
        votes: the mechanism.
        pool: the pool.
        texts: the number of its texts.
        encoder: the encoder of documents, with which the pool was made.
        strata: None if all documents are counted together.
        smooth: estimate a text's votes from those of texts like it, too.
        search: the pool's lists; None if a document is compared with all texts. Whichever it is,
            a document's votes depend on that document and on the public pool alone, and their norm
            is the same (`quietcorpus.indexes.documents.pool.Pool`): no sensitivity depends on it.
        frequent: the pool's most frequent words, which are counted in the corpus; no vote depends
            on them.
    """

    votes: Ballots
    pool: PoolSource
    texts: int
    encoder: EncoderSource | CarriedEncoder
    strata: Strata | None = None
    smooth: bool = False
    search: SearchedLists | None = None
    frequent: FrequentWords | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of strata, and of texts."""
        return len(self.strata.labels) if self.strata else 1, self.texts

    @property
    def stage_parameters(self) -> dict[str, Value]:
        """Return all that the noisy sums depend on besides the documents."""
        strata = self.strata
        return {
            **self.votes.stage_parameters,
            "pool": self.pool.digest,
            "encoder": self.encoder.digest,
            "strata": {"column": strata.column, "labels": strata.labels} if strata else None,
            **({"search": asdict(self.search)} if self.search else {}),
        }

    def sums(self, documents: Documents, pool: Pool, encoder: Encoder | Lsa) -> Sums:
        """Add up the votes of some documents, each of which depends on that document alone."""
        strata = self.strata_of(documents)
        voters, items = self.ballots(documents, np.flatnonzero(strata >= 0), pool, encoder)
        return self.votes.sums(items, strata[voters], self.shape)

    def strata_of(self, documents: Documents) -> npt.NDArray[np.int64]:
        """Return the number of each document's stratum, int64 (n,); -1 for one that has none."""
        if self.strata is None:
            return np.zeros(len(documents.rows), dtype=np.int64)
        return self.strata.numbers(documents)

    def ballots(
        self,
        documents: Documents,
        among: npt.NDArray[np.int64],
        pool: Pool,
        encoder: Encoder | Lsa,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return those of the documents of these numbers that vote, and the texts they vote for.

        A document whose embedding is zero is near nothing, and does not vote. The numbers are
        int64 (n,), and the texts' numbers int64 (n, nearest).
        """
        texts = documents.texts.take(pa.array(among)).to_pylist()
        vectors = on_grid(encoder.encode(texts))
        somewhere = vectors.any(axis=1)
        return among[somewhere], pool.nearest(vectors[somewhere], self.votes.nearest)

    def release(self, sums: Sums, key: ReleaseKey) -> Sums:
        """Release the noisy sums of a corpus, from the exact ones."""
        return self.votes.release(sums, key.stage("votes", 1, **self.stage_parameters))

    def estimates(self, noisy: Sums) -> Sums:
        """Return the weights of texts, int64 of the same shape; 0 if they do not stand out.

        It is made of the noisy sums and the public pool alone.
        """
        return estimates(self.votes, noisy, self.pool.open().vectors if self.smooth else None)

    def resample(self, given: Sums, rows: int, key: ReleaseKey) -> npt.NDArray[np.int64]:
        """Draw texts by their `estimates`: int64 (rows,), places among all sums, row after row."""
        stream = key.stage("resample", 1, rows=rows, **self.stage_parameters)
        return Resampling(rows).draw(given, stream)


class ReleaseVotes(beam.PTransform):
    """A PTransform from splits to tagged `votes` (one int64 array), `tallies`, `identifiers`."""

    def __init__(
        self, corpus: Corpus, voting: Voting, key: KeySource, parts: int, rejects: RejectLog
    ) -> None:
        """Configure the release; noise is added once, to the sum over all `parts` splits."""
        super().__init__()
        self._corpus = corpus
        self._voting = voting
        self._key = key
        self._parts = parts
        self._rejects = rejects

    def expand(self, splits: beam.PCollection[Split]) -> dict[str, beam.PCollection]:
        counted = splits | "vote" >> beam.ParDo(
            _CountVotes(self._corpus, self._voting, self._key, self._rejects)
        ).with_outputs(TALLIES, TAG, main="sums")
        coverage = OfParts(self._parts)
        votes = (
            counted.sums
            | "over the corpus" >> beam.CombineGlobally(AddSums(coverage))
            | "noise" >> beam.ParDo(AddNoise(coverage, self._key, self._voting.release))
        )
        return {"votes": votes, TALLIES: counted[TALLIES], TAG: counted[TAG]}


class ReadVoters(beam.DoFn):
    """A DoFn from a split to the votes of its documents, and to the account of the split.

    Attributes:
        voting: the parameters of votes.
        key: gives the release key.
    """

    def __init__(self, corpus: Corpus, voting: Voting, key: KeySource, rejects: RejectLog) -> None:
        self.voting = voting
        self.key = key
        self._corpus = corpus
        self._rejects = rejects
        self._progress = Progress("votes")

    @redacted
    def process(self, split: Split) -> Iterator[object]:
        identifiers = Identifiers(self._corpus.id, self.key(), split.number)
        seen = Seen(identifiers, Tally.of_pass("votes", split))
        yield from self.votes(self._parts(split, seen), split)
        yield from seen.outputs()

    def votes(self, parts: Iterator[Documents], split: Split) -> Iterator[object]:
        """Yield the votes of a split's documents, which come a few at a time."""
        raise NotImplementedError

    def _parts(self, split: Split, seen: Seen) -> Iterator[Documents]:
        """Yield the documents, account for them, and write the log of those that are unreadable."""
        frequent = FrequentWordCounter(self.voting.frequent)
        for documents in self._progress.read(split, self._corpus):
            for part in documents.parts(AT_ONCE):
                yield part
                self._progress.count(part, 0)
            self._progress.count_rejects(documents)
            seen.add(documents)
            seen.add_words(0, 0, frequent.count(documents.texts.slice(0, _COMPARED)))
        self._rejects.write(seen.rejects, split.name)


class _CountVotes(ReadVoters):
    """A DoFn that adds up one split's votes exactly; the sums stay inside the pipeline."""

    def votes(self, parts: Iterator[Documents], split: Split) -> Iterator[Covering[Sums]]:
        pool, encoder = self.voting.pool.open(), self.voting.encoder.open()
        sums = np.zeros(self.voting.shape, dtype=np.int64)
        for part in parts:
            sums += self.voting.sums(part, pool, encoder)
        yield sums, (split.number,)
