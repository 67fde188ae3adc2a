"""The part of a graph that all transforms share: rows in, documents out, and the checks of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows
from apache_beam.typehints.row_type import RowTypeConstraint

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.pipelines.compose.spec import RowsSpec
from quietcorpus.pipelines.release.kept_columns import refuse_copies
from quietcorpus.transforms.composed.fields import Fields
from quietcorpus.transforms.composed.reading import COPIES, ERRORS, ReadRows
from quietcorpus.transforms.composed.release import AsRows, ReleaseDocuments
from quietcorpus.transforms.errors import InputError, redacted
from quietcorpus.transforms.privatizers.rows import Parameters
from quietcorpus.transforms.reading.copies import Copies
from quietcorpus.transforms.reading.documents import Documents
from quietcorpus.transforms.reading.identifiers import TAG, Covered, RefuseRepeated


class Read(NamedTuple):
    """The documents of a collection of rows.

    Attributes:
        fields: the fields that were found.
        documents: batches of documents.
        checks: what is there once the whole input has passed its checks, as a side input.
        identified: the number of documents and the sum of their ids' digests, in parts.
        errors: rows that report those that cannot be read.
    """

    fields: Fields
    documents: beam.PCollection[Documents]
    checks: beam.pvalue.AsIter
    identified: beam.PCollection[Covered]
    errors: beam.PCollection


def read(
    rows: beam.PCollection,
    spec: RowsSpec,
    key: Callable[[], ReleaseKey],
    label: str,
    *,
    errors: bool,
    also: Sequence[tuple[str, str]] = (),
) -> Read:
    """Add the reading of rows to a graph; `also` has further fields to read, each with its key.

    Raises InputError for rows without a schema, fields that are not there or of another type, and
    for input that does not end or is divided into windows.
    """
    _require_bounded(rows)
    fields = Fields.of(rows.element_type, spec.text, spec.id, spec.keep, also)
    found = rows | "read" >> beam.ParDo(ReadRows(fields, key, label, errors=errors)).with_outputs(
        TAG, COPIES, ERRORS, main="documents"
    )
    identified = found[TAG] | "unique ids" >> RefuseRepeated(
        spec.id,
        key,
        named=f"{label}: id",
        remedy="give each document once, under an id of its own",
    )
    copies = (
        found[COPIES]
        | "copies of the text" >> beam.CombineGlobally(_total).without_defaults()
        | "refuse copies" >> beam.ParDo(_RefuseCopies(label))
    )
    checks = (identified, copies) | "checks" >> beam.Flatten()
    refused = found[ERRORS] | "errors" >> beam.Map(_same).with_output_types(fields.error_type())
    return Read(fields, found.documents, beam.pvalue.AsIter(checks), identified, refused)


def release(
    found: Read,
    parameters: Parameters,
    key: Callable[[], ReleaseKey],
    *side: beam.PCollection,
) -> beam.PCollection:
    """Add the release of documents to a graph; `side` holds what comes before them, if anything."""
    tables = found.documents | "release" >> beam.ParDo(
        ReleaseDocuments(found.fields, parameters, key), *map(beam.pvalue.AsSingleton, side)
    )
    return tables | "rows" >> as_rows(
        found, found.fields.row_type(parameters.fields), found.fields.times
    )


def as_rows(found: Read, row_type: RowTypeConstraint, times: Sequence[str] = ()) -> beam.ParDo:
    """Return the step from tables to rows, once the whole input has passed its checks."""
    return beam.ParDo(AsRows(times), found.checks).with_output_types(row_type)


def _require_bounded(rows: beam.PCollection) -> None:
    if not rows.is_bounded:
        raise InputError(
            "the input is unbounded: ids must be unique in all of it, and nothing is released "
            "before that is known; give input that ends"
        )
    windowing = rows.windowing
    if not isinstance(windowing.windowfn, GlobalWindows) or not windowing.is_default():
        raise InputError(
            "the input is divided into windows, or has a trigger: a document could be released "
            "once in each, and its cost would add up; give all of it at once, in the global window"
        )


def _total(copies: Sequence[Copies]) -> Copies:
    return sum(copies, start=Copies())


def _same(row: Any) -> Any:
    return row


class _RefuseCopies(beam.DoFn):
    """A DoFn that fails where a kept field repeats the text."""

    def __init__(self, label: str) -> None:
        self._label = label

    @redacted
    def process(self, copies: Copies) -> Iterator[Copies]:
        refuse_copies(copies, f"{self._label}: keep")
        yield copies
