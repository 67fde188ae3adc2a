"""The corpus's vocabulary, selected privately, in a pipeline that others compose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import apache_beam as beam
from pydantic import model_validator

from quietcorpus.mechanisms.accounting.guarantees import LimitedPrecision, Spending, round_up
from quietcorpus.mechanisms.bags.histogram import ThresholdedVocabulary
from quietcorpus.transforms.composed.sums import SumHistogram

from ...card.weakness import of_guarantee
from ...compose import card
from ...compose.base import Composed, OnErrors, Released, RowsArguments
from ...compose.card import ComposedCard
from ...compose.spec import checked, labelled
from ...schema.tokenizers import TokenizerSpec, tokenizer_of
from ...schema.values import Count, Delta, Epsilon, Strict
from .beam_tables import OfVocabulary, no_weights, vocabulary_of, vocabulary_rows
from .card import limits_of
from .job import HistogramKind, VocabularyStep
from .spec import check_rate


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
        self._heed(of_guarantee(self._selection.guarantee, ()))

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
        weights = found.documents | "histogram" >> SumHistogram(
            kind.histogram,
            beam.pvalue.AsSingleton(vocabulary),
            found.fields.id,
            self._key,
            found.identified,
        )
        released = vocabulary_rows(found, vocabulary, weights)
        return Released(released, self._sized_card(found, vocabulary), found.errors)
