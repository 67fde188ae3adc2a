"""A sample, in memory, of the private corpus that a release is compared with."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.indexes.vocabulary import Vocabulary
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus, Documents
from quietcorpus.transforms.reading.sources import plan, read

Strings = npt.NDArray[np.object_]
"""A column's values as strings, object (n,); None for a missing value."""
_Values = dict[str, str | None]


@dataclass(frozen=True)
class Columns:
    """The columns of a corpus that an evaluation needs.

    Attributes:
        text, id, label, user: by their purpose.
        read: those that the mechanism reads besides the text, each with the spec's key.
        target: the numbers that a regression learns.
    """

    text: str = "text"
    id: str | None = None
    label: str | None = None
    user: str | None = None
    read: tuple[tuple[str, str], ...] = ()
    target: str | None = None

    def corpus(self, pattern: str) -> Corpus:
        """Return the corpus to read, with these columns."""
        named = (
            ("id", self.id),
            ("label", self.label),
            ("user", self.user),
            ("target", self.target),
        )
        also = tuple((key, name) for key, name in named if name is not None)
        return Corpus(pattern, self.text, also=also + self.read)


@dataclass(frozen=True)
class Sample:
    """A uniform sample of a corpus's documents, in their order.

    Attributes:
        documents: the texts, numbered from zero, with the columns that the mechanism reads.
        of: the number of documents in the corpus.
        source: the corpus.
        ids, labels, users, targets: (n,) each; None without such a column.
    """

    documents: Documents
    of: int
    source: Corpus
    ids: Strings | None
    labels: Strings | None
    users: Strings | None
    targets: Strings | None = None

    def __len__(self) -> int:
        return len(self.documents.rows)

    def counts_of_all(self, vocabulary: Vocabulary) -> npt.NDArray[np.int64]:
        """Count each term's occurrences in the whole corpus, int64 (V,)."""
        found = np.zeros(len(vocabulary), np.int64)
        for documents in self.all_documents():
            _, terms = vocabulary.look_up(vocabulary.tokenizer.tokenize(documents.texts))
            found += np.bincount(terms, minlength=len(vocabulary))
        return found

    def all_documents(self) -> Iterator[Documents]:
        """Read the whole corpus, batch by batch."""
        return _batches(self.source)


def sample(pattern: str, columns: Columns, most: int, seed: int) -> Sample:
    """Sample at most `most` documents; raises InputError for a corpus that cannot be read.

    The whole corpus is read once; only the sample is held in memory.
    """
    generator = np.random.default_rng(seed)
    kept: list[tuple[float, int, tuple[str, _Values]]] = []
    number = count()
    try:
        for text, values in _records(columns.corpus(pattern)):
            # Random keys, of which the heap keeps the smallest: a uniform sample in one pass.
            item = (-generator.random(), next(number), (text, values))
            (heapq.heappush if len(kept) < most else heapq.heappushpop)(kept, item)
    except InputError as error:  # it names keys of a spec, not options
        said = str(error).replace("input.path:", "against:", 1)
        raise InputError(said.replace("input.text:", "text:", 1)) from None
    records = [record for _, _, record in sorted(kept, key=lambda item: item[1])]
    texts = [text for text, _ in records]

    def column(name: str | None) -> Strings | None:
        return None if name is None else strings(values[name] for _, values in records)

    also = {name: pa.array(column(name), pa.large_string()) for _, name in columns.read}
    documents = Documents(
        "", np.arange(len(texts)), pa.array(texts, pa.large_string()), pa.table(also)
    )

    of = next(number)
    source = columns.corpus(pattern)
    named = columns.id, columns.label, columns.user, columns.target
    return Sample(documents, of, source, *map(column, named))


def strings(values: Iterable[str | None]) -> Strings:
    """Return values as a column."""
    return np.array(list(values), dtype=np.object_)


def _batches(corpus: Corpus) -> Iterator[Documents]:
    for split in plan(corpus).splits:
        yield from read(split, corpus)


def _records(corpus: Corpus) -> Iterator[tuple[str, _Values]]:
    for documents in _batches(corpus):
        columns = {
            name: documents.columns[name].cast(pa.large_string()).to_pylist()
            for name in corpus.columns
        }
        for row, text in enumerate(documents.texts.to_pylist()):
            yield text, {name: values[row] for name, values in columns.items()}
