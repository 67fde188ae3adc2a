"""A sample of the private corpus, in memory, and draws of a mechanism on it."""

from __future__ import annotations

import heapq
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quietcorpus.indexes.documents.lsa import Lsa
from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.transforms.artefacts.encoder import Encoder
from quietcorpus.transforms.errors import InputError, cut
from quietcorpus.transforms.privatizers.rows import Privatizer
from quietcorpus.transforms.reading.documents import Corpus, Documents
from quietcorpus.transforms.reading.identifiers import as_text
from quietcorpus.transforms.reading.sources import batches

from ..card.model import Card
from ..storage import files as storage
from .definition import Stage

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
            _, terms, _ = vocabulary.find(documents.texts)
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


class Remembering(Encoder):
    """An encoder that encodes every text once."""

    def __init__(self, encoder: Encoder | Lsa) -> None:
        self._encoder = encoder
        self._known: dict[str, npt.NDArray[np.float32]] = {}

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        new = list(dict.fromkeys(one for one in texts if one not in self._known))
        if new:
            self._known |= zip(new, self._encoder.encode(new), strict=True)
        if not texts:
            return self._encoder.encode(texts)
        return np.stack([self._known[one] for one in texts])


@dataclass(frozen=True)
class Bins:
    """A compression map, and what each stage of the release that has it cost.

    Attributes:
        of: each term's bin, int32 (V,).
        size: the number of bins.
        stages: of the release.
    """

    of: npt.NDArray[np.int32]
    size: int
    stages: Sequence[Stage]


@dataclass(frozen=True)
class Draw:
    """The released rows of one draw.

    Attributes:
        rows: the kind's columns, n rows.
        placed: whether row i belongs to the sample's document i; otherwise its document is unknown.
        labels: (n,), where they are known.
        law: the attacker's knowledge of the mechanism, where it is not the release's own.
    """

    rows: pa.Table
    placed: bool
    labels: Strings | None
    law: Any = None


def drawn(
    privatizer: Privatizer, sample: Sample, numbers: npt.NDArray[np.int64] | None = None
) -> Draw:
    """Draw fresh rows for all sampled documents, or those of some numbers, in their order."""
    documents = sample.documents if numbers is None else _some(sample.documents, numbers)
    parts = documents.parts(privatizer.documents_at_once)
    rows = pa.concat_tables([privatizer.release(part).rows for part in parts])
    labels = sample.labels if numbers is None or sample.labels is None else sample.labels[numbers]
    return Draw(rows, True, labels)


def _some(documents: Documents, numbers: npt.NDArray[np.int64]) -> Documents:
    return Documents(
        documents.source,
        documents.rows[numbers],
        documents.texts.take(numbers),
        documents.columns.take(numbers),
    )


def released(output: str, card: Card, columns: Columns, sample: Sample, seed: int) -> Draw:
    """Read the release's own rows: the sampled documents' by id, or else as many at random.

    Raises InputError for a release of another corpus.
    """
    rows = pa.concat_tables(_tables(output, card))
    if columns.id in card.kept and sample.ids is not None:
        released_as = "id" if columns.id == card.id_column else columns.id
        ids = as_text(rows[released_as]).combine_chunks()
        return Draw(rows.take(_places(columns.id, ids, sample.ids)), True, sample.labels)
    count = min(len(sample), len(rows))
    chosen = np.sort(np.random.default_rng(seed).choice(len(rows), count, replace=False))
    rows = rows.take(pa.array(chosen))
    return Draw(rows, False, _strings(rows, columns.label))


def alone(output: str, card: Card) -> dict[str, float]:
    """Return, by kept column but the ids, the share of rows with a value that no other row has."""
    names = [name for name in card.columns if name != "id"]
    if not names:
        return {}
    rows = pa.concat_tables([table.select(names) for table in _tables(output, card)])
    shares = {}
    for name in names:
        counts = pc.value_counts(rows[name].combine_chunks()).field("counts")
        shares[name] = pc.sum(pc.equal(counts, 1)).as_py() / max(1, len(rows))
    return shares


def _strings(rows: pa.Table, name: str | None) -> Strings | None:
    if name is None or name not in rows.column_names:
        return None
    return strings(as_text(rows[name]).to_pylist())


def _tables(output: str, card: Card) -> Iterator[pa.Table]:
    for file in card.files:
        if posixpath.dirname(file.path) == "data":
            yield storage.read_table(f"{output}/{file.path}")


def _places(name: str, found: pa.Array, ids: Strings) -> pa.Array:
    """Return the release's rows of the sampled documents; `found` are the ids of its rows."""
    if len(set(ids.tolist())) < len(ids):
        raise InputError(f"id: the column {cut(name)} repeats values; name one that does not")
    places = pc.index_in(pa.array(ids.tolist(), pa.large_string()), value_set=found)
    if places.null_count:
        raise InputError(
            f"against: {places.null_count:,} of {len(ids):,} sampled documents have no row in "
            f"the release by their {cut(name)}; give the corpus that the release was made of"
        )
    return places
