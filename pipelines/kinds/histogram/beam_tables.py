"""The vocabulary and its noisy counts, computed from rows and released as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Optional

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.typehints.row_type import RowTypeConstraint

from quietcorpus.indexes.tokens.tokenizers import Tokenizer
from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.bags.histogram import Counts
from quietcorpus.transforms.artefacts.files import FileSource
from quietcorpus.transforms.composed.sums import SumVocabulary
from quietcorpus.transforms.errors import InputError, redacted
from quietcorpus.transforms.shards import Written
from quietcorpus.transforms.vocabulary import KeySource, load, vocabulary_table

from ...compose.base import ComposedKind
from ...compose.card import ComposedCard
from ...compose.rows import Read, as_rows
from ...storage.layout import VOCABULARY
from .job import LimitedPrecisionKind, VocabularyStep

_ROWS = RowTypeConstraint.from_fields(
    [("term_id", np.int32), ("term", str), ("weight", Optional[np.int64])]  # noqa: UP045
)


def vocabulary_of(
    found: Read, step: VocabularyStep, key: KeySource, label: str
) -> beam.PCollection[Vocabulary]:
    """Add a vocabulary to a graph: a public list, or one that is selected from the rows."""
    if step.selection is None:
        return listed_vocabulary(found, step.public, step.tokenizer)
    return found.documents | "vocabulary" >> SumVocabulary(
        step.selection,
        found.fields.id,
        key,
        found.identified,
        f"{label}: vocabulary.private",
        step.tokenizer,
    )


def listed_vocabulary(
    found: Read, public: FileSource | None, tokenizer: Tokenizer
) -> beam.PCollection[Vocabulary]:
    """Add a public list to a graph."""
    listed = found.documents.pipeline | "public vocabulary" >> beam.Create([public])
    return listed | "load" >> beam.Map(load, tokenizer)


def no_weights(pipeline: beam.Pipeline) -> beam.PCollection[None]:
    """Return what stands for the noisy counts of a vocabulary's terms where there are none."""
    return pipeline | "no weights" >> beam.Create([None])


def table_rows(
    found: Read,
    name: str,
    make: beam.DoFn,
    row_type: RowTypeConstraint,
    *made: beam.PCollection,
) -> beam.PCollection:
    """Add the rows of a table to a graph, which a DoFn makes of what came before the documents.

    All of that is side input. Were any of it the main input, an engine could fuse the step that
    makes it with this one, which waits for the documents, while the documents wait for that step.
    """
    begun = found.documents.pipeline | f"one {name}" >> beam.Create([None])
    tables = begun | f"{name} table" >> beam.ParDo(make, *map(beam.pvalue.AsSingleton, made))
    return tables | f"{name} rows" >> as_rows(found, row_type)


def vocabulary_rows(
    found: Read,
    vocabulary: beam.PCollection[Vocabulary],
    weights: beam.PCollection[Counts | None],
) -> beam.PCollection:
    """Add rows of the vocabulary to a graph, with the noisy counts of its terms if there are any.

    They have `term_id`, `term` and `weight`, as `vocabulary.parquet` does.
    """
    return table_rows(found, "vocabulary", _VocabularyTable(), _ROWS, vocabulary, weights)


class _VocabularyTable(beam.DoFn):
    @redacted
    def process(self, _: None, vocabulary: Vocabulary, weights: Any) -> Iterator[pa.Table]:
        yield vocabulary_table(vocabulary, weights)


class OfVocabulary(ComposedKind):
    """A transform whose card states the size of a vocabulary."""

    @property
    def _step(self) -> VocabularyStep:
        assert isinstance(self._kind, LimitedPrecisionKind)
        return self._kind.vocabulary

    def _card(self) -> ComposedCard:
        if self._step.size is None:
            raise InputError(
                "card: the size of a private vocabulary is found in the rows; read the output "
                "`card`"
            )
        return self._card_of(_sized(self._step.size))

    def _sized_card(
        self, found: Read, vocabulary: beam.PCollection[Vocabulary]
    ) -> beam.PCollection[str]:
        """Add the card to a graph, once the size of the vocabulary is known."""
        made = _Card(self._card_of)
        # See `table_rows`.
        begun = vocabulary.pipeline | "one card" >> beam.Create([None])
        return begun | "card" >> beam.ParDo(
            made, beam.pvalue.AsSingleton(vocabulary), found.checks
        ).with_output_types(str)


class _Card(beam.DoFn):
    def __init__(self, made: Callable[[tuple[Written, ...]], ComposedCard]) -> None:
        self._made = made

    @redacted
    def process(self, _: None, vocabulary: Vocabulary, checks: Any = ()) -> Iterator[str]:
        list(checks)  # some engines compute a side input only where it is read
        yield self._made(_sized(len(vocabulary))).to_json()


def _sized(terms: int) -> tuple[Written, ...]:
    """Return the files of a release as far as a card asks for them: the vocabulary's rows."""
    return (Written(VOCABULARY, "", "", terms),)
