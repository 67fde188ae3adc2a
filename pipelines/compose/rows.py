"""The part of a graph that all transforms share: rows in, documents out, and the checks of both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.options.pipeline_options import TypeOptions
from apache_beam.runners.direct.direct_runner import (
    BundleBasedDirectRunner,
    SwitchingDirectRunner,
)
from apache_beam.transforms.window import GlobalWindows
from apache_beam.typehints.row_type import RowTypeConstraint

from quietcorpus.mechanisms.accounting.guarantees import (
    DocumentPrivacy,
    Guarantee,
    LimitedPrecision,
)
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.composed.fields import Fields
from quietcorpus.transforms.composed.reading import COPIES, ERRORS, ReadBatches, ReadRows
from quietcorpus.transforms.composed.release_rows import (
    COVERED,
    AsBatches,
    AsRows,
    ReleaseDocuments,
    arrow_schema,
)
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.privatizers.rows import Parameters
from quietcorpus.transforms.reading.copies import Copies
from quietcorpus.transforms.reading.documents import Documents
from quietcorpus.transforms.reading.identifiers import TAG, Covered, RefuseRepeated
from quietcorpus.transforms.steps import Check, DoubtKept
from quietcorpus.transforms.sums import require_covered

from ..card.weakness import of_documents, refuse
from ..jobs.notices import SAMPLE, doubts, refuse_copies, require_compared
from ..schema.values import Reason
from .card import RowsSpec, labelled


class Read(NamedTuple):
    """The documents of a collection of rows.

    Attributes:
        fields: the fields that were found.
        documents: batches of documents.
        checks: a side input that exists once the whole input has passed its checks.
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
    total: Guarantee | None = None,
) -> Read:
    """Add the reading of rows to a graph; `also` has further fields to read, each with its key.

    The delta of `total` must not be above 1 / documents, unless that is accepted.

    Raises InputError for rows without a schema, fields that are not there or of another type, and
    for input that does not end or is divided into windows.
    """
    _require_bounded(rows)
    fields = Fields.of(rows.element_type, spec.text, spec.id, spec.keep, also)
    single = _takes_single_rows(rows.pipeline) or arrow_schema(rows.element_type) is None
    reader = (ReadRows if single else ReadBatches)(fields, key, label, errors=errors)
    found = rows | "read" >> beam.ParDo(reader).with_outputs(TAG, COPIES, ERRORS, main="documents")
    identified = found[TAG] | "unique ids" >> RefuseRepeated(
        spec.id,
        key,
        named=f"{label}: id",
        remedy="give each document once, under an id of its own",
    )
    copies = (
        found[COPIES]
        | "copies of the text" >> beam.CombineGlobally(_total)
        | "refuse copies"
        >> beam.ParDo(
            Check(partial(_refuse_copies, label, spec.keep)), beam.pvalue.AsIter(identified)
        )
    )
    checked = [identified, copies]
    if spec.keep:
        looks = partial(doubts, keep=spec.keep, accept=spec.accept, key=f"{label}: keep")
        look = beam.ParDo(DoubtKept(spec.keep, SAMPLE, looks))
        checked.append(found.documents | "look at kept fields" >> look)
    if isinstance(total, LimitedPrecision | DocumentPrivacy) and total.delta:
        within = partial(_refuse_delta, label, total, spec.accept)
        counted = identified | "count" >> beam.CombineGlobally(_added).without_defaults()
        checked.append(counted | "delta" >> beam.ParDo(Check(within)))
    checks = checked | "checks" >> beam.Flatten()
    refused = found[ERRORS] | "errors" >> beam.Map(_same).with_output_types(fields.error_type())
    return Read(fields, found.documents, beam.pvalue.AsIter(checks), identified, refused)


def release(
    found: Read,
    parameters: Parameters,
    key: Callable[[], ReleaseKey],
    *side: beam.PCollection,
) -> beam.PCollection:
    """Add the release of documents to a graph; `side` holds what comes before them, if anything."""
    released = found.documents | "release" >> beam.ParDo(
        ReleaseDocuments(found.fields, parameters, key), *map(beam.pvalue.AsSingleton, side)
    ).with_outputs(COVERED, main="tables")
    once = (
        released[COVERED]
        | "released documents" >> beam.CombineGlobally(_added)
        | "each once" >> beam.ParDo(Check(require_covered), beam.pvalue.AsIter(found.identified))
    )
    # Not flattened with the other checks: Spark fails on a Flatten of what another one gives.
    return released.tables | "rows" >> as_rows(
        found,
        found.fields.row_type(parameters.fields),
        found.fields.times,
        beam.pvalue.AsIter(once),
    )


def as_rows(
    found: Read, row_type: RowTypeConstraint, times: Sequence[str] = (), *once: beam.pvalue.AsIter
) -> beam.ParDo:
    """Return the step from tables to rows, once the whole input has passed its checks.

    `once` is one more check, of what was released.
    """
    schema = None if _takes_single_rows(found.documents.pipeline) else arrow_schema(row_type)
    step = AsRows(times) if schema is None else AsBatches(row_type, schema)
    return beam.ParDo(step, found.checks, *once).with_output_types(row_type)


def _takes_single_rows(pipeline: beam.Pipeline) -> bool:
    """Return whether batches of rows may not be understood.

    Beam's check of types in a run takes them for rows. Its older local engine fails, and its
    `DirectRunner` may choose that one.
    """
    checked = bool(pipeline.options.view_as(TypeOptions).runtime_type_check)
    return checked or isinstance(pipeline.runner, BundleBasedDirectRunner | SwitchingDirectRunner)


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


def _added(parts: Iterable[Covered]) -> Covered:
    return sum(parts, start=np.zeros(3, np.uint64))


def _refuse_copies(
    label: str, keep: Sequence[str], copies: Copies, identified: Iterable[Covered]
) -> None:
    """Raise InputError where a kept field repeats the text, and StageError for lost copies."""
    require_compared(copies, keep, int(_added(identified)[0]))
    refuse_copies(copies, f"{label}: keep")


def _refuse_delta(
    label: str, total: Guarantee, accept: Sequence[Reason], identified: Covered
) -> None:
    """Raise InputError if delta is above 1 / documents."""
    with labelled(label):
        refuse(of_documents(total, int(identified[0])), accept)


def _total(copies: Sequence[Copies]) -> Copies:
    return sum(copies, start=Copies())


def _same(row: Any) -> Any:
    return row
