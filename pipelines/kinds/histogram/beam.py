"""The corpus's vocabulary, selected privately, in a pipeline that others compose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Optional

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.typehints.row_type import RowTypeConstraint
from pydantic import model_validator

from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.accounting.guarantees import LimitedPrecision, Spending, round_up
from quietcorpus.mechanisms.bags.histogram import Counts, ThresholdedVocabulary
from quietcorpus.transforms.composed.sums import HistogramOfRows, VocabularyOfRows
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.shards import Written
from quietcorpus.transforms.steps import Apply
from quietcorpus.transforms.vocabulary import KeySource, listed, vocabulary_table

from ...card.weakness import of_guarantee
from ...compose import card
from ...compose.base import Composed, ComposedKind, OnErrors, Released, RowsArguments
from ...compose.card import ComposedCard, checked, labelled
from ...compose.rows import Read, as_rows
from ...schema.blocks import TokenizerSpec, tokenizer_of
from ...schema.values import Count, Delta, Epsilon, Strict
from ...storage.layout import VOCABULARY
from .card import limits_of
from .job import HistogramKind, LimitedPrecisionKind, VocabularyStep
from .spec import check_rate

_ROWS = RowTypeConstraint.from_fields(
    [("term_id", np.int32), ("term", str), ("weight", Optional[np.int64])]  # noqa: UP045
)


def vocabulary_of(
    found: Read, step: VocabularyStep, key: KeySource, label: str
) -> beam.PCollection[Vocabulary]:
    """Add a vocabulary to a graph: a public list, or one that is selected from the rows."""
    if step.selection is None:
        return listed(found.documents.pipeline, step.public, step.tokenizer)
    return found.documents | "vocabulary" >> VocabularyOfRows(
        step.selection,
        found.fields.id,
        key,
        found.identified,
        f"{label}: vocabulary.private",
        step.tokenizer,
    )


def no_weights(pipeline: beam.Pipeline) -> beam.PCollection[None]:
    """Return what stands for the noisy counts of a vocabulary's terms where there are none."""
    return pipeline | "no weights" >> beam.Create([None])


def table_rows(
    found: Read,
    name: str,
    make: Callable[..., Iterable[pa.Table]],
    row_type: RowTypeConstraint,
    *made: beam.PCollection,
) -> beam.PCollection:
    """Add the rows of a table to a graph, which a function makes of what came before the documents.

    All of that is side input. Were any of it the main input, an engine could fuse the step that
    makes it with this one, which waits for the documents, while the documents wait for that step.
    """
    begun = found.documents.pipeline | f"one {name}" >> beam.Create([None])
    tables = begun | f"{name} table" >> beam.ParDo(Apply(make), *map(beam.pvalue.AsSingleton, made))
    return tables | f"{name} rows" >> as_rows(found, row_type)


def vocabulary_rows(
    found: Read,
    vocabulary: beam.PCollection[Vocabulary],
    weights: beam.PCollection[Counts | None],
) -> beam.PCollection:
    """Add rows of the vocabulary to a graph, with the noisy counts of its terms if there are any.

    They have `term_id`, `term` and `weight`, as `vocabulary.parquet` does.
    """
    return table_rows(found, "vocabulary", _tables, _ROWS, vocabulary, weights)


def _tables(_: None, vocabulary: Vocabulary, weights: Counts | None) -> Iterator[pa.Table]:
    yield vocabulary_table(vocabulary, weights)


class OfVocabulary(ComposedKind):
    """A transform whose card states the size of a vocabulary."""

    @property
    def _step(self) -> VocabularyStep:
        assert isinstance(self._kind, LimitedPrecisionKind)
        return self._kind.vocabulary

    @property
    def _size(self) -> int | None:
        """Return the number of words of a public list."""
        return self._step.size

    def _card(self) -> ComposedCard:
        if self._size is None:
            raise InputError(
                "card: the size of a private vocabulary is found in the rows; read the output "
                "`card`"
            )
        return self._card_of(_sized(self._size))

    def _sized_card(
        self, found: Read, vocabulary: beam.PCollection[Vocabulary]
    ) -> beam.PCollection[str]:
        """Add the card to a graph, once the size of the vocabulary is known."""
        # See `table_rows`.
        begun = vocabulary.pipeline | "one card" >> beam.Create([None])
        return begun | "card" >> beam.ParDo(
            Apply(partial(_cards, self._card_of)),
            beam.pvalue.AsSingleton(vocabulary),
            found.checks,
        ).with_output_types(str)


def _cards(
    make: Callable[[tuple[Written, ...]], ComposedCard],
    _: None,
    vocabulary: Vocabulary,
    checks: Iterable[object],
) -> Iterator[str]:
    list(checks)  # some engines compute a side input only where it is read
    yield make(_sized(len(vocabulary))).to_json()


def _sized(terms: int) -> tuple[Written, ...]:
    """Return the files of a release as far as a card asks for them: the vocabulary's rows."""
    return (Written(VOCABULARY, "", "", terms),)


class _SelectionSpec(Strict):
    precision: Count
    epsilon: Epsilon
    delta: Delta
    tokenizer: TokenizerSpec = "unicode-words-v2"

    @model_validator(mode="after")
    def _enough_epsilon(self) -> _SelectionSpec:
        check_rate("epsilon", self.epsilon, self.precision)
        return self


