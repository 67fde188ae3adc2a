"""A sample, in memory, of the private corpus that a release is compared with."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.transforms.errors import InputError, cut
from quietcorpus.transforms.reading.documents import Corpus, Documents
from quietcorpus.transforms.reading.sources import batches
from quietcorpus.transforms.reading.spelling import as_text

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
        escape: the character that escapes quotes in CSV files of the corpus.
        kept: those that the release copies, which an attacker compares; without ids.
    """

    text: str = "text"
    id: str | None = None
    label: str | None = None
    user: str | None = None
    read: tuple[tuple[str, str], ...] = ()
    target: str | None = None
    escape: str | None = None
    kept: tuple[str, ...] = ()

    def corpus(self, pattern: str) -> Corpus:
        """Return the corpus to read, with these columns."""
        named = (
            ("id", self.id),
            ("label", self.label),
            ("user", self.user),
            ("target", self.target),
        )
        also = tuple((key, name) for key, name in named if name is not None)
        return Corpus(pattern, self.text, None, self.kept, also + self.read, self.escape)


@dataclass(frozen=True)
class Sample:
    """A uniform sample of a corpus's documents, in their order.

    Attributes:
        documents: the texts, numbered from zero, with the columns that the mechanism reads.
        of: the number of documents in the corpus.
        source: the corpus.
        ids, labels, users, targets: (n,) each; None without such a column.
        kept: int64 (n, 1), equal for documents whose kept columns agree; of several such columns
            (n, 1 + columns), with each of them after all together; None without any.
    """

    documents: Documents
    of: int
    source: Corpus
    ids: Strings | None
    labels: Strings | None
    users: Strings | None
    targets: Strings | None = None
    kept: npt.NDArray[np.int64] | None = None

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
        return batches(self.source)


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
    except InputError as error:
        raise of_option("against", error) from None
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
    agreeing = None
    if columns.kept:
        several = [(name,) for name in columns.kept] if len(columns.kept) > 1 else []
        agreeing = np.stack(
            [
                np.unique(
                    [repr([values[name] for name in names]) for _, values in records],
                    return_inverse=True,
                )[1].astype(np.int64)
                for names in (columns.kept, *several)
            ],
            axis=1,
        )
    ids, labels, users, targets = map(column, named)
    return Sample(documents, of, source, ids, labels, users, targets, agreeing)


def texts_of(place: str, columns: Columns, ids: Strings) -> list[str]:
    """Return sampled documents' texts as another tool left them, in the sample's order.

    Args:
        place: the tool's output, in any order, with the corpus's columns of texts and ids.
        columns: the corpus's columns, of which ids are one.
        ids: the sampled documents' ids, (n,).

    Raises:
        InputError: an output that cannot be read, an id that it lacks, or one that is not unique.
    """
    assert columns.id is not None
    wanted, found = set(ids.tolist()), dict[str | None, str]()
    unique = len(wanted) == len(ids)
    try:
        for text, values in _records(Columns(columns.text, columns.id).corpus(place)):
            if (one := values[columns.id]) in wanted:
                unique &= one not in found
                found[one] = text
    except InputError as error:
        raise of_option("reference_text", error) from None
    if not unique:
        raise InputError(f"id: the column {cut(columns.id)} repeats values; name one that does not")
    if len(found) < len(ids):
        raise InputError(
            f"reference_text: {len(ids) - len(found):,} of {len(ids):,} sampled documents have no "
            f"text there by their {cut(columns.id)}; give what the tool made of this corpus"
        )
    return [found[one] for one in ids]


def of_option(name: str, error: InputError) -> InputError:
    """Return an error on reading a corpus, which names keys of a spec, as one on options."""
    said = str(error).replace("input.path:", f"{name}:", 1)
    said = said.replace("input.keep:", f"{name}:", 1)
    return InputError(said.replace("input.text:", "text:", 1))


def strings(values: Iterable[str | None]) -> Strings:
    """Return values as a column."""
    return np.array(list(values), dtype=np.object_)


def _records(corpus: Corpus) -> Iterator[tuple[str, _Values]]:
    compared = {name for _, name in corpus.compared}
    for documents in batches(corpus):
        columns = {name: as_text(documents.columns[name]).to_pylist() for name in compared}
        copied = {name: documents.columns[name].to_pylist() for name in corpus.keep}
        columns |= {name: list(map(repr, copied[name])) for name in copied.keys() - compared}
        for row, text in enumerate(documents.texts.to_pylist()):
            yield text, {name: values[row] for name, values in columns.items()}
