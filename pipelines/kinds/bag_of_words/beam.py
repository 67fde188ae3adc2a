"""Noisy counts in place of each text, in a pipeline that others compose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.typehints.row_type import RowTypeConstraint

from quietcorpus.transforms.codebook import BuildCodebook, Codebook
from quietcorpus.transforms.composed.sums import HistogramOfRows

from ...compose.base import OnErrors, RowsArguments
from ...compose.rows import release as add_release
from ...storage.layout import COMPRESSION
from ..histogram.beam import OfVocabulary, no_weights, table_rows, vocabulary_of, vocabulary_rows
from .job import BagOfWordsKind, codebook_tables

_MAP_ROWS = RowTypeConstraint.from_fields([("term_id", np.int32), ("bin", np.int32)])


class ReleasedBags(NamedTuple):
    """The outputs of `PrivatizeBags`.

    Attributes:
        rows: the released rows.
        card: one string, the card in JSON.
        errors: as those of `Released`.
        vocabulary: rows with `term_id`, `term` and `weight`, the histogram's noisy count or null.
        compression: rows with `term_id` and `bin`; none without a compression map.
    """

    rows: beam.PCollection
    card: beam.PCollection[str]
    errors: beam.PCollection
    vocabulary: beam.PCollection
    compression: beam.PCollection


class PrivatizeBags(OfVocabulary):
    """A PTransform that releases a noisy bag of words of each text, as `kind: bag-of-words` does.

    Out come rows with `id`, the kept fields, `terms` and `counts`, and with the vocabulary that
    gives the terms' numbers. All else is as with `PrivatizeWords`; the noise of a vocabulary and of
    a histogram, if there are any, is bound to all rows of the input, as with `ReleaseHistogram`.

    Guarantee:
        A change of one row's text within the precision is hidden, as the card states it.
        A release id is for one corpus and one state of it; see `PrivatizeWords`. Where a vocabulary
        or a histogram is drawn from the rows, another state may have other noise in every row under
        the same release id, and both are then two releases of each.
    """

    def __init__(
        self,
        release: str,
        *,
        precision: int,
        epsilon: float,
        vocabulary: Mapping[str, Any],
        compression: Mapping[str, Any],
        histogram_epsilon: float | None = None,
        accounting: Literal["tight", "per-entry"] | None = None,
        include: Sequence[str] | None = None,
        tokenizer: str | Mapping[str, Any] | None = None,
        text: str = "text",
        id: str = "id",
        keep: Sequence[str] = (),
        errors: OnErrors = "raise",
        accept: Sequence[str] = (),
    ) -> None:
        """Check the arguments, and find the master key and the public artefacts.

        Args:
            release: the id of the release, for one corpus and one state of it.
            precision: N; adding or removing N words of one text is hidden.
            epsilon: of the texts' counts; other stages add theirs.
            vocabulary: `{"public": PATH}`, or `{"private": {"epsilon": ..., "delta": ...}}`.
            compression: the map from words to bins, as in a spec: `{"method": "none"}`, or another
                method with a `size`.
            histogram_epsilon: of the histogram by which the words of a bin are drawn.
            accounting: `tight` unless given.
            include: `["bins"]` adds the noisy counts of bins to every row.
            tokenizer: the rule that finds words, as in a spec; `unicode-words-v2` unless given.
            text: the field of the text.
            id: the field of the id, a string, bytes or a whole number, unique in the input.
            keep: fields that are copied as they are: nothing protects them.
            errors: what a row does whose text or id is null or unreadable: fail the job, or go to
                the output `errors`.
            accept: what is refused unless it is named here, as in a spec.

        Raises:
            InputError: anything that a person can fix, also as the transform is applied.
        """
        super().__init__(
            "bag-of-words",
            RowsArguments(release=release, text=text, id=id, errors=errors, accept=accept),
            keep,
            precision=precision,
            epsilon=epsilon,
            vocabulary=vocabulary,
            compression=compression,
            histogram_epsilon=histogram_epsilon,
            accounting=accounting,
            include=include,
            tokenizer=tokenizer,
        )

    def expand(self, rows: beam.PCollection) -> ReleasedBags:
        kind = self._kind
        assert isinstance(kind, BagOfWordsKind)
        found = self._read(rows)
        vocabulary = vocabulary_of(found, self._step, self._key, self.name)
        side = beam.pvalue.AsSingleton(vocabulary)
        if kind.histogram:
            weights = found.documents | "histogram" >> HistogramOfRows(
                kind.histogram, side, found.fields.id, self._key, found.identified
            )
        else:
            weights = no_weights(rows.pipeline)
        codebook = weights | "codebook" >> beam.ParDo(
            BuildCodebook(kind.compression, self._key), side
        )
        return ReleasedBags(
            add_release(found, kind.parameters, self._key, codebook),
            self._sized_card(found, vocabulary),
            found.errors,
            vocabulary_rows(found, vocabulary, weights),
            table_rows(found, "map", _tables, _MAP_ROWS, codebook),
        )


def _tables(_: None, codebook: Codebook) -> Iterator[pa.Table]:
    for path, _schema, groups in codebook_tables(codebook):
        if path == COMPRESSION:
            yield from groups