class SelectVocabulary(Composed):
    """A PTransform that selects the words that many texts have, privately.

    Out come rows with `term_id`, `term` and `weight`, which is null. The noise is bound to all rows
    of the input, as with `ReleaseHistogram`.

    Guarantee:
        A change of one row's text within the precision is hidden, as the card states it, up to a
        chance of delta.
    """

    def __init__(
        self,
        release: str,
        *,
        precision: int,
        epsilon: float,
        delta: float,
        tokenizer: str | Mapping[str, Any] | None = None,
        text: str = "text",
        id: str = "id",
        errors: OnErrors = "raise",
        accept: Sequence[str] = (),
    ) -> None:
        """Check the arguments, and find the master key.

        Args:
            release: the id of the release.
            precision: N; adding or removing N words of one text is hidden.
            epsilon: of the selection.
            delta: of the selection.
            tokenizer: the rule that finds words, as in a spec; `unicode-words-v2` unless given.
            text: the field of the text.
            id: the field of the id, a string, bytes or a whole number, unique in the input.
            errors: what a row does whose text or id is null or unreadable: fail the job, or go to
                the output `errors`.
            accept: what is refused unless it is named here, as in a spec.

        Raises:
            InputError: anything that a person can fix, also as the transform is applied.
        """
        super().__init__(
            RowsArguments(release=release, text=text, id=id, errors=errors, accept=accept)
        )
        with labelled(self.name):
            spec = checked(
                _SelectionSpec,
                precision=precision,
                epsilon=epsilon,
                delta=delta,
                tokenizer=tokenizer,
            )
            self._tokenizer = tokenizer_of(spec.tokenizer)
        self._selection = ThresholdedVocabulary(spec.precision, spec.epsilon, spec.delta)
        self._warn_of(of_guarantee(self._selection.guarantee, ()))

    @property
    def _total(self) -> LimitedPrecision:
        return self._selection.guarantee

    def _card(self) -> ComposedCard:
        selection = self._selection
        described: dict[str, Any] = {
            "kind": "vocabulary",
            "precision": selection.precision,
            "epsilon": round_up(selection.epsilon),
            "delta": round_up(selection.delta),
            "tokenizer": self._tokenizer.description,
        }
        spending = Spending("vocabulary", selection.guarantee)
        limits = limits_of([spending], self._tokenizer.description)
        return card.of_total(self._rows, self.name, described, spending, limits)

    def expand(self, rows: beam.PCollection) -> Released:
        found = self._read(rows)
        step = VocabularyStep(None, self._selection, None, self._tokenizer)
        vocabulary = vocabulary_of(found, step, self._key, self.name)
        released = vocabulary_rows(found, vocabulary, no_weights(rows.pipeline))
        return Released(released, self._carded(rows), found.errors)


class ReleaseHistogram(OfVocabulary):
    """A PTransform that counts the words of all texts, with noise, as `kind: histogram` does.

    Out come rows with `term_id`, `term` and `weight`, a row for each term of the vocabulary. The
    noise is bound to all rows of the input: another corpus, or another state of this one, has
    independent noise, even under the same release id.

    Guarantee:
        A change of one row's text within the precision is hidden, as the card states it.
        Where the engine repeats an earlier step and that makes a row anew, all counts are drawn
        anew, and a reader of both draws has two releases.
    """

    def __init__(
        self,
        release: str,
        *,
        precision: int,
        epsilon: float,
        vocabulary: Mapping[str, Any],
        tokenizer: str | Mapping[str, Any] | None = None,
        text: str = "text",
        id: str = "id",
        errors: OnErrors = "raise",
        accept: Sequence[str] = (),
    ) -> None:
        """Check the arguments, and find the master key and the vocabulary.

        Args:
            release: the id of the release.
            precision: N; adding or removing N words of one text is hidden.
            epsilon: of the histogram.
            vocabulary: `{"public": PATH}`, or `{"private": {"epsilon": ..., "delta": ...}}`.
            tokenizer: the rule that finds words, as in a spec; `unicode-words-v2` unless given.
            text: the field of the text.
            id: the field of the id, a string, bytes or a whole number, unique in the input.
            errors: what a row does whose text or id is null or unreadable: fail the job, or go to
                the output `errors`.
            accept: what is refused unless it is named here, as in a spec.

        Raises:
            InputError: anything that a person can fix, also as the transform is applied.
        """
        super().__init__(
            "histogram",
            RowsArguments(release=release, text=text, id=id, errors=errors, accept=accept),
            precision=precision,
            epsilon=epsilon,
            vocabulary=vocabulary,
            tokenizer=tokenizer,
        )

    def expand(self, rows: beam.PCollection) -> Released:
        kind = self._kind
        assert isinstance(kind, HistogramKind)
        found = self._read(rows)
        vocabulary = vocabulary_of(found, self._step, self._key, self.name)
        weights = found.documents | "histogram" >> HistogramOfRows(
            kind.histogram,
            beam.pvalue.AsSingleton(vocabulary),
            found.fields.id,
            self._key,
            found.identified,
        )
        released = vocabulary_rows(found, vocabulary, weights)
        return Released(released, self._sized_card(found, vocabulary), found.errors)
