"""The corpus's histogram, in a pipeline that others compose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import apache_beam as beam

from quietcorpus.transforms.composed.sums import SumHistogram

from ..kinds.histogram import HistogramKind
from .base import OnErrors, Released, RowsArguments
from .tables import (
    OfVocabulary,
    vocabulary_of,
    vocabulary_rows,
)


class ReleaseHistogram(OfVocabulary):
    """A PTransform that counts the words of all texts, with noise, as `kind: histogram` does.

    Out come rows with `term_id`, `term` and `weight`, a row for each term of the vocabulary. The
    noise is bound to all rows of the input: another corpus, or another state of this one, has
    independent noise, even under the same release id.

    Guarantee:
        A change of one row's text within the precision is hidden, as the card states it.
        Where the engine repeats an earlier step and that makes a row anew, all counts are drawn
        anew, and whoever sees both draws has two releases.
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
